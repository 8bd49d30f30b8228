import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import {
  type AccountRow,
  type AccountValues,
  endWriting,
  findAccountById,
  findCountryOf,
  lockAccountById,
  lockActiveAdmins,
  shareOpenAccounts,
  updateAccount,
} from "./queries.ts";

export type { AccountRow };

export const findAccount = (db: Queries, userId: string) => findAccountById(db, userId);
export const lockAccount = (tx: Tx, userId: string) => lockAccountById(tx, userId);
export const writeAccount = (tx: Tx, userId: string, values: Partial<AccountValues>) =>
  updateAccount(tx, userId, values);

/** Where somebody buys from, ISO 3166-1 alpha-2; null: they did not say. */
export const countryOf = (db: Queries, userId: string) => findCountryOf(db, userId);

/** Names and addresses of accounts, none of which can be closed or banned before the transaction ends; those that are, are missing. */
export const keepOpen = (tx: Tx, userIds: string[]) => shareOpenAccounts(tx, userIds);

/** The account first, as everybody does who locks both. */
export async function lockToClose(tx: Tx, userId: string): Promise<AccountRow> {
  const user = (await lockAccountById(tx, userId))!;
  await endWriting(tx, userId);
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
export async function anonymise(ctx: Context, tx: Tx, user: AccountRow): Promise<string> {
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
