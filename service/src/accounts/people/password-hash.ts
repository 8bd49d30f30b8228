import { randomUUID } from "node:crypto";
import { hash, verify } from "@node-rs/argon2";
import { takeTurns } from "./turns.ts";

/** OWASP's choice: 19 MiB, two passes. Argon2id is the library's own default, whose name a types-only enum cannot say. */
export const ARGON2ID = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/**
 * Of the four threads that Node has for such work files and name look-ups need some, too: passwords get two. A line of a
 * hundred is a second or two of waiting; what comes beyond is told to come again, in the place of everybody waiting longer.
 */
const inTurn = takeTurns({ atOnce: 2, waiting: 100 });

/** The same letters however a keyboard composes them. */
const normal = (password: string) => password.normalize("NFKC");

export const hashPassword = (password: string): Promise<string> =>
  inTurn(() => hash(normal(password), ARGON2ID));

let nobodys: Promise<string> | undefined;
const nobodysHash = () => (nobodys ??= hash(randomUUID(), ARGON2ID));

/** Whether the password fits; without a hash one of nobody's is tried, so that a miss takes as long as a hit. */
export async function passwordFits(
  passwordHash: string | null | undefined,
  password: string,
): Promise<boolean> {
  const standIn = await nobodysHash();
  const fits = await inTurn(() => verify(passwordHash ?? standIn, normal(password)));
  return fits && passwordHash != null;
}
