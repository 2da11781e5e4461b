// Works on the queue greet until it is stopped: node sqs_worker.js
const { SQSClient, CreateQueueCommand } = require("@aws-sdk/client-sqs");
const { Consumer } = require("sqs-consumer");

(async () => {
  const sqs = new SQSClient({
    endpoint: process.env.AWS_ENDPOINT_URL_SQS || "http://127.0.0.1:9324", region: "us-east-1",
    credentials: { accessKeyId: "any", secretAccessKey: "any" },
  });
  const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName: "greet" }));
  const consumer = Consumer.create({
    queueUrl: QueueUrl,
    sqs,
    batchSize: 10,
    handleMessage: async (message) => {
      const [name] = JSON.parse(message.Body); // arguments, whatever the protocol of the producer
      console.log("Hello,", name);
      return message; // it is deleted
    },
  });
  consumer.on("error", (error) => console.error("trying again:", error.message)); // the broker may be restarted
  consumer.on("processing_error", (error) => console.error(error));
  consumer.start();
})();
