// A Faktory worker: node worker.js NAME=BEHAVIOUR...; the server's address comes from FAKTORY_URL.
//
// NAME is the queue and, after a colon, the job's type where it has another name: mail:Send=echo.
// Behaviours: echo, fail, hold (says that it has the job and never finishes).
"use strict";

const faktory = require("faktory-worker");

function event(name, fields) {
  // One write a line: the reader must never see half of one.
  process.stdout.write(JSON.stringify({ event: name, ...fields }) + "\n");
}

const behaviours = {
  echo: async () => {},
  fail: async (...args) => {
    const error = new Error(`broken: ${args[0]}`);
    error.code = "Broken";
    throw error;
  },
  hold: () => new Promise(() => {}),
};

const queues = [];
for (const pair of process.argv.slice(2)) {
  const [name, behaviour] = pair.split("=");
  const [queue, type] = name.split(":");
  if (!behaviours[behaviour]) throw new Error(`unknown behaviour ${behaviour}`);
  queues.push(queue);
  faktory.register(type || queue, (...args) => behaviours[behaviour](...args));
}

faktory.use(async (ctx, next) => {
  const { job } = ctx;
  event("job", {
    func: job.jobtype,
    id: job.jid,
    data: Buffer.from(JSON.stringify(job.args)).toString("base64"),
    custom: job.custom,
  });
  await next();
});

async function main() {
  const worker = await faktory.work({ queues, concurrency: 4, beatInterval: 2, timeout: 2 });
  worker.on("error", (error) => event("error", { error: error.message }));
  worker.on("fail", ({ job, error }) => event("fail", { id: job.jid, error: error.message }));
  event("ready");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
