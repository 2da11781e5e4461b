// Works on the queue greet until it is stopped: node worker.js
const faktory = require("faktory-worker");

faktory.register("greet", async (name) => {
  console.log("Hello,", name);
});

faktory.work({ queues: ["greet"] }).catch((error) => {
  console.error(error);
  process.exit(1);
});
