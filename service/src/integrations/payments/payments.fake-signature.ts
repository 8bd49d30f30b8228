import { createHmac } from "node:crypto";
import { isSameDigest } from "../../core/digest.ts";
import { WebhookSignatureError } from "./payments.ts";

/** How far a notice's time may lie from ours: nobody can send one again that was overheard long ago. */
const TOLERANCE_SECONDS = 300;

const secondsOf = (at: Date): number => Math.floor(at.getTime() / 1000);

const signatureOf = (secret: Buffer, seconds: string, body: Buffer | string): string =>
  createHmac("sha256", secret).update(`${seconds}.`).update(body).digest("hex");

/** What stands in `Fake-Signature`: the time, and the HMAC over time and body. */
export function signNotice(secret: Buffer, body: string, at: Date): string {
  const seconds = String(secondsOf(at));
  return `t=${seconds},v1=${signatureOf(secret, seconds, body)}`;
}

/** Throws a `NoticeRefused` unless the notice is the provider's and of now. */
export function mustBeSigned(secret: Buffer, body: Buffer, header: string | undefined, now: Date): void {
  const [, seconds, signature] = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/.exec(header ?? "") ?? [];
  if (!seconds || !signature)
    throw new WebhookSignatureError("Fake-Signature is missing, or not t=<seconds>,v1=<hex>");
  const expected = signatureOf(secret, seconds, body);
  if (!isSameDigest(Buffer.from(expected), Buffer.from(signature)))
    throw new WebhookSignatureError("Fake-Signature does not fit the body");
  if (Math.abs(secondsOf(now) - Number(seconds)) > TOLERANCE_SECONDS)
    throw new WebhookSignatureError(`Fake-Signature is more than ${TOLERANCE_SECONDS} seconds old`);
}
