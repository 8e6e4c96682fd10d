// Judges deliveries by the official Standard Webhooks library: a JSON line in, a JSON line out.

import { createRequire } from "node:module";
import readline from "node:readline";

const { Webhook } = createRequire(process.argv[2])("standardwebhooks");

for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const { body, headers, secrets } = JSON.parse(line);
  let verdict;
  try {
    verdict = { event: new Webhook(secrets[0]).verify(Buffer.from(body, "base64"), headers) };
  } catch (error) {
    verdict = { reason: error.message };
  }
  process.stdout.write(`${JSON.stringify(verdict)}\n`);
}
