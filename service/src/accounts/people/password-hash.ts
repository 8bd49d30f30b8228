import { randomUUID } from "node:crypto";
import { hash, verify } from "@node-rs/argon2";
import { limitConcurrency } from "./concurrency-limit.ts";

/** OWASP's choice: 19 MiB, two passes. Argon2id is the library's own default, whose name a types-only enum cannot say. */
export const ARGON2ID = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/**
 * Of the four threads that Node has for such work files and name look-ups need some, too: passwords get two. A line of a
 * hundred is a second or two of waiting; what comes beyond is told to come again, in the place of everybody waiting longer.
 */
const runLimited = limitConcurrency({ atOnce: 2, waiting: 100 });

/** The same letters however a keyboard composes them. */
const normalizePassword = (password: string) => password.normalize("NFKC");

export const hashPassword = (password: string): Promise<string> =>
  runLimited(() => hash(normalizePassword(password), ARGON2ID));

let dummyHash: Promise<string> | undefined;
const loadDummyHash = () => (dummyHash ??= hash(randomUUID(), ARGON2ID));

/** Whether the password fits; without a hash one of nobody's is tried, so that a miss takes as long as a hit. */
export async function verifyPassword(
  passwordHash: string | null | undefined,
  password: string,
): Promise<boolean> {
  const standIn = await loadDummyHash();
  const fits = await runLimited(() => verify(passwordHash ?? standIn, normalizePassword(password)));
  return fits && passwordHash != null;
}
