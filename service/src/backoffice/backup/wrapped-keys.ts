import { createSecretKey, randomBytes, type ScryptOptions, scrypt } from "node:crypto";
import { promisify } from "node:util";
import { z } from "zod";
import type { StoredSecrets } from "../../core/config/secrets.ts";
import { decrypt, encrypt } from "../../core/vault.ts";

/** 128 MiB and a third of a second per guess. Part of the archive's format: another cost needs another format. */
const COST: ScryptOptions = { N: 2 ** 17, r: 8, p: 1, maxmem: 256 * 1024 * 1024 };
const SALT_BYTES = 16;
const CONTEXT = "stoa backup keys";

const deriveBytes = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt);
const derive = async (passphrase: string, salt: Buffer) =>
  createSecretKey(await deriveBytes(passphrase, salt, 32, COST));

const wrappedShape = z.strictObject({ salt: z.base64(), box: z.base64() });
const secret = z.strictObject({ id: z.string(), key: z.base64() });
const secretsShape = z.strictObject({ masterKeys: z.array(secret), sessionKeys: z.array(secret) });

export async function wrapKeys(keys: StoredSecrets, passphrase: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const box = encrypt(await derive(passphrase, salt), Buffer.from(JSON.stringify(keys)), CONTEXT);
  return JSON.stringify({ salt: salt.toString("base64"), box: box.toString("base64") });
}

export async function unwrapKeys(wrapped: string, passphrase: string): Promise<StoredSecrets> {
  const { salt, box } = wrappedShape.parse(JSON.parse(wrapped));
  const key = await derive(passphrase, Buffer.from(salt, "base64"));
  let opened: Buffer;
  try {
    opened = decrypt(key, Buffer.from(box, "base64"), CONTEXT);
  } catch {
    throw new Error(
      "STOA_BACKUP_PASSPHRASE does not open the keys of this archive: set it to what it was when the archive was made.",
    );
  }
  return secretsShape.parse(JSON.parse(opened.toString()));
}
