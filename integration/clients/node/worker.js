// A Faktory worker: node worker.js NAME=BEHAVIOUR...; the server's address comes from FAKTORY_URL.
//
// NAME is the queue and, after a colon, the job's type where it has another name: mail:Send=echo. A queue may have a
// weight, as in mail*5:Send=echo: then the queues are tried in an order drawn anew for each job.
// Behaviours: echo, fail, hold (says that it has the job and never finishes), shift (takes custom.ms milliseconds of the job, fails
// custom.fails times, and says when it is done).
"use strict";

const faktory = require("faktory-worker");

function event(name, fields) {
  // One write a line, so that the reader never sees a part of it.
  process.stdout.write(JSON.stringify({ event: name, at: Date.now(), ...fields }) + "\n");
}

const behaviours = {
  echo: async () => {},
  fail: async (...args) => {
    const error = new Error(`broken: ${args[0]}`);
    error.code = "Broken";
    throw error;
  },
  hold: () => new Promise(() => {}),
  // A behaviour that returns a function gets the whole job.
  shift: () => async ({ job }) => {
    const { ms = 0, fails = 0 } = job.custom || {};
    await new Promise((resolve) => setTimeout(resolve, ms));
    const failed = job.failure ? job.failure.retry_count + 1 : 0;
    if (failed < fails) throw new Error(`failure ${failed + 1} of ${fails}`);
    event("done", { id: job.jid });
  },
};

let queues = [];
const weights = {};
for (const pair of process.argv.slice(2)) {
  const [name, behaviour] = pair.split("=");
  const [place, type] = name.split(":");
  const [queue, weight] = place.split("*");
  if (weight) weights[queue] = Number(weight);
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

if (Object.keys(weights).length > 0) queues = weights;

// start tries several times: the library waits five seconds for a connection, and a server two for its HELLO.
async function start() {
  for (let i = 1; ; i++) {
    try {
      return await faktory.work({ queues, concurrency: 4, beatInterval: 2, timeout: 20 });
    } catch (error) {
      if (i === 5) throw error;
    }
  }
}

async function main() {
  const worker = await start();
  worker.on("error", (error) => event("error", { error: error.message }));
  worker.on("fail", ({ job, error }) => event("fail", { id: job.jid, error: error.message }));
  event("ready");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
