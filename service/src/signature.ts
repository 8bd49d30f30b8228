import { createHmac } from "node:crypto";
import { isSameDigest } from "./digest.ts";

/** For text that leaves the service and comes back. The first secret signs, all of them verify. */
export interface Signer {
  sign(text: string): string;
  isSigned(text: string, signature: string): boolean;
}

export function createSigner(secrets: Buffer[]): Signer {
  const signatureBy = (secret: Buffer, text: string) =>
    createHmac("sha256", secret).update(text).digest("base64url");
  return {
    sign: (text) => signatureBy(secrets[0]!, text),
    isSigned: (text, signature) =>
      secrets.some((secret) => isSameDigest(Buffer.from(signatureBy(secret, text)), Buffer.from(signature))),
  };
}
