// The receiving end of Tempa's webhooks: is this delivery ours, unaltered and fresh?
//
// One file, no dependencies, no build: Node 18 or later, browsers, Deno, Bun and workers (WebCrypto).
// It decides as Python's tempa.webhooks.verify does, reason by reason; a test compares the two.
//
// SPDX-License-Identifier: Apache-2.0

const STANDARD = ["webhook-id", "webhook-timestamp", "webhook-signature"];
const HEX = ["x-webhook-signature", "x-webhook-signature-previous"];
const SECRET_PREFIX = "whsec_"; // HMAC
const PRIVATE_KEY_PREFIX = "whsk_"; // Ed25519: signs, and has no place here
const PUBLIC_KEY_PREFIX = "whpk_"; // Ed25519: verifies
const ED25519_ENTRIES_MAX = 16; // looked at: a header has room for hundreds
const ED25519_KEY_BYTES = 32;
const TIMESTAMP = /^[0-9]{1,12}$/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * The request must not be trusted: answer 400 or 401 and stop.
 *
 * `reason` is one of `missing_header`, `malformed_header` (it does not look like a delivery),
 * `timestamp_too_old`, `timestamp_too_new` (a replay, or a clock that is off), `no_match` (no secret
 * signed these very bytes), `invalid_secret` (what was given to `verify` is none), `invalid_body`
 * (no raw bytes; or signed, yet no event), `id_mismatch` (the header names another event).
 */
export class WebhookVerificationError extends Error {
  constructor(reason, detail) {
    super(`${reason}: ${detail}`);
    this.name = "WebhookVerificationError";
    this.reason = reason;
    this.detail = detail;
  }
}

/**
 * The event in a delivery, once its signature, age and id have been checked.
 *
 * @param {Uint8Array | ArrayBuffer} body The raw bytes as they came, not parsed and written again.
 * @param {Headers | Map<string, string> | Record<string, string | string[] | undefined>} headers
 *   The request's headers: of fetch, of Node's `request.headers`, or a plain object.
 * @param {string | string[]} secrets The endpoint's `whsec_...` or public `whpk_...`, or several of
 *   either kind while it rotates.
 * @param {object} [options]
 * @param {number} [options.toleranceSeconds] How far the attempt's timestamp may lie from `now`, either
 *   way: 300. Remember the ids you have handled for twice as long.
 * @param {number} [options.now] Unix seconds; this machine's clock if absent.
 * @param {boolean} [options.allowUnsignedTimestamp] Also accept a delivery that has
 *   `X-Webhook-Signature` alone: it proves no time, so a captured one can be replayed for ever.
 * @returns {Promise<Record<string, any>>}
 * @throws {WebhookVerificationError} Whatever else came, however broken.
 */
export async function verify(body, headers, secrets, options = {}) {
  const { toleranceSeconds = 300, now = Date.now() / 1000, allowUnsignedTimestamp = false } = options;
  const raw = rawBytes(body);
  const found = readHeaders(headers);
  const keys = readSecrets(secrets);
  if (allowUnsignedTimestamp && !STANDARD.some((name) => found.has(name))) {
    await checkHex(raw, found, keys);
    return readEvent(raw, null);
  }
  const [id, timestamp, signature] = STANDARD.map((name) => header(found, name));
  checkAge(timestamp, now, toleranceSeconds);
  await checkStandard(raw, id, timestamp, signature, keys);
  return readEvent(raw, id);
}

function fail(reason, detail) {
  throw new WebhookVerificationError(reason, detail);
}

/** A copy: nobody can change the bytes between the check and the reading. */
function rawBytes(body) {
  if (body instanceof ArrayBuffer) return new Uint8Array(body.slice(0));
  if (ArrayBuffer.isView(body)) {
    return new Uint8Array(body.buffer, body.byteOffset, body.byteLength).slice();
  }
  return fail("invalid_body", "Pass the request's raw bytes, as they came.");
}

/** The headers that concern us, by lower-case name. */
function readHeaders(headers) {
  const found = new Map();
  for (const [rawName, rawValue] of headerEntries(headers)) {
    const name = text(rawName).toLowerCase();
    if (!STANDARD.includes(name) && !HEX.includes(name)) continue;
    if (found.has(name)) fail("malformed_header", `${name} is there twice.`);
    found.set(name, text(rawValue).replace(/^[ \t]+|[ \t]+$/g, ""));
  }
  return found;
}

function headerEntries(headers) {
  if (headers === null || typeof headers !== "object" || Array.isArray(headers)) {
    fail("malformed_header", "Pass the request's headers as an object.");
  }
  const entries = typeof headers.entries === "function" ? [...headers.entries()] : Object.entries(headers);
  return entries.filter(([, value]) => value !== undefined);
}

function text(value) {
  return typeof value === "string" ? value : "";
}

function header(found, name) {
  if (!found.has(name)) {
    const hint = " X-Webhook-Signature alone proves no time: see allowUnsignedTimestamp.";
    fail("missing_header", `${name} is missing.${found.has(HEX[0]) ? hint : ""}`);
  }
  return found.get(name) || fail("malformed_header", `${name} is empty.`);
}

function readSecrets(secrets) {
  const keys = typeof secrets === "string" ? [secrets] : secrets;
  if (!Array.isArray(keys) || !keys.length || !keys.every((key) => typeof key === "string" && key)) {
    fail("invalid_secret", "Give one secret, or a list of them.");
  }
  if (keys.some((key) => key.startsWith(PRIVATE_KEY_PREFIX))) {
    fail("invalid_secret", "whsk_ is what signs; give the public key, whpk_.");
  }
  return {
    shared: keys.filter((key) => !key.startsWith(PUBLIC_KEY_PREFIX)),
    public: keys.filter((key) => key.startsWith(PUBLIC_KEY_PREFIX)),
  };
}

function checkAge(timestamp, now, toleranceSeconds) {
  if (!TIMESTAMP.test(timestamp)) fail("malformed_header", "webhook-timestamp is not a whole number.");
  const age = now - Number(timestamp);
  if (age < -toleranceSeconds) fail("timestamp_too_new", "The attempt's time lies ahead of this clock.");
  if (!(age <= toleranceSeconds)) fail("timestamp_too_old", "The attempt is older than the tolerance.");
}

/** Accept if any secret made any entry of its own kind. Every pair is compared, none cut short. */
async function checkStandard(body, id, timestamp, signatureHeader, keys) {
  const given = signatures(signatureHeader);
  if (LONE_SURROGATE.test(id)) fail("malformed_header", "webhook-id is not valid text.");
  const message = joined(new TextEncoder().encode(`${id}.${timestamp}.`), body);
  const bySecret = await matchesSecret(message, keys.shared, given.v1);
  const byKey = await matchesKey(message, keys.public, given.v1a);
  if (!bySecret && !byKey) fail("no_match", "No signature matches these bytes and secrets.");
}

/** The entries by version. Malformed ones and others are passed over: a good one may stand beside. */
function signatures(signatureHeader) {
  const pairs = signatureHeader.split(" ").map((entry) => {
    const comma = entry.indexOf(",");
    return comma < 0 ? [entry, ""] : [entry.slice(0, comma), entry.slice(comma + 1)];
  });
  if (!pairs.some(([version, value]) => version && value)) {
    fail("malformed_header", "webhook-signature has no entry like v1,<base64>.");
  }
  const of = (wanted) =>
    pairs.flatMap(([version, value]) => (version === wanted && value && decoded(value)) || []);
  return { v1: of("v1"), v1a: of("v1a") };
}

async function matchesSecret(message, secrets, given) {
  const keys = secrets.map(secretKey);
  const expected = await Promise.all(keys.map((key) => hmacSha256(key, message)));
  return anyMatch(expected, given);
}

async function matchesKey(message, keys, given) {
  let matches = 0;
  for (const key of await Promise.all(keys.map(publicKey))) {
    for (const signature of given.slice(0, ED25519_ENTRIES_MAX)) {
      matches += await (await subtle()).verify("Ed25519", key, signature, message);
    }
  }
  return matches > 0;
}

async function checkHex(body, found, keys) {
  const given = [header(found, HEX[0]), ...(found.has(HEX[1]) ? [found.get(HEX[1])] : [])];
  if (keys.shared.some((secret) => LONE_SURROGATE.test(secret))) {
    fail("invalid_secret", "A secret is not valid text.");
  }
  const encoder = new TextEncoder();
  const digests = await Promise.all(
    keys.shared.map((secret) => hmacSha256(encoder.encode(secret), body)),
  );
  const expected = digests.map((digest) => encoder.encode(hex(digest)));
  const offered = given.map((value) => encoder.encode(value.toLowerCase()));
  if (!anyMatch(expected, offered)) fail("no_match", "No signature matches these bytes and secrets.");
}

function secretKey(secret) {
  const key = decoded(secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret);
  return key?.length ? key : fail("invalid_secret", "a signing secret is base64, usually behind whsec_.");
}

async function publicKey(spelled) {
  const key = decoded(spelled.slice(PUBLIC_KEY_PREFIX.length));
  if (key?.length !== ED25519_KEY_BYTES) {
    fail("invalid_secret", `an Ed25519 key is whpk_ and the base64 of ${ED25519_KEY_BYTES} bytes.`);
  }
  try {
    return await (await subtle()).importKey("raw", key, "Ed25519", false, ["verify"]);
  } catch {
    return fail("invalid_secret", "this runtime's WebCrypto has no Ed25519.");
  }
}

async function hmacSha256(key, message) {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const crypto = await subtle();
  const imported = await crypto.importKey("raw", key, algorithm, false, ["sign"]);
  return new Uint8Array(await crypto.sign("HMAC", imported, message));
}

/** Node 18 has WebCrypto, but not yet as a global. */
async function subtle() {
  return (globalThis.crypto ?? (await import("node:crypto")).webcrypto).subtle;
}

/** Whether any pair is equal. Every pair is compared to its end, so that the time tells nothing. */
function anyMatch(expected, given) {
  let matches = 0;
  for (const one of expected) for (const other of given) matches += same(one, other);
  return matches > 0;
}

function same(one, other) {
  let difference = one.length ^ other.length;
  for (let at = 0; at < one.length; at += 1) difference |= one[at] ^ (other[at] ?? 0);
  return difference === 0 ? 1 : 0;
}

function decoded(value) {
  return BASE64.test(value) ? Uint8Array.from(atob(value), (letter) => letter.charCodeAt(0)) : null;
}

function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function joined(head, body) {
  const whole = new Uint8Array(head.length + body.length);
  whole.set(head);
  whole.set(body, head.length);
  return whole;
}

function readEvent(body, id) {
  let event;
  try {
    event = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body));
  } catch {
    fail("invalid_body", "The body is not valid JSON.");
  }
  const isObject = event !== null && typeof event === "object" && !Array.isArray(event);
  if (!isObject || !Object.hasOwn(event, "id") || typeof event.id !== "string") {
    fail("invalid_body", "The body is not an event with an id.");
  }
  if (id !== null && event.id !== id) fail("id_mismatch", "webhook-id names another event than the body.");
  return event;
}
