import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createSecretKey,
  type KeyObject,
  randomBytes,
} from "node:crypto";
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
const DATA_KEY_BYTES = 32;
const CIPHER = "aes-256-gcm";

/** Returns iv · ciphertext · tag. `aad` is not secret and must be equal on decryption. `iv` must be random and used once. */
export function encrypt(
  key: KeyObject,
  plaintext: Buffer,
  aad: string,
  iv: Buffer = randomBytes(IV_BYTES),
): Buffer {
  const cipher = createCipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(aad));
  const ciphertext = cipher.update(plaintext);
  // GCM has no padding, so the end adds no bytes.
  cipher.final();
  return Buffer.concat([iv, ciphertext, cipher.getAuthTag()]);
}

/** Throws if the tag does not match. */
export function decrypt(key: KeyObject, box: Buffer, aad: string): Buffer {
  const iv = box.subarray(0, IV_BYTES);
  const tag = box.subarray(box.length - TAG_BYTES);
  // Without authTagLength Node accepts a 4-byte tag, which can be guessed.
  const decipher = createDecipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(aad)).setAuthTag(tag);
  const plaintext = decipher.update(box.subarray(IV_BYTES, box.length - TAG_BYTES));
  decipher.final();
  return plaintext;
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
  // Created once: a KeyObject takes as long as encrypting a short text.
  const byId = new Map(ring.map(({ id, bytes }) => [id, createSecretKey(bytes)]));
  const primaryKey = createSecretKey(primary.bytes);

  function unwrap(sealed: string, aad: string): { dataKey: Buffer; box: string } {
    const [format, keyId, wrapped, box, ...more] = sealed.split(".");
    const key = byId.get(keyId ?? "");
    if (format !== FORMAT || !key || !wrapped || !box || more.length > 0)
      throw new Error("not sealed by a key of this keyring");
    return { dataKey: decrypt(key, decodeBase64url(wrapped), aad), box };
  }

  function join(dataKey: Buffer, box: string, aad: string, iv?: Buffer): string {
    const wrapped = encrypt(primaryKey, dataKey, aad, iv).toString("base64url");
    return [FORMAT, primary.id, wrapped, box].join(".");
  }

  return {
    keyIds: ring.map(({ id }) => id),
    fingerprint: fingerprintOf(primary),
    seal(plaintext, context) {
      const aad = `${FORMAT}|${context}`;
      // Together: each request for random bytes has a fixed price.
      const random = randomBytes(DATA_KEY_BYTES + 2 * IV_BYTES);
      const dataKey = random.subarray(0, DATA_KEY_BYTES);
      const [iv, wrappingIv] = [random.subarray(DATA_KEY_BYTES, -IV_BYTES), random.subarray(-IV_BYTES)];
      const box = encrypt(createSecretKey(dataKey), Buffer.from(plaintext), aad, iv);
      return join(dataKey, box.toString("base64url"), aad, wrappingIv);
    },
    open(sealed, context) {
      const aad = `${FORMAT}|${context}`;
      const { dataKey, box } = unwrap(sealed, aad);
      return decrypt(createSecretKey(dataKey), decodeBase64url(box), aad).toString();
    },
    rewrap(sealed, context) {
      const aad = `${FORMAT}|${context}`;
      const { dataKey, box } = unwrap(sealed, aad);
      return join(dataKey, box, aad);
    },
  };
}
