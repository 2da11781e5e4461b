// Plays flows of SQS clients on @aws-sdk/client-sqs and sqs-consumer: ADDRESS. Prints the flows that held.
import assert from "node:assert";
import { SQSClient, CreateQueueCommand, SendMessageCommand, SendMessageBatchCommand, ReceiveMessageCommand, GetQueueAttributesCommand } from "@aws-sdk/client-sqs";
import { Consumer } from "sqs-consumer";

const sqs = new SQSClient({
  endpoint: "http://" + process.argv[2], region: "us-east-1", maxAttempts: 1, credentials: { accessKeyId: "any", secretAccessKey: "any" },
  requestHandler: { httpAgent: { keepAlive: false } }, // the broker closes connections that are idle for ten seconds
});
const make = async (name) => (await sqs.send(new CreateQueueCommand({ QueueName: name }))).QueueUrl;
const counts = async (QueueUrl) => {
  const all = (await sqs.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["All"] }))).Attributes;
  return [all.ApproximateNumberOfMessages, all.ApproximateNumberOfMessagesNotVisible].join();
};

// The SDK checks the digests of what it sends and receives.
async function sends() {
  const QueueUrl = await make("n-sends");
  const MessageAttributes = { b: { DataType: "Binary", BinaryValue: new Uint8Array([0, 255]) }, s: { DataType: "String", StringValue: "é" } };
  await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: "one \u{1F600}", MessageAttributes }));
  const got = await sqs.send(new ReceiveMessageCommand({ QueueUrl, MessageAttributeNames: ["All"], MessageSystemAttributeNames: ["All"] }));
  assert.equal(got.Messages[0].Body, "one \u{1F600}");
  assert.deepEqual([...got.Messages[0].MessageAttributes.b.BinaryValue], [0, 255]);
  assert.equal(got.Messages[0].Attributes.ApproximateReceiveCount, "1");
}

// A consumer deletes what it has handled, and gives back at once what it could not handle.
async function consumes() {
  const QueueUrl = await make("n-consumes");
  await sqs.send(new SendMessageBatchCommand({ QueueUrl, Entries: Array.from({ length: 10 }, (_, i) => ({ Id: String(i), MessageBody: "m" + i })) }));
  const tries = new Map();
  const done = new Set();
  await new Promise((resolve, reject) => {
    const consumer = Consumer.create({
      queueUrl: QueueUrl, sqs, batchSize: 10, waitTimeSeconds: 20, terminateVisibilityTimeout: true,
      handleMessage: async (m) => {
        tries.set(m.Body, (tries.get(m.Body) ?? 0) + 1);
        if (m.Body === "m3" && tries.get("m3") === 1) throw new Error("once");
        done.add(m.Body);
        return m;
      },
    });
    consumer.on("error", reject);
    consumer.on("processing_error", () => {});
    consumer.on("message_processed", () => done.size === 10 && setTimeout(() => consumer.stop({ abort: true }), 200));
    consumer.on("stopped", resolve);
    consumer.start();
  });
  assert.equal(tries.get("m3"), 2);
  assert.equal(await counts(QueueUrl), "0,0");
}

// A poll that the client has closed takes nothing.
async function closes() {
  let left = "";
  for (let i = 1; left !== "1,0" && i <= 6; i++) { // a busy broker may need longer to see it
    const QueueUrl = await make("n-closes-" + i);
    const abort = new AbortController();
    const poll = sqs.send(new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds: 20 }), { abortSignal: abort.signal });
    setTimeout(() => abort.abort(), 300);
    await assert.rejects(poll);
    await new Promise((resolve) => setTimeout(resolve, i * i * 300));
    await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: "m" }));
    left = await counts(QueueUrl);
  }
  assert.equal(left, "1,0");
}

for (const flow of [sends, consumes, closes]) {
  await flow();
  console.log(flow.name);
}
