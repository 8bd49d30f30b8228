import type { Plan } from "@stoa/contract";
import { findAccount, findCountry } from "../../accounts/people/accounts.ts";
import { planPriceMinor } from "../../core/config/plan-config.ts";
import type { Context } from "../../core/context.ts";
import { type SaleSplit, splitSale } from "../../core/money/split.ts";
import { required } from "../../core/required.ts";
import type { Tax } from "../../integrations/taxes/taxes.ts";
import type { Tx } from "../../platform/db/database.ts";
import { findPayment, insertPayment, type PaymentRow } from "./queries.ts";

/** Runs before the payment is inserted, because a tax service may be slow. */
export const planTax = async (ctx: Context, userId: string, plan: Plan): Promise<Tax> =>
  ctx.integrations.taxes.taxOf({
    country: await findCountry(ctx.db, userId),
    amountMinor: planPriceMinor(ctx.config.planConfig, plan) ?? 0n,
    currency: ctx.config.planConfig.currency,
  });

/** The split of a month's price: everything but the tax is the marketplace's. The credit is the unused part of the previous month. */
export const computeBill = (priceMinor: bigint, creditMinor: bigint, tax: Tax): SaleSplit =>
  splitSale({ priceMinor, discountMinor: creditMinor, tax, feeBasisPoints: 0, commissionBasisPoints: 0 });

export interface PlanPaymentInput {
  userId: string;
  plan: Plan;
  priceMinor: bigint;
  creditMinor: bigint;
  tax: Tax;
  methodId: string;
  /** null for the first payment of a plan. */
  renewsFrom: Date | null;
  /** Whether the owner is present and can confirm the charge. */
  ownerPresent: boolean;
}

/** Inserts the payment with copies of price, tax rate and names, so that later changes do not affect it. */
export async function createPlanPayment(ctx: Context, tx: Tx, billed: PlanPaymentInput): Promise<PaymentRow> {
  const { name, email } = required(await findAccount(tx, billed.userId), "the account");
  const { priceMinor, creditMinor, tax } = billed;
  const bill = computeBill(priceMinor, creditMinor, tax);
  const id = ctx.newId();
  await insertPayment(tx, {
    id,
    userId: billed.userId,
    buyerName: name,
    buyerEmail: email,
    plan: billed.plan,
    priceMinor,
    creditMinor,
    taxMinor: bill.taxMinor,
    taxBasisPoints: tax.basisPoints,
    taxInclusive: tax.inclusive,
    taxCountry: tax.country,
    amountMinor: bill.totalMinor,
    currency: ctx.config.planConfig.currency,
    paymentMethodId: billed.methodId,
    renewsFrom: billed.renewsFrom,
    ownerPresent: billed.ownerPresent,
    createdAt: ctx.now(),
  });
  return required(await findPayment(tx, id), "the payment");
}
