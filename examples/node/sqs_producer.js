// Sends a message to the queue greet: node sqs_producer.js [NAME]
const { SQSClient, CreateQueueCommand, SendMessageCommand } = require("@aws-sdk/client-sqs");

(async () => {
  const sqs = new SQSClient({
    endpoint: process.env.AWS_ENDPOINT_URL_SQS || "http://127.0.0.1:9324", region: "us-east-1",
    credentials: { accessKeyId: "any", secretAccessKey: "any" },
  });
  const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName: "greet" })); // or that of the queue as it is
  const sent = await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: JSON.stringify([process.argv[2] || "Node"]) }));
  console.log("submitted", sent.MessageId);
})();
