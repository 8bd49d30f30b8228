import { firstOf } from "../../core/required.ts";
import { createSignatureHeaders, type SignatureFormat } from "./signature.ts";

export type VerificationResult = "right" | "wrong" | "missing";

const SIGNATURE_FORMATS: SignatureFormat[] = (["timestamp_body", "body"] as const).flatMap((content) => [
  { content, prefix: false },
  { content, prefix: true },
]);

interface SignedMessage {
  headers: Record<string, string>;
  body: string;
}

/**
 * Each kind of signature that is present must match, ours in any format that an endpoint may have. During a rotation
 * either secret is enough.
 */
export function verifySignature(
  headerPrefix: string,
  signed: SignedMessage,
  secrets: readonly string[],
): VerificationResult {
  const own = headerPrefix.toLowerCase();
  const came = {
    own: [`${own}signature`, `${own}signature-previous`].flatMap((name) => signed.headers[name] ?? []),
    standard: signed.headers["webhook-signature"]?.split(" ") ?? [],
  };
  if (came.own.length + came.standard.length === 0) return "missing";
  const isRight = secrets.some((secret) => {
    const made = createSignatures(headerPrefix, signed, secret);
    return (["own", "standard"] as const).every(
      (kind) => came[kind].length === 0 || came[kind].some((signature) => made[kind].includes(signature)),
    );
  });
  return isRight ? "right" : "wrong";
}

function createSignatures(headerPrefix: string, { headers, body }: SignedMessage, secret: string) {
  const message = {
    id: headers["webhook-id"] ?? "",
    attempt: 1,
    timestamp: Number(headers["webhook-timestamp"] ?? headers[`${headerPrefix.toLowerCase()}timestamp`]),
    body,
  };
  const made = SIGNATURE_FORMATS.map((form) => createSignatureHeaders(headerPrefix, message, [secret], form));
  return {
    own: made.map((headers) => headers[`${headerPrefix}Signature`]!),
    standard: [firstOf(made)["webhook-signature"]!],
  };
}
