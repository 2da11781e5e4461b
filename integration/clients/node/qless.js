// A client of Qless on the npm package redis, which plays what the upstream Ruby client, its workers and its web pages do.
//
//   node qless.js ADDRESS [PASSWORD]
//
// REDIS_CA names the certificate of a server with TLS. It prints one line for each flow and ends with an error at the first reply that is not as it must be.
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const { createClient } = require("redis");

const script = "-- Current SHA: 89abcdef0123456789abcdef0123456789abcdef\n-- This is a generated file\nlocal Qless = {}\n";
const noScript = "NOSCRIPT No matching script. Please use EVAL.";

// caller makes a function that calls operations: EVALSHA, and SCRIPT LOAD on the exact text of an unknown script.
function caller(client) {
  let sha = "0".repeat(40);
  return async function call(now, operation, ...args) {
    const words = { keys: [], arguments: [operation, String(now), ...args.map(String)] };
    try {
      return await client.evalSha(sha, words);
    } catch (e) {
      if (e.message !== noScript) throw e;
      sha = await client.scriptLoad(script);
      return client.evalSha(sha, words);
    }
  };
}

async function connects(client) {
  const version = /redis_version:(\d+)\.(\d+)/.exec(await client.info());
  assert.ok(Number(version[1]) >= 3, "the Ruby client wants 2.5.5 or newer");
  assert.equal(await client.ping(), "PONG");
  await assert.rejects(client.evalSha("1".repeat(40), { arguments: ["get", "1", "x"] }), { message: noScript });
  await assert.rejects(client.get("x"), /unknown command/);
}

async function runsJobs(client, call) {
  assert.equal(await call(1000, "put", "", "ruby", "a", "Job", '{"n":1}', 0, "priority", 1, "tags", '["x"]'), "a");
  assert.equal(await call(1000, "put", "", "ruby", "b", "Job", "{}", 60), "b");
  assert.equal(await call(1000, "put", "", "ruby", "c", "Job", "{}", 0, "depends", '["a"]'), "c");
  const [job] = JSON.parse(await call(1001, "pop", "ruby", "host-1", 1));
  assert.deepEqual([job.jid, job.klass, job.state, job.worker, job.data, job.expires], ["a", "Job", "running", "host-1", '{"n":1}', 1061]);
  assert.equal(await call(1002, "heartbeat", "a", "host-1", "{}"), 1062);
  const zcards = client.multi();
  for (const kind of ["locks", "work", "scheduled", "depends"]) zcards.zCard("ql:q:ruby-" + kind);
  assert.deepEqual(await zcards.exec(), [1, 0, 1, 1]);
  await assert.rejects(call(1003, "complete", "a", "host-2", "ruby", "{}"), (e) => {
    const m = /^ERR user_script:\d+: (.*) script: [0-9a-f]{40}, on @user_script:\d+\.$/.exec(e.message);
    assert.equal(m && m[1], "Complete(): Job a has been handed out to another worker: host-1");
    return true;
  });
  assert.equal(await call(1003, "complete", "a", "host-1", "ruby", "{}"), "complete");
  assert.equal(JSON.parse(await call(1004, "get", "c")).state, "waiting");
  assert.equal(await call(1004, "cancel", "c").then((all) => all.join()), "c");
  assert.deepEqual(await call(1004, "jobs", "scheduled", "ruby"), ["b"]);
  assert.deepEqual(await call(1004, "jobs", "complete"), ["a"]);
  assert.equal(await call(1004, "get", "c"), null);
}

// A worker's parent listens on a channel of its own besides that of the worker, and ends with a message to itself.
async function listens(client, call) {
  const ear = client.duplicate();
  await ear.connect();
  const heard = [];
  let wake = () => {};
  const listener = (message, channel) => {
    heard.push(channel + " " + message);
    wake();
  };
  await ear.subscribe(["ql:w:host-1", "private"], listener);
  await ear.pSubscribe("ql:l*", listener);
  await call(2000, "put", "", "talk", "t", "Job", "{}", 0);
  await call(2000, "pop", "talk", "host-1", 1);
  await call(2001, "timeout", "t");
  assert.equal(await client.publish("private", "disconnect"), 1);
  const lost = '{"jid":"t","event":"lock_lost","worker":"host-1"}';
  while (heard.length < 4) await new Promise((resolve) => (wake = resolve));
  assert.deepEqual(heard, ['ql:log {"jid":"t","event":"put","queue":"talk"}', "ql:w:host-1 " + lost, "ql:log " + lost, "private disconnect"]);
  await ear.unsubscribe(["ql:w:host-1", "private"]);
  await ear.pUnsubscribe();
  assert.equal(await ear.ping(), "PONG");
  await ear.quit();
}

async function pipelines(client, call) {
  const jids = Array.from({ length: 500 }, (_, i) => "many-" + i);
  assert.deepEqual(await Promise.all(jids.map((jid) => call(3000, "put", "", "many", jid, "Job", "{}", 0))), jids);
  assert.equal(await call(3000, "length", "many"), 500);
  const took = await Promise.all(Array.from({ length: 8 }, (_, i) => call(3001, "pop", "many", "w" + i, 100)));
  const popped = took.flatMap((list) => (list === "{}" ? [] : JSON.parse(list).map((job) => job.jid)));
  assert.deepEqual(popped.sort(), jids.sort());
  assert.equal(await client.eval(script, { arguments: ["length", "3001", "many"] }), 500);
}

async function main([address, password]) {
  const [host, port] = address.split(":");
  const socket = { host, port: Number(port), reconnectStrategy: false, connectTimeout: 120_000 };
  if (process.env.REDIS_CA) Object.assign(socket, { tls: true, ca: fs.readFileSync(process.env.REDIS_CA) });
  const client = createClient({ socket, password: password || undefined, name: "flows" });
  await client.connect();
  const call = caller(client);
  for (const flow of [connects, runsJobs, listens, pipelines]) {
    await flow(client, call);
    process.stdout.write(flow.name + "\n");
  }
  await client.quit();
}

main(process.argv.slice(2)).catch((e) => {
  process.stderr.write(e.stack + "\n");
  process.exit(1);
});
