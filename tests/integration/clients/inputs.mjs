// What a JavaScript program may hand to `verify`: each form of body and headers it meets in the wild.

import assert from "node:assert/strict";

const { verify, WebhookVerificationError } = await import(process.argv[2]);
const { body, headers, secrets, options } = JSON.parse(process.argv[3]);
const raw = Buffer.from(body, "base64");
const event = JSON.parse(raw.toString());

async function reasonOf(...given) {
  const error = await verify(...given).then(() => null, (thrown) => thrown);
  assert(error instanceof WebhookVerificationError, `${error?.stack ?? "it verified"}`);
  assert(error instanceof Error && error.message.startsWith(error.reason) && error.detail);
  return error.reason;
}

// bodies: views into larger buffers, whole buffers; text and parsed values are not bytes
const framed = new Uint8Array([1, 2, ...raw, 3]);
for (const bytes of [
  raw,
  new Uint8Array(raw),
  framed.subarray(2, 2 + raw.length),
  new DataView(framed.buffer, 2, raw.length),
  new Uint8Array(raw).buffer,
]) {
  assert.deepEqual(await verify(bytes, headers, secrets, options), event);
}
for (const wrong of [raw.toString(), event, null, undefined, 5, [...raw]]) {
  assert.equal(await reasonOf(wrong, headers, secrets, options), "invalid_body");
}

// headers: of fetch, of Node's request, a Map, a plain object in any case
const shouting = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]));
for (const form of [new Headers(headers), new Map(Object.entries(headers)), shouting, { ...headers, host: "a" }]) {
  assert.deepEqual(await verify(raw, form, secrets, options), event);
}
for (const wrong of [null, undefined, "text", 5, [], Object.entries(headers)]) {
  assert.equal(await reasonOf(raw, wrong, secrets, options), "malformed_header");
}
assert.equal(await reasonOf(raw, { ...headers, "webhook-id": ["a", "b"] }, secrets, options), "malformed_header");
assert.equal(await reasonOf(raw, { ...headers, "webhook-id": undefined }, secrets, options), "missing_header");
assert.equal(await reasonOf(raw, {}, secrets, options), "missing_header");

// secrets: one or several
assert.deepEqual(await verify(raw, headers, secrets[0], options), event);
for (const wrong of ["", [], null, undefined, 5, [""], [null], {}, new Uint8Array(32)]) {
  assert.equal(await reasonOf(raw, headers, wrong, options), "invalid_secret");
}

// without options this machine's clock counts, and what is no number lets nothing pass
assert.equal(await reasonOf(raw, headers, secrets), "timestamp_too_old");
assert.equal(await reasonOf(raw, headers, secrets, { ...options, now: NaN }), "timestamp_too_old");
assert.equal(await reasonOf(raw, headers, secrets, { ...options, toleranceSeconds: NaN }), "timestamp_too_old");

// the caller's bytes are not the ones that are read after the check
const shared = new Uint8Array(raw);
const pending = verify(shared, headers, secrets, options);
shared.fill(0x20);
assert.deepEqual(await pending, event);

console.log("as expected");
