import type { Context } from "../../core/context.ts";
import { verifyPassword } from "./password-hash.ts";
import { findPasswordHash } from "./queries.ts";

/** false for an account without a password. */
export const isAccountPassword = async (
  { db }: Context,
  userId: string,
  password: string,
): Promise<boolean> => verifyPassword(await findPasswordHash(db, userId), password);
