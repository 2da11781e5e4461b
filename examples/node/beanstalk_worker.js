// Works on the tube greet until it is stopped: node beanstalk_worker.js
const Jackd = require("jackd");

const [host, port] = (process.env.BEANSTALKD_SERVER || "127.0.0.1:11300").split(":");

async function work(client) {
  await client.watch("greet");
  await client.ignore("default");
  for (;;) {
    const job = await client.reserve();
    const [name] = JSON.parse(Buffer.from(job.payload).toString()); // arguments, whatever the protocol of the producer
    console.log("Hello,", name);
    await client.delete(job.id);
  }
}

(async () => {
  for (;;) {
    try {
      const client = new Jackd();
      await client.connect({ host, port: Number(port) });
      const gone = new Promise((_, reject) => client.socket.once("close", () => reject(new Error("the connection is closed"))));
      await Promise.race([work(client), gone]);
    } catch (error) { // the broker may be restarted
      console.error("trying again in a second:", error.message);
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
})();
