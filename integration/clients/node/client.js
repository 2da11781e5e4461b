// A Faktory client: node client.js COMMAND ARGUMENTS; the server's address comes from FAKTORY_URL.
//
//   push QUEUE ARGS-AS-JSON [OTHER-FIELDS-AS-JSON]
//   bulk QUEUE COUNT          also with one job that must be refused
//   info
//   mutate CMD TARGET FILTER-AS-JSON
"use strict";

const faktory = require("faktory-worker");

function event(name, fields) {
  process.stdout.write(JSON.stringify({ event: name, ...fields }) + "\n");
}

const commands = {
  async push(client, queue, args, fields) {
    const job = client.job(queue, ...JSON.parse(args));
    job.queue = queue;
    Object.assign(job.payload, JSON.parse(fields || "{}"));
    event("created", { id: await job.push() });
  },
  async bulk(client, queue, count) {
    const jobs = [];
    for (let i = 0; i < Number(count); i++) {
      const job = client.job(queue, i);
      job.queue = queue;
      jobs.push(job);
      event("created", { id: job.jid });
    }
    const bad = client.job(queue, "bad");
    bad.jid = "short";
    const rejected = await client.pushBulk([...jobs, bad]);
    for (const [jid, { reason }] of Object.entries(rejected)) {
      event("rejected", { id: jid, error: reason });
    }
  },
  async info(client) {
    const info = await client.info();
    event("info", { data: Buffer.from(JSON.stringify(info)).toString("base64") });
  },
  async mutate(client, cmd, target, filter) {
    const mutation = client[target];
    mutation.filter = JSON.parse(filter);
    await mutation[cmd]();
    event("mutated", {});
  },
};

// connect tries for two minutes: on a busy machine the HELLO may come too late, and the library waits five seconds for a connection.
async function connect() {
  for (const end = Date.now() + 120_000; ; ) {
    try {
      const client = await faktory.connect();
      client.pool._config.acquireTimeoutMillis = 120_000;
      return client;
    } catch (error) {
      if (Date.now() > end) throw error;
    }
  }
}

async function main() {
  const [command, ...args] = process.argv.slice(2);
  const client = await connect();
  await commands[command](client, ...args);
  await client.close();
  event("closed", {});
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
