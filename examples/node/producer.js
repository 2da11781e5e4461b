// Submits a job to the queue greet: node producer.js [NAME]
const faktory = require("faktory-worker");

(async () => {
  const client = await faktory.connect(); // FAKTORY_URL, or the default port
  const job = client.job("greet", process.argv[2] || "Node");
  job.queue = "greet";
  console.log("submitted", await job.push());
  await client.close();
})();
