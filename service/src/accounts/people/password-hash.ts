import { randomUUID } from "node:crypto";
import { deferPackage } from "../../core/defer-package.ts";
import { limitConcurrency } from "./concurrency-limit.ts";

const argon2 = deferPackage<typeof import("@node-rs/argon2")>("@node-rs/argon2");

/** OWASP's choice: 19 MiB, two passes. Argon2id is the library's default. */
export const ARGON2ID = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/**
 * Node has four threads for such work, and file and DNS operations need some. A queue of a hundred is one to two
 * seconds of waiting; further requests get 503.
 */
const runLimited = limitConcurrency({ atOnce: 2, waiting: 100 });

/** Different keyboards compose the same letters differently. */
const normalizePassword = (password: string) => password.normalize("NFKC");

export const hashPassword = (password: string): Promise<string> =>
  runLimited(() => argon2().hash(normalizePassword(password), ARGON2ID));

let dummyHash: Promise<string> | undefined;
const loadDummyHash = () => (dummyHash ??= argon2().hash(randomUUID(), ARGON2ID));

/** Without a hash, a dummy hash is verified, so that a miss takes as long as a hit. */
export async function verifyPassword(
  passwordHash: string | null | undefined,
  password: string,
): Promise<boolean> {
  const standIn = await loadDummyHash();
  const fits = await runLimited(() => argon2().verify(passwordHash ?? standIn, normalizePassword(password)));
  return fits && passwordHash != null;
}
