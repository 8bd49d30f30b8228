import { createCipheriv, createDecipheriv, createHash, createSecretKey, randomBytes } from "node:crypto";
import { firstOf } from "./required.ts";

/** 32 bytes for AES-256. The first key of the keyring seals; all of them open. */
export interface MasterKey {
  id: string;
  bytes: Buffer;
}

/** Envelope encryption (AES-256-GCM): the primary master key wraps a data key for each secret. */
export interface Vault {
  /** `context` binds the sealed text to its row and owner. */
  seal(plaintext: string, context: string): string;
  /** Throws if the text was changed, has another context, or was sealed by a key outside the ring. */
  open(sealed: string, context: string): string;
  /** Wraps the data key under the primary key without opening the text. Throws like `open`. */
  rewrap(sealed: string, context: string): string;
  keyIds: string[];
  /** Of the primary key; safe to store and print. */
  fingerprint: string;
}

const FORMAT = "v1";
const TAG_BYTES = 16;
const IV_BYTES = 12;
const CIPHER = "aes-256-gcm";

/** Returns iv · ciphertext · tag. `aad` is not secret and must be equal on decryption. */
export function encrypt(key: Buffer, plaintext: Buffer, aad: string): Buffer {
  const iv = randomBytes(IV_BYTES);
  // A KeyObject is several times as fast as bytes.
  const cipher = createCipheriv(CIPHER, createSecretKey(key), iv, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(aad));
  return Buffer.concat([iv, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

export function decrypt(key: Buffer, box: Buffer, aad: string): Buffer {
  const iv = box.subarray(0, IV_BYTES);
  const tag = box.subarray(box.length - TAG_BYTES);
  // Without authTagLength Node accepts a 4-byte tag, which can be guessed.
  const decipher = createDecipheriv(CIPHER, createSecretKey(key), iv, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(aad)).setAuthTag(tag);
  return Buffer.concat([decipher.update(box.subarray(IV_BYTES, box.length - TAG_BYTES)), decipher.final()]);
}

/** Rejects other spellings: Node ignores unknown characters, so one sealed value would have many texts. */
function decodeBase64url(text: string): Buffer {
  const bytes = Buffer.from(text, "base64url");
  if (bytes.toString("base64url") !== text) throw new Error("not base64url");
  return bytes;
}

export function fingerprintOf(key: MasterKey): string {
  return createHash("sha256").update("stoa master key").update(key.bytes).digest("hex").slice(0, 16);
}

export function createVault(ring: MasterKey[]): Vault {
  if (ring.length === 0) throw new TypeError("the keyring needs a key");
  const primary = firstOf(ring);
  const byId = new Map(ring.map((key) => [key.id, key]));

  function unwrap(sealed: string, aad: string): { dataKey: Buffer; box: string } {
    const [format, keyId, wrapped, box, ...more] = sealed.split(".");
    const key = byId.get(keyId ?? "");
    if (format !== FORMAT || !key || !wrapped || !box || more.length > 0)
      throw new Error("not sealed by a key of this keyring");
    return { dataKey: decrypt(key.bytes, decodeBase64url(wrapped), aad), box };
  }

  function join(dataKey: Buffer, box: string, aad: string): string {
    const wrapped = encrypt(primary.bytes, dataKey, aad).toString("base64url");
    return [FORMAT, primary.id, wrapped, box].join(".");
  }

  return {
    keyIds: ring.map(({ id }) => id),
    fingerprint: fingerprintOf(primary),
    seal(plaintext, context) {
      const aad = `${FORMAT}|${context}`;
      const dataKey = randomBytes(32);
      return join(dataKey, encrypt(dataKey, Buffer.from(plaintext), aad).toString("base64url"), aad);
    },
    open(sealed, context) {
      const aad = `${FORMAT}|${context}`;
      const { dataKey, box } = unwrap(sealed, aad);
      return decrypt(dataKey, decodeBase64url(box), aad).toString();
    },
    rewrap(sealed, context) {
      const aad = `${FORMAT}|${context}`;
      const { dataKey, box } = unwrap(sealed, aad);
      return join(dataKey, box, aad);
    },
  };
}
