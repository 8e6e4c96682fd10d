// The other end of trial.py for systems on Node: the twin of phases.py.

import readline from "node:readline";

const PATIENCE_MS = 120_000;

export const now = () => Number(process.hrtime.bigint()) / 1e9; // CLOCK_MONOTONIC, as Python's monotonic()

const say = (words) => process.stdout.write(JSON.stringify(words) + "\n");

export async function main(phases) {
  const options = JSON.parse(process.argv[2]);
  const lines = readline.createInterface({ input: process.stdin });
  let began;
  const go = async () => {
    const word = new Promise((resolve) => lines.once("line", resolve));
    say({ ready: true });
    await word;
    began = process.cpuUsage();
  };
  const figures = await phases[options.phase](options, go);
  const used = process.cpuUsage(began);
  say({ cpu_seconds: (used.user + used.system) / 1e6, ...figures });
  process.exit(0);
}

// Seconds for `jobs` calls by `clients`, each its next one when the last is answered.
export async function byClients(clients, jobs, one) {
  let next = 0;
  const client = async () => {
    while (next < jobs) await one(next++);
  };
  const start = now();
  await Promise.all(Array.from({ length: clients }, client));
  return now() - start;
}

// Calls at a steady pace, whether or not the last one was answered; when each call was made.
export async function every(seconds, jobs, one) {
  const first = now() + seconds;
  const calls = [];
  const pending = [];
  for (let number = 0; number < jobs; number++) {
    const wait = first + number * seconds - now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait * 1000));
    calls.push(now());
    pending.push(one(number));
  }
  await Promise.all(pending);
  return calls;
}

// When each job began to run.
export class Starts {
  #at = new Map();
  #jobs;
  #tell;
  #all = new Promise((resolve) => (this.#tell = resolve));

  constructor(jobs) {
    this.#jobs = jobs;
  }

  began(number) {
    if (!this.#at.has(number)) this.#at.set(number, now());
    if (this.#at.size === this.#jobs) this.#tell();
  }

  async all() {
    const late = new Promise((_, reject) =>
      setTimeout(() => reject(new Error("jobs were never started")), PATIENCE_MS).unref(),
    );
    await Promise.race([this.#all, late]);
    return Array.from({ length: this.#jobs }, (_, number) => this.#at.get(number));
  }
}
