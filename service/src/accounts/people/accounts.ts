import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import type { Tx } from "../../platform/db/database.ts";
import { type AccountRow, lockAccount, lockActiveAdmins, updateAccount, waitForWriters } from "./queries.ts";

export {
  type AccountRow,
  findAccount,
  findCountry,
  lockAccount,
  lockOpenAccounts,
  updateAccount,
} from "./queries.ts";

/** The account first, as everybody does who locks both. */
export async function lockAccountForClosing(tx: Tx, userId: string): Promise<AccountRow> {
  const user = (await lockAccount(tx, userId))!;
  await waitForWriters(tx, userId);
  return user;
}

/** Locks the administrators: of two who take each other's role at once, one must find the other's deed. */
export async function mustNotBeLastAdmin(tx: Tx, userId: string): Promise<void> {
  const admins = await lockActiveAdmins(tx);
  if (admins.length !== 1 || admins[0]!.id !== userId) return;
  throw new ApiError("INVALID_STATE", "This is the last administrator: make another one first.", {
    current: "last_admin",
  });
}

export const hasAdmin = async (tx: Tx) => (await lockActiveAdmins(tx)).length > 0;

/** What stands where a person was: nothing that tells who. Answers the name under which their work stays. */
export async function anonymizeAccount(ctx: Context, tx: Tx, user: AccountRow): Promise<string> {
  const name = "Closed account";
  await updateAccount(tx, user.id, {
    name,
    email: `closed+${user.id}@invalid.invalid`,
    bio: "",
    role: user.role === "admin" ? "user" : user.role,
    quota: null,
    password_hash: null,
    country: null,
    closed_at: ctx.now(),
  });
  return name;
}
