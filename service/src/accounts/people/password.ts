import type { Context } from "../../core/context.ts";
import { passwordFits } from "./password-hash.ts";
import { findPasswordHash } from "./queries.ts";

/** Whether the account has this password; false for one that has none. */
export const isPasswordOf = async ({ db }: Context, userId: string, password: string): Promise<boolean> =>
  passwordFits(await findPasswordHash(db, userId), password);
