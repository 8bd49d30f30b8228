import type { Context } from "../../core/context.ts";
import { PaymentUnknown, type PayoutAccount } from "../../integrations/payments/payments.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { findPayoutAccount, upsertPayoutAccount } from "./payout-account-queries.ts";

/** Falls back to the shared test account; null: none. */
export const findPayoutDestination = async (
  ctx: Context,
  db: Queries,
  userId: string,
): Promise<string | null> =>
  (await findPayoutAccount(db, userId)) ?? ctx.integrations.payments.sharedPayoutAccount;

export const setPayoutAccount = (tx: Tx, userId: string, account: string) =>
  upsertPayoutAccount(tx, userId, account);

/** null: the provider does not know the account or does not answer. */
export async function readAccountHealth(ctx: Context, account: string): Promise<PayoutAccount | null> {
  try {
    return await ctx.integrations.payments.findPayoutAccount(account);
  } catch (error) {
    if (error instanceof PaymentUnknown) return null;
    throw error;
  }
}

/** False if the provider does not answer: the payout itself then decides. */
export async function arePayoutsDisabled(ctx: Context, userId: string): Promise<boolean> {
  const account = await findPayoutDestination(ctx, ctx.db, userId);
  return account !== null && (await readAccountHealth(ctx, account))?.payoutsEnabled === false;
}
