// Judges deliveries by the JavaScript verifier: a JSON line in, a JSON line out.

import readline from "node:readline";

const { verify, WebhookVerificationError } = await import(process.argv[2]);

for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const { body, headers, secrets, options } = JSON.parse(line);
  let verdict;
  try {
    verdict = { event: await verify(Buffer.from(body, "base64"), headers, secrets, options) };
  } catch (error) {
    verdict = error instanceof WebhookVerificationError ? { reason: error.reason } : { broke: `${error.stack}` };
  }
  process.stdout.write(`${JSON.stringify(verdict)}\n`);
}
