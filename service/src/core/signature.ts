import { createHmac, createSecretKey, type KeyObject } from "node:crypto";
import { isSameDigest } from "./digest.ts";
import { firstOf } from "./required.ts";

/** Signs text that clients send back. The first secret signs; all of them verify. */
export interface Signer {
  sign(text: string): string;
  verify(text: string, signature: string): boolean;
}

export function createSigner(secrets: Buffer[]): Signer {
  // Created once: creating a key from bytes costs more than a signature.
  const keys = secrets.map((secret) => createSecretKey(secret));
  const signatureBy = (key: KeyObject, text: string) =>
    createHmac("sha256", key).update(text).digest("base64url");
  return {
    sign: (text) => signatureBy(firstOf(keys), text),
    verify: (text, signature) =>
      keys.some((key) => isSameDigest(Buffer.from(signatureBy(key, text)), Buffer.from(signature))),
  };
}
