import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { firstOf, required } from "../../core/required.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { retireHandle } from "./handles.ts";
import { type AccountRow, lockAccount, lockActiveAdmins, updateAccount, waitForWriters } from "./queries.ts";

export {
  type AccountRow,
  accountColumns,
  findAccount,
  findCommissionRate,
  findCountry,
  lockAccount,
  updateAccount,
} from "./queries.ts";

/** The account is locked first, as everywhere, to avoid deadlocks. */
export async function lockAccountForClosing(tx: Tx, userId: string): Promise<AccountRow> {
  const user = required(await lockAccount(tx, userId), "the account");
  await waitForWriters(tx, userId);
  return user;
}

/** Locks all administrators: when two demote each other at once, the second must see the first. */
export async function mustNotBeLastAdmin(tx: Tx, userId: string): Promise<void> {
  const admins = await lockActiveAdmins(tx);
  if (admins.length !== 1 || firstOf(admins).id !== userId) return;
  throw new ApiError(
    "INVALID_STATE",
    "This is the last administrator: give another account the role first.",
    {
      current: "last_admin",
    },
  );
}

/** Also closed ones. */
export const hasAccounts = async (db: Queries) =>
  (await db.selectFrom("users").select("id").limit(1).executeTakeFirst()) !== undefined;

export const hasAdmin = async (tx: Tx) => (await lockActiveAdmins(tx)).length > 0;

/** Replaces all personal data. Returns what products, reviews and sales show from now on. */
export async function anonymizeAccount(ctx: Context, tx: Tx, user: AccountRow) {
  const shown = { id: user.id, name: "Closed account", verified: user.verified, handle: null, avatar: null };
  if (user.handle) await retireHandle(tx, user.handle);
  await updateAccount(tx, user.id, {
    name: shown.name,
    handle: null,
    avatar: null,
    links: "[]",
    email: `closed+${user.id}@invalid.invalid`,
    bio: "",
    role: user.role === "admin" ? "user" : user.role,
    quota: null,
    passwordHash: null,
    country: null,
    closedAt: ctx.now(),
  });
  return shown;
}
