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

/** Each kind of signature that is present must match; ours in any format of an endpoint. During a rotation each secret is valid. */
export function verifySignature(
  headerPrefix: string,
  signed: SignedMessage,
  secrets: readonly string[],
): VerificationResult {
  const own = headerPrefix.toLowerCase();
  const received = {
    own: [`${own}signature`, `${own}signature-previous`].flatMap((name) => signed.headers[name] ?? []),
    standard: signed.headers["webhook-signature"]?.split(" ") ?? [],
  };
  if (received.own.length + received.standard.length === 0) return "missing";
  const isRight = secrets.some((secret) => {
    const expected = createSignatures(headerPrefix, signed, secret);
    return (["own", "standard"] as const).every(
      (kind) =>
        received[kind].length === 0 || received[kind].some((signature) => expected[kind].includes(signature)),
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
  const expected = SIGNATURE_FORMATS.map((form) =>
    createSignatureHeaders(headerPrefix, message, [secret], form),
  );
  return {
    own: expected.map((headers) => headers[`${headerPrefix}Signature`]!),
    standard: [firstOf(expected)["webhook-signature"]!],
  };
}
