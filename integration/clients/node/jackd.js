// Plays flows of the npm package jackd: node jackd.js HOST PORT. Prints the flows that held.
"use strict";

const assert = require("node:assert/strict");
const JackdClient = require("jackd").default ?? require("jackd");

const [host, port] = process.argv.slice(2);
const connect = () => new JackdClient().connect({ host, port: Number(port) });

const flows = {
  async bodies(client) {
    await client.use("bodies");
    await client.watch("bodies");
    await client.ignore("default");
    for (const body of ["\u0000\r\n\u00ff", "a\r\nRESERVED 1 2\r\n", "ü".repeat(32_000)]) {
      const id = await client.put(body, { priority: 5, ttr: 30 });
      const job = await client.reserveWithTimeout(0);
      assert.equal(job.id, id);
      assert.equal(Buffer.from(job.payload).toString(), body);
      await client.delete(id);
    }
    const id = await client.put({ to: "Ann ü" });
    assert.equal(Buffer.from((await client.reserve()).payload).toString(), '{"to":"Ann ü"}');
    await client.delete(id);
    await assert.rejects(client.put("x".repeat(65536)), /JOB_TOO_BIG/);
  },
  async life(client) {
    await client.use("life");
    await client.watch("life");
    const id = await client.put("x", { delay: 60 });
    assert.equal((await client.peekDelayed()).id, id);
    await client.kickJob(id);
    await client.reserveJob(id);
    await client.touch(id);
    await client.release(id, { priority: 3, delay: 0 });
    await client.reserve();
    await client.bury(id, 4);
    assert.equal((await client.peekBuried()).id, id);
    assert.equal(Number(await client.kick(10)), 1);
    assert.equal((await client.peekReady()).id, id);
    assert.match(Buffer.from(await client.statsJob(id)).toString(), /^---\nid: \d+\ntube: life\nstate: ready\npri: 4\n/);
    await client.delete(id);
    await assert.rejects(client.peek(id), /NOT_FOUND/);
    await assert.rejects(client.reserveWithTimeout(0), /TIMED_OUT/);
  },
  async tubes(client) {
    await client.use("t-1");
    assert.equal(await client.listTubeUsed(), "t-1");
    assert.match(Buffer.from(await client.listTubesWatched()).toString(), /^---\n- /);
    assert.match(Buffer.from(await client.statsTube("t-1")).toString(), /\ncurrent-using: 1\n/);
    assert.match(Buffer.from(await client.listTubes()).toString(), /\n- t-1\n/);
    assert.match(Buffer.from(await client.stats()).toString(), /\ndraining: false\n/);
  },
  async waits(client) {
    const other = await connect();
    await client.watch("waits");
    await other.use("waits");
    const waiting = client.reserve();
    await new Promise((resolve) => setTimeout(resolve, 100));
    const id = await other.put("late");
    assert.equal((await waiting).id, id);
    await client.delete(id);
    await other.quit();
  },
};

(async () => {
  for (const [name, flow] of Object.entries(flows)) {
    const client = await connect();
    await flow(client);
    await client.quit();
    console.log(name);
  }
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
