import type { WebhookEvent } from "./types.gen.ts";

export type { WebhookEvent };

/** Why a delivery was not accepted. */
export type WebhookProblem =
  | "parsed-body"
  | "missing-header"
  | "secret-format"
  | "signature"
  | "timestamp"
  | "content";

export class WebhookError extends Error {
  override name = "WebhookError";
  readonly problem: WebhookProblem;

  constructor(problem: WebhookProblem, message: string) {
    super(message);
    this.problem = problem;
  }
}

/** Of Fetch, or of Node: names in any case. */
export type WebhookHeaders = Headers | Record<string, string | string[] | undefined>;

export interface UnwrapOptions {
  /** How far the time of a delivery may be from this machine's clock. Default: 300. */
  toleranceSeconds?: number | undefined;
  /** The prefix of the service's own headers. Default: `X-Service-`. */
  headerPrefix?: string | undefined;
  /** Accepts the header `X-Service-Signature` of an endpoint with `signatureContent: "body"`, which anyone who saw a delivery can send again. */
  allowsBodySignature?: boolean | undefined;
  /** Unix milliseconds. Default: now. */
  now?: number | undefined;
}

type RawBody = string | Uint8Array<ArrayBuffer> | ArrayBuffer;

const DEFAULT_PREFIX = "X-Service-";
const encode = (text: string) => new TextEncoder().encode(text);

/**
 * Verifies a delivery and returns its event. `rawBody` is the body as it came, before any parsing. `secret` is that of the endpoint, or
 * several while it is rotated. Checks the Standard Webhooks signature, or the service's own where a proxy removed that one.
 * @throws WebhookError, which names the usual mistake.
 */
export async function unwrap(
  rawBody: RawBody,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  options: UnwrapOptions = {},
): Promise<WebhookEvent> {
  const body = toBytes(rawBody);
  const { content, signatures, keyOf } = findSignatures(toHeaders(headers), body, options);
  for (const each of [secret].flat()) {
    const key = await importKey(keyOf(each));
    // subtle.verify compares in constant time.
    for (const signature of signatures)
      if (await crypto.subtle.verify("HMAC", key, signature, content)) return parseEvent(body);
  }
  throw new WebhookError(
    "signature",
    "Wrong signature: the secret of another endpoint, or a body that was parsed and written again. Pass the raw bytes.",
  );
}

export interface SignOptions {
  /** The event's id. Default: the `id` of the body. */
  id?: string | undefined;
  /** Unix seconds. Default: now. */
  timestamp?: number | undefined;
  headerPrefix?: string | undefined;
}

/** The headers of a delivery with this body, for tests of a receiver. */
export async function sign(
  rawBody: RawBody,
  secret: string,
  options: SignOptions = {},
): Promise<Record<string, string>> {
  const body = toBytes(rawBody);
  const id = options.id ?? parseEvent(body).id;
  const timestamp = String(options.timestamp ?? Math.floor(Date.now() / 1_000));
  const prefix = (options.headerPrefix ?? DEFAULT_PREFIX).toLowerCase();
  const standard = await hmac(standardKey(secret), join(`${id}.${timestamp}.`, body));
  const own = await hmac(encode(secret), join(`${timestamp}.`, body));
  return {
    "content-type": "application/json",
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${toBase64(standard)}`,
    [`${prefix}event-id`]: id,
    [`${prefix}timestamp`]: timestamp,
    [`${prefix}signature`]: toHex(own),
  };
}

/** What was signed, and the signatures that came with it. */
interface Signed {
  content: Uint8Array<ArrayBuffer>;
  signatures: Uint8Array<ArrayBuffer>[];
  keyOf: (secret: string) => Uint8Array<ArrayBuffer>;
}

function findSignatures(headers: Headers, body: Uint8Array<ArrayBuffer>, options: UnwrapOptions): Signed {
  const prefix = options.headerPrefix ?? DEFAULT_PREFIX;
  const standard = headers.get("webhook-signature");
  if (standard) {
    const at = headers.get("webhook-timestamp");
    mustBeRecent(at, options);
    const content = join(`${headers.get("webhook-id")}.${at}.`, body);
    const signatures = [...standard.matchAll(/(?:^| )v1,(\S+)/g)].map(([, text]) => fromBase64(text!));
    return { content, signatures, keyOf: standardKey };
  }
  const own = ["Signature", "Signature-Previous"].flatMap((name) => headers.get(prefix + name) ?? []);
  if (!own[0])
    throw new WebhookError(
      "missing-header",
      `No webhook-signature or ${prefix}Signature: no delivery, or a proxy removed the headers.`,
    );
  // The last 64 digits: an endpoint may have the prefix "sha256=".
  const signatures = own.map((each) => fromHex(each.slice(-64)));
  if (options.allowsBodySignature) return { content: body, signatures, keyOf: encode };
  const at = headers.get(`${prefix}Timestamp`);
  mustBeRecent(at, options);
  return { content: join(`${at}.`, body), signatures, keyOf: encode };
}

function mustBeRecent(
  timestamp: string | null,
  { toleranceSeconds = 300, now = Date.now() }: UnwrapOptions,
): void {
  const age = Math.round(now / 1_000 - Number(timestamp));
  if (Math.abs(age) <= toleranceSeconds) return;
  throw new WebhookError(
    "timestamp",
    `The delivery is ${age} seconds old (allowed: ${toleranceSeconds}): it was replayed, or this machine's clock is wrong.`,
  );
}

const importKey = (bytes: Uint8Array<ArrayBuffer>) =>
  crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);

const hmac = async (key: Uint8Array<ArrayBuffer>, content: Uint8Array<ArrayBuffer>) =>
  new Uint8Array(await crypto.subtle.sign("HMAC", await importKey(key), content));

/** Standard Webhooks: the key is what stands behind `whsec_`, in base64. */
function standardKey(secret: string): Uint8Array<ArrayBuffer> {
  const key = fromBase64(secret.trim().replace(/^whsec_/, ""));
  if (key.length === 0)
    throw new WebhookError("secret-format", "The secret is not that of POST /webhooks: whsec_ and base64.");
  return key;
}

const toHeaders = (headers: WebhookHeaders): Headers =>
  headers instanceof Headers
    ? headers
    : new Headers(
        // Node's HTTP/2 adds pseudo-headers such as ":path".
        Object.entries(headers as Record<string, string>).filter(([name, value]) => value && name[0] !== ":"),
      );

function toBytes(rawBody: RawBody): Uint8Array<ArrayBuffer> {
  if (typeof rawBody === "string") return encode(rawBody);
  if (rawBody instanceof Uint8Array || rawBody instanceof ArrayBuffer) return new Uint8Array(rawBody);
  throw new WebhookError(
    "parsed-body",
    "The body was parsed already. Pass the raw bytes: express.raw(), or await request.text().",
  );
}

function parseEvent(body: Uint8Array<ArrayBuffer>): WebhookEvent {
  try {
    return JSON.parse(new TextDecoder().decode(body)) as WebhookEvent;
  } catch {
    throw new WebhookError("content", "The body is not JSON.");
  }
}

const join = (start: string, body: Uint8Array): Uint8Array<ArrayBuffer> =>
  new Uint8Array([...encode(start), ...body]);

/** What is no base64 is no bytes. */
function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}

const toBase64 = (bytes: Uint8Array) => btoa(String.fromCharCode(...bytes));
const toHex = (bytes: Uint8Array) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const fromHex = (text: string) =>
  Uint8Array.from(text.match(/[\da-f]{2}/gi) ?? [], (pair) => Number(`0x${pair}`));
