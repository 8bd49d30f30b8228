import { verify } from "@node-rs/argon2";
import type { Context } from "../context.ts";
import { findPasswordHash } from "./queries.ts";

/** Whether the account has this password; false for one that has none. The same letters however a keyboard composes them. */
export async function isPasswordOf({ db }: Context, userId: string, password: string): Promise<boolean> {
  const hash = await findPasswordHash(db, userId);
  return hash ? verify(hash, password.normalize("NFKC")) : false;
}
