import type { AdminPayout, CreatePayout, Payout, PayoutStatus } from "@stoa/contract";
import { lockAccount } from "../../accounts/people/accounts.ts";
import { toUserId } from "../../accounts/people/users.ts";
import type { Context, Member } from "../../core/context.ts";
import { ApiError, invalidRequest, ruleViolation } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { formatMoney, isCurrency, toDecimal, toMinor } from "../../core/money/amount.ts";
import { findStepAmountProblem } from "../../core/money/chargeable.ts";
import { required } from "../../core/required.ts";
import type { Tx } from "../../platform/db/database.ts";
import { EMPTY_PAGE, mapPage, type Page, type Paging } from "../../platform/db/paging.ts";
import { arePayoutsDisabled, findPayoutDestination } from "../charges/payout-account.ts";
import { type Balance, balancesOf } from "../ledger/balances.ts";
import { emptyBalance, minimumMinor, payableAmount } from "./balance.ts";
import { createPayout } from "./payout-creation.ts";
import { tryRefreshPayout, trySubmitPayout } from "./payout-submission.ts";
import { findOpenPayout, findOwnPayout, listPayouts as listRows, type PayoutRow } from "./queries.ts";

/** Debits and inserts the payout first, then submits it under its id. */
export async function requestPayout(ctx: Context, caller: Member, input: CreatePayout): Promise<Payout> {
  if (input.currency && !isCurrency(input.currency))
    throw invalidRequest("currency", "is not an ISO 4217 code");
  await mustHaveUsableAccount(ctx, caller.userId);
  const payout = await ctx.db
    .transaction()
    .execute((tx) => createRequestedPayout(ctx, tx, caller.userId, input));
  return toPayout(await trySubmitPayout(ctx, payout));
}

/** Handles a repeated Idempotency-Key. */
export async function resumePayout(ctx: Context, caller: Member, payoutId: string): Promise<Payout> {
  const payout = await requirePayout(ctx, caller, payoutId);
  return toPayout(payout.status === "pending" ? await tryRefreshPayout(ctx, payout) : payout);
}

/** Checked before the debit, because the provider might return the payout days later. */
async function mustHaveUsableAccount(ctx: Context, sellerId: string): Promise<void> {
  if (await arePayoutsDisabled(ctx, sellerId))
    throw ruleViolation(
      "account",
      "is not set up at the payment provider: finish it with POST /account/payout-account/onboarding",
    );
}

/** Runs under the account's lock, so that one of two concurrent requests finds the other's payout. */
async function createRequestedPayout(
  ctx: Context,
  tx: Tx,
  sellerId: string,
  input: CreatePayout,
): Promise<PayoutRow> {
  const seller = await lockAccount(tx, sellerId);
  if (!seller || seller.closedAt || seller.bannedAt) throw new ApiError("INVALID_API_KEY");
  const balance = await chooseBalance(ctx, tx, sellerId, input);
  const amountMinor = amountOf(ctx, input, balance);
  await mustHaveNoOpenPayout(tx, sellerId, balance.currency);
  mustBePayable(balance, amountMinor);
  const destination = await findPayoutDestination(ctx, tx, sellerId);
  if (!destination)
    throw ruleViolation(
      "account",
      "is missing: set up a payout account with POST /account/payout-account/onboarding",
    );
  const payout = required(
    await createPayout(ctx, tx, {
      sellerId,
      balance,
      amountMinor,
      destination,
      scheduledFor: null,
    }),
    "the payout",
  );
  await ctx.idempotencyKey?.bind(tx, toId("payout", payout.id));
  return payout;
}

const isEmpty = ({ pendingMinor, availableMinor, reservedMinor, inTransitMinor }: Balance) =>
  [pendingMinor, availableMinor, reservedMinor, inTransitMinor].every((minor) => minor === 0n);

async function chooseBalance(ctx: Context, tx: Tx, sellerId: string, input: CreatePayout): Promise<Balance> {
  const balances = await balancesOf(tx, sellerId, ctx.now());
  const [first, ...others] = balances.filter((balance) => !isEmpty(balance));
  const only = others.length === 0 ? first?.currency : undefined;
  const currency = input.currency ?? only ?? ctx.config.currency;
  return balances.find((balance) => balance.currency === currency) ?? emptyBalance(currency);
}

function amountOf(ctx: Context, { amount }: CreatePayout, { currency, availableMinor }: Balance): bigint {
  if (amount === undefined) return payableAmount(ctx, currency, availableMinor);
  const minor = toMinor(amount, currency);
  if (minor === null) throw invalidRequest("amount", `is not a valid amount in ${currency}`);
  const why = findStepAmountProblem(ctx.integrations.payments.limitsOf(currency).stepMinor, minor, currency);
  if (why) throw invalidRequest("amount", why);
  return minor;
}

async function mustHaveNoOpenPayout(tx: Tx, sellerId: string, currency: string): Promise<void> {
  const open = await findOpenPayout(tx, sellerId, currency);
  if (!open) return;
  const payoutId = toId("payout", open.id);
  const message = `A payout in ${currency} has not ended yet: wait for ${payoutId}.`;
  throw new ApiError("CONFLICT", message, { payoutId });
}

function mustBePayable({ currency, availableMinor, reservedMinor }: Balance, amountMinor: bigint): void {
  const minimum = minimumMinor(currency);
  const reserved = `, and ${formatMoney(reservedMinor, currency)} is reserved for open refunds and disputes`;
  const available = `${formatMoney(availableMinor, currency)} is available${reservedMinor > 0n ? reserved : ""}`;
  if (amountMinor < minimum)
    throw ruleViolation("amount", `is below the minimum of ${formatMoney(minimum, currency)}; ${available}`);
  if (amountMinor > availableMinor) throw ruleViolation("amount", `is more than there is: ${available}`);
}

interface PayoutQuery extends Paging {
  status?: PayoutStatus | undefined;
  currency?: string | undefined;
}

export const listPayouts = async (ctx: Context, caller: Member, query: PayoutQuery): Promise<Page<Payout>> =>
  mapPage(await listRows(ctx.db, { ...query, sellerId: caller.userId }), toPayout);

export async function requirePayout(ctx: Context, caller: Member, payoutId: string): Promise<PayoutRow> {
  const id = toUuid("payout", payoutId);
  const payout = id ? await findOwnPayout(ctx.db, caller.userId, id) : undefined;
  if (!payout) throw new ApiError("PAYOUT_NOT_FOUND");
  return payout;
}

interface AdminQuery extends PayoutQuery {
  sellerId?: string | undefined;
}

/** An unknown seller id returns an empty page. */
export async function listAllPayouts(ctx: Context, query: AdminQuery): Promise<Page<AdminPayout>> {
  if (query.sellerId === undefined) return mapPage(await listRows(ctx.db, query), toAdminPayout);
  const sellerId = toUuid("usr", query.sellerId);
  if (!sellerId) return EMPTY_PAGE;
  return mapPage(await listRows(ctx.db, { ...query, sellerId }), toAdminPayout);
}

export const toPayout = (payout: PayoutRow): Payout => ({
  id: toId("payout", payout.id),
  sellerId: toUserId(payout.sellerId),
  status: payout.status,
  amount: toDecimal(payout.amountMinor, payout.currency),
  currency: payout.currency,
  period: { start: payout.periodStart, end: payout.periodEnd },
  failureCode: payout.failureCode,
  createdAt: payout.createdAt.toISOString(),
  completedAt: payout.completedAt?.toISOString() ?? null,
});

const toAdminPayout = (payout: PayoutRow): AdminPayout => ({
  ...toPayout(payout),
  seller: { id: toUserId(payout.sellerId), name: payout.sellerName },
  account: payout.destination,
  providerPayoutId: payout.providerPayoutId,
  scheduled: payout.scheduledFor !== null,
  waitsFor: payout.waitsFor,
  reversedAmount: toDecimal(payout.reversedMinor, payout.currency),
});
