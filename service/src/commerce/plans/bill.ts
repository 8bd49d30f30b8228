import type { Plan } from "@stoa/contract";
import { findAccount, findCountry } from "../../accounts/people/accounts.ts";
import { planPriceMinor } from "../../core/config/plan-config.ts";
import type { Context } from "../../core/context.ts";
import { type SaleSplit, splitSale } from "../../core/money/split.ts";
import { required } from "../../core/required.ts";
import type { Tax } from "../../integrations/taxes/taxes.ts";
import type { Tx } from "../../platform/db/database.ts";
import { findPayment, insertPayment, type PaymentRow } from "./queries.ts";

/** Runs before the transaction, because a tax service may be slow. */
export const planTax = async (ctx: Context, userId: string, plan: Plan): Promise<Tax> =>
  ctx.integrations.taxes.taxOf({
    country: await findCountry(ctx.db, userId),
    amountMinor: planPriceMinor(ctx.config.planConfig, plan) ?? 0n,
    currency: ctx.config.planConfig.currency,
  });

/** The credit is the unused part of the previous month. */
export const computeBill = (priceMinor: bigint, creditMinor: bigint, tax: Tax): SaleSplit =>
  splitSale({ priceMinor, discountMinor: creditMinor, tax, feeBasisPoints: 0, commissionBasisPoints: 0 });

export interface PlanPaymentInput {
  userId: string;
  plan: Plan;
  priceMinor: bigint;
  creditMinor: bigint;
  tax: Tax;
  methodId: string;
  /** null: the first payment of a plan. */
  renewsFrom: Date | null;
  /** Whether the owner can confirm the charge now. */
  ownerPresent: boolean;
}

/** Copies price, tax rate and names, so that later changes do not affect the payment. */
export async function createPlanPayment(ctx: Context, tx: Tx, input: PlanPaymentInput): Promise<PaymentRow> {
  const { name, email } = required(await findAccount(tx, input.userId), "the account");
  const { priceMinor, creditMinor, tax } = input;
  const bill = computeBill(priceMinor, creditMinor, tax);
  const id = ctx.newId();
  await insertPayment(tx, {
    id,
    userId: input.userId,
    buyerName: name,
    buyerEmail: email,
    plan: input.plan,
    priceMinor,
    creditMinor,
    taxMinor: bill.taxMinor,
    taxBasisPoints: tax.basisPoints,
    taxInclusive: tax.inclusive,
    taxCountry: tax.country,
    amountMinor: bill.totalMinor,
    currency: ctx.config.planConfig.currency,
    paymentMethodId: input.methodId,
    renewsFrom: input.renewsFrom,
    ownerPresent: input.ownerPresent,
    createdAt: ctx.now(),
  });
  return required(await findPayment(tx, id), "the payment");
}
