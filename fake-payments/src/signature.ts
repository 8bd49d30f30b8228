import { createHmac, timingSafeEqual } from "node:crypto";

/** The tolerance between both clocks. It limits how long a recorded webhook can be replayed. */
const TOLERANCE_SECONDS = 300;

const secondsOf = (at: Date): number => Math.floor(at.getTime() / 1000);

const signatureOf = (secret: Buffer, seconds: string, body: Buffer | string): string =>
  createHmac("sha256", secret).update(`${seconds}.`).update(body).digest("hex");

/** The `Fake-Signature` header: the time, and the HMAC over time and body. */
export function signWebhook(secret: Buffer, body: string, at: Date): string {
  const seconds = String(secondsOf(at));
  return `t=${seconds},v1=${signatureOf(secret, seconds, body)}`;
}

/** The reason to refuse a webhook; null: it is authentic and current. `header` is `Fake-Signature`. */
export function signatureProblem(
  secret: Buffer,
  body: Buffer,
  header: string | undefined,
  now: Date,
): string | null {
  const [, seconds, signature] = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/.exec(header ?? "") ?? [];
  if (!seconds || !signature) return "Fake-Signature is missing, or not t=<seconds>,v1=<hex>";
  const expected = signatureOf(secret, seconds, body);
  if (!timingSafeEqual(Buffer.from(expected), Buffer.from(signature)))
    return "Fake-Signature does not match the body";
  if (Math.abs(secondsOf(now) - Number(seconds)) > TOLERANCE_SECONDS)
    return `Fake-Signature is more than ${TOLERANCE_SECONDS} seconds old`;
  return null;
}
