// Puts a job into the tube greet: node beanstalk_producer.js [NAME]
const Jackd = require("jackd");

(async () => {
  const [host, port] = (process.env.BEANSTALKD_SERVER || "127.0.0.1:11300").split(":");
  const client = await new Jackd().connect({ host, port: Number(port) });
  await client.use("greet");
  console.log("submitted", await client.put([process.argv[2] || "Node"])); // as JSON
  await client.quit();
})();
