// graphile-worker, as its documentation's performance page sets it.

import { createRequire } from "node:module";
import path from "node:path";
import { Starts, byClients, every, main, now } from "../phases.mjs";

const require = createRequire(path.join(process.env.BENCH_NODE, "package.json"));
const { Logger, makeWorkerUtils, run, runOnce } = require("graphile-worker");

const CONCURRENCY = 24;

const preset = (url, worker = {}) => ({
  worker: {
    connectionString: url,
    maxPoolSize: CONCURRENCY + 1,
    concurrentJobs: CONCURRENCY,
    logger: new Logger(() => () => {}),
    ...worker,
  },
});
// What the page sets for throughput; the latency phase leaves it out.
const BATCHING = process.env.BENCH_BATCHING
  ? { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }
  : {};

async function utilities(options) {
  const utils = await makeWorkerUtils({ preset: preset(options.url) });
  await utils.migrate();
  return { utils, add: (number) => utils.addJob("noop", { number }) };
}

async function admission(options, go) {
  const { add } = await utilities(options);
  await byClients(options.clients, options.clients, add);
  await go();
  return { seconds: await byClients(options.clients, options.jobs, add) };
}

async function drain(options, go) {
  const { utils } = await utilities(options);
  await utils.addJobs(
    Array.from({ length: options.jobs }, (_, number) => ({ identifier: "noop", payload: { number } })),
  );
  const starts = new Starts(options.jobs);
  await go();
  const start = now();
  await runOnce({
    preset: preset(options.url, BATCHING),
    taskList: { noop: ({ number }) => starts.began(number) },
  });
  await starts.all();
  return { seconds: now() - start };
}

async function pickup(options, go) {
  const { add } = await utilities(options);
  await go();
  return { calls: await every(options.every_seconds, options.jobs, add), starts: null };
}

async function hear(options, go) {
  await utilities(options);
  const starts = new Starts(options.jobs);
  const runner = await run({
    preset: preset(options.url),
    taskList: { noop: ({ number }) => starts.began(number) },
    noHandleSignals: true,
  });
  await go();
  const at = await starts.all();
  await runner.stop();
  return { starts: at };
}

await main({ admission, drain, pickup, hear });
