import type { Context } from "../context.ts";
import type { Queries, Tx } from "../db/database.ts";
import { findPayoutAccount, writePayoutAccount } from "./payout-account-queries.ts";

/** Where somebody's payouts go: the account at the provider that they named, else the one that everybody has; null: nowhere yet. */
export const payoutAccountOf = async (ctx: Context, db: Queries, userId: string): Promise<string | null> =>
  (await findPayoutAccount(db, userId)) ?? ctx.outside.payments.sharedPayoutAccount;

export const namePayoutAccount = (tx: Tx, userId: string, account: string) =>
  writePayoutAccount(tx, userId, account);
