// BullMQ on a server that speaks Redis' protocol.

import { createRequire } from "node:module";
import path from "node:path";
import { Starts, byClients, every, main, now } from "../phases.mjs";

const require = createRequire(path.join(process.env.BENCH_NODE, "package.json"));
const { Queue, Worker } = require("bullmq");

const CONCURRENCY = 64;

const connection = (options) => ({ path: options.url, maxRetriesPerRequest: null }); // a Unix socket, as for the rest

function queue(options) {
  const made = new Queue("bench", { connection: connection(options) });
  return { made, add: (number) => made.add("noop", { number }) };
}

async function working(options, starts, ended = () => {}) {
  const worker = new Worker("bench", async (job) => starts.began(job.data.number), {
    connection: connection(options),
    concurrency: CONCURRENCY,
    autorun: false,
  });
  worker.on("completed", ended);
  await worker.waitUntilReady();
  return worker;
}

async function admission(options, go) {
  const { add } = queue(options);
  await byClients(options.clients, options.clients, add);
  await go();
  return { seconds: await byClients(options.clients, options.jobs, add) };
}

async function drain(options, go) {
  const { made } = queue(options);
  for (let first = 0; first < options.jobs; first += 1000) {
    const length = Math.min(1000, options.jobs - first);
    await made.addBulk(Array.from({ length }, (_, n) => ({ name: "noop", data: { number: first + n } })));
  }
  const starts = new Starts(options.jobs);
  let done = 0;
  let tell;
  const all = new Promise((resolve) => (tell = resolve));
  const worker = await working(options, starts, () => ++done === options.jobs && tell());
  await go();
  const start = now();
  worker.run();
  await all;
  return { seconds: now() - start };
}

async function pickup(options, go) {
  const { made, add } = queue(options);
  await made.waitUntilReady();
  await go();
  return { calls: await every(options.every_seconds, options.jobs, add), starts: null };
}

async function hear(options, go) {
  const starts = new Starts(options.jobs);
  const worker = await working(options, starts);
  worker.run();
  await go();
  return { starts: await starts.all() };
}

await main({ admission, drain, pickup, hear });
