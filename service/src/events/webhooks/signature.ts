import { createHmac, createSecretKey, type KeyObject, randomBytes } from "node:crypto";

const SECRET_PREFIX = "whsec_";
const SECRET_BYTES = 32;

export const generateWebhookSecret = (): string =>
  SECRET_PREFIX + randomBytes(SECRET_BYTES).toString("base64");

export interface SignatureFormat {
  /** What X-Service-Signature covers: `${timestamp}.${body}`, or the body alone. */
  content: "timestamp_body" | "body";
  /** Whether the signature begins with `sha256=`. */
  prefix: boolean;
}

export interface Message {
  /** The event's id; all deliveries of an event share it. */
  id: string;
  attempt: number;
  /** Unix time of this attempt in whole seconds. */
  timestamp: number;
  /** The exact bytes that are sent. */
  body: string;
}

const hmac = (key: string | KeyObject, text: string) => createHmac("sha256", key).update(text);

/** Keyed with the whole secret string, in lower-case hex, as the specification describes for receivers. */
function ownSignature(secret: string, { timestamp, body }: Message, form: SignatureFormat): string {
  const digest = hmac(secret, form.content === "body" ? body : `${timestamp}.${body}`).digest("hex");
  return form.prefix ? `sha256=${digest}` : digest;
}

/** Standard Webhooks 1.0.0: keyed with the decoded part of the secret, over id, timestamp and body. */
function standardSignature(secret: string, { id, timestamp, body }: Message): string {
  // Bytes as the key take Node five times as long.
  const key = createSecretKey(secret.slice(SECRET_PREFIX.length), "base64");
  return `v1,${hmac(key, `${id}.${timestamp}.${body}`).digest("base64")}`;
}

/**
 * Our headers under `headerPrefix`, and those of Standard Webhooks. Each active secret signs, newest first, so that a receiver can
 * verify with any of them.
 */
export function createSignatureHeaders(
  headerPrefix: string,
  message: Message,
  secrets: readonly string[],
  form: SignatureFormat,
): Record<string, string> {
  const [newest, previous] = secrets;
  return {
    [`${headerPrefix}Event-ID`]: message.id,
    [`${headerPrefix}Timestamp`]: String(message.timestamp),
    [`${headerPrefix}Attempt`]: String(message.attempt),
    ...(newest && { [`${headerPrefix}Signature`]: ownSignature(newest, message, form) }),
    ...(previous && { [`${headerPrefix}Signature-Previous`]: ownSignature(previous, message, form) }),
    "webhook-id": message.id,
    "webhook-timestamp": String(message.timestamp),
    "webhook-signature": secrets.map((secret) => standardSignature(secret, message)).join(" "),
  };
}
