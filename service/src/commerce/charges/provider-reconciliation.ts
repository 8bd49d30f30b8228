import type { Context } from "../../core/context.ts";
import { type IdPrefix, toId, toUuid } from "../../core/ids.ts";
import { formatMoney } from "../../core/money/amount.ts";
import { required } from "../../core/required.ts";
import type {
  Dispute,
  ListedCharge,
  ListedPayout,
  ListedRefund,
} from "../../integrations/payments/payments.ts";
import {
  type ChargedRow,
  type DisputedRow,
  findChargedRows,
  findDisputedRows,
  findPaidOutRows,
  findRefundedRows,
  insertReconciliation,
  listBookedSince,
  type PaidOutRow,
  type RefundedRow,
} from "./provider-reconciliation-queries.ts";

export interface Reconciliation {
  ok: boolean;
  comparedSince: string;
  /** The number of objects in the provider's lists. */
  charges: number;
  refunds: number;
  disputes: number;
  payouts: number;
  /** Sentences with the ids on both sides. */
  differences: string[];
}

export { findLastReconciliation } from "./provider-reconciliation-queries.ts";

/** A newer object may not have reached us yet. */
const IN_FLIGHT_MS = 2 * 60_000;
const PAGE_SIZE = 500;

/**
 * Compares the provider's objects since a moment with our rows, in both directions, and changes nothing. `ledger verify` compares our rows
 * with the ledger.
 */
export async function reconcileProvider(ctx: Context, since: Date): Promise<Reconciliation> {
  const { payments } = ctx.integrations;
  const until = new Date(ctx.now().getTime() - IN_FLIGHT_MS);
  const differences: string[] = [];
  const seen = new Set<string>();
  /** Returns the number of items. */
  async function compare<Item extends { createdAt: Date }>(
    list: AsyncIterable<Item>,
    comparePage: (items: Item[]) => Promise<string[][]>,
  ): Promise<number> {
    let count = 0;
    for await (const items of inPages(list)) {
      count += items.length;
      // New items count as seen without being compared: the provider's clock may be ahead, and demo orders are older than their charges.
      const found = await comparePage(items);
      differences.push(
        ...found.flatMap((one, index) =>
          required(items[index], "the item of a difference").createdAt <= until ? one : [],
        ),
      );
    }
    return count;
  }
  const counts = {
    charges: await compare(payments.listCharges(since), (items) => compareCharges(ctx, items, seen)),
    refunds: await compare(payments.listRefunds(since), (items) => compareRefunds(ctx, items, seen)),
    disputes: await compare(payments.listDisputes(since), (items) => compareDisputes(ctx, items, seen)),
    payouts: await compare(payments.listPayouts(since), (items) => comparePayouts(ctx, items, seen)),
  };
  for (const { kind, id, providersId } of await listBookedSince(ctx.db, since, until))
    if (!seen.has(providersId ?? id))
      differences.push(`${describeRow(kind, id)} is booked, and the payment provider does not list it.`);
  return { ok: differences.length === 0, comparedSince: since.toISOString(), ...counts, differences };
}

async function* inPages<Item>(list: AsyncIterable<Item>): AsyncGenerator<Item[]> {
  let page: Item[] = [];
  for await (const item of list) {
    page.push(item);
    if (page.length < PAGE_SIZE) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

export type BookedKind = "order" | "plan payment" | "refund" | "payout" | "dispute";

const prefixes: Record<Exclude<BookedKind, "dispute">, IdPrefix> = {
  order: "ord",
  "plan payment": "pay",
  refund: "refund",
  payout: "payout",
};
const nouns: Record<Exclude<BookedKind, "dispute">, string> = {
  order: "Order",
  "plan payment": "The plan payment",
  refund: "Refund",
  payout: "Payout",
};
const describeRow = (kind: BookedKind, id: string) =>
  kind === "dispute" ? `Dispute ${id}` : `${nouns[kind]} ${toId(prefixes[kind], id)}`;

const chargedIdOf = (providersId: string) => toUuid("ord", providersId) ?? toUuid("pay", providersId);

const isNotNull = <T>(value: T | null | undefined): value is T => value !== null && value !== undefined;

async function compareCharges(ctx: Context, items: ListedCharge[], seen: Set<string>): Promise<string[][]> {
  const rows = await findChargedRows(
    ctx.db,
    items.map(({ orderId }) => chargedIdOf(orderId)).filter(isNotNull),
  );
  return items.map((item) => {
    const id = chargedIdOf(item.orderId);
    if (id && item.state === "succeeded") seen.add(id);
    return describeCharge(item, id ? rows.get(id) : undefined);
  });
}

function describeCharge(item: ListedCharge, row: ChargedRow | undefined): string[] {
  const charge = `Charge ${item.paymentId} of ${formatMoney(item.amountMinor, item.currency)} for ${item.orderId}`;
  if (item.state !== "succeeded")
    return row?.isBooked ? [`${charge} is ${item.state} at the payment provider, and booked as paid.`] : [];
  if (!row) return [`${charge} is not booked: there is no such row.`];
  if (!row.isBooked && row.status === "canceled" && item.isRefunded) return [];
  if (!row.isBooked) return [`${charge} is not booked: its row is ${row.status}.`];
  if (row.amountMinor !== item.amountMinor || row.currency !== item.currency)
    return [`${charge} is booked as ${formatMoney(row.amountMinor, row.currency)}.`];
  if (item.feeMinor === null || item.feeMinor === (row.feeMinor ?? 0n)) return [];
  const fees = [item.feeMinor, row.feeMinor ?? 0n].map((minor) => formatMoney(minor, item.currency));
  return [`${charge} cost ${fees[0]} at the payment provider, and ${fees[1]} is booked.`];
}

async function compareRefunds(ctx: Context, items: ListedRefund[], seen: Set<string>): Promise<string[][]> {
  const rows = await findRefundedRows(
    ctx.db,
    items.map(({ refundId }) => refundId && toUuid("refund", refundId)).filter(isNotNull),
    items.map(({ providerRefundId }) => providerRefundId),
  );
  return items.map((item) => {
    const id = item.refundId && toUuid("refund", item.refundId);
    const row = rows.find((one) => one.id === id || one.providerRefundId === item.providerRefundId);
    if (row && item.state === "succeeded") seen.add(row.id);
    return describeRefund(item, row);
  });
}

function describeRefund(item: ListedRefund, row: RefundedRow | undefined): string[] {
  const amount = formatMoney(item.amountMinor, item.currency);
  const origin = item.refundId ?? "made at the payment provider's dashboard";
  const refund = `Refund ${item.providerRefundId} of ${amount} for ${item.orderId} (${origin})`;
  if (item.state === "processing") return [];
  if (item.state === "failed")
    return row?.status === "succeeded" && !row.isReturned
      ? [`${refund} failed at the payment provider, and is booked.`]
      : [];
  if (row?.status !== "succeeded" || row.isReturned)
    return [`${refund} is not booked${row ? `: ours is ${row.isReturned ? "returned" : row.status}` : ""}.`];
  if (row.amountMinor === item.amountMinor && row.currency === item.currency) return [];
  return [`${refund} is booked as ${formatMoney(row.amountMinor, row.currency)}.`];
}

async function compareDisputes(ctx: Context, items: Dispute[], seen: Set<string>): Promise<string[][]> {
  const rows = await findDisputedRows(
    ctx.db,
    items.map(({ disputeId }) => disputeId),
  );
  return items.map((item) => {
    seen.add(item.disputeId);
    return describeDispute(item, rows.get(item.disputeId));
  });
}

function describeDispute(item: Dispute, row: DisputedRow | undefined): string[] {
  const dispute = `Dispute ${item.disputeId} of ${item.orderId}`;
  if (!row) return [`${dispute} is ${item.state} at the payment provider, and unknown here.`];
  if (row.status !== item.state)
    return [`${dispute} is ${item.state} at the payment provider, and ${row.status} here.`];
  if (item.state !== "lost") return [];
  const amount = (minor: bigint) => formatMoney(minor, row.currency);
  if (row.lostMinor !== item.amountMinor)
    return [`${dispute} took ${amount(item.amountMinor)}, and ${amount(row.lostMinor ?? 0n)} is booked.`];
  if (row.feeMinor !== item.feeMinor)
    return [`${dispute} cost ${amount(item.feeMinor)}, and ${amount(row.feeMinor)} is booked.`];
  return [];
}

async function comparePayouts(ctx: Context, items: ListedPayout[], seen: Set<string>): Promise<string[][]> {
  const rows = await findPaidOutRows(
    ctx.db,
    items.map(({ payoutId }) => toUuid("payout", payoutId)).filter(isNotNull),
  );
  return items.map((item) => {
    const id = toUuid("payout", item.payoutId);
    if (id) seen.add(id);
    return describePayout(item, id ? rows.get(id) : undefined);
  });
}

function describePayout(item: ListedPayout, row: PaidOutRow | undefined): string[] {
  const payout = `Payout ${item.providerPayoutId} of ${formatMoney(item.amountMinor, item.currency)} (${item.payoutId})`;
  if (!row) return [`${payout} is not booked: there is no such row.`];
  if (row.amountMinor !== item.amountMinor || row.currency !== item.currency)
    return [`${payout} is booked as ${formatMoney(row.amountMinor, row.currency)}.`];
  const isSame = row.status === item.state || (item.state === "failed" && row.status === "returned");
  if (!isSame) return [`${payout} is ${item.state} at the payment provider, and ${row.status} here.`];
  if (item.reversedMinor === 0n) return [];
  return [
    `${payout} has a reversed part of ${formatMoney(item.reversedMinor, item.currency)}, which is not booked.`,
  ];
}

/** Banks return charges and refunds for months. */
const COMPARED_PERIOD_MS = 120 * 86_400_000;
const MAX_EXAMPLES = 20;

/** Stores the result for `doctor` and logs differences. */
export async function reconcileNightly(ctx: Context): Promise<void> {
  const begunAt = ctx.now();
  const since = new Date(begunAt.getTime() - COMPARED_PERIOD_MS);
  const { differences, charges, refunds, disputes, payouts } = await reconcileProvider(ctx, since);
  const examples = differences.slice(0, MAX_EXAMPLES);
  await insertReconciliation(ctx.db, {
    begunAt,
    endedAt: ctx.now(),
    comparedSince: since,
    compared: charges + refunds + disputes + payouts,
    differences: differences.length,
    examples: JSON.stringify(examples),
  });
  if (differences.length > 0)
    ctx.log.error(
      { count: differences.length, differences: examples },
      "the payment provider's lists differ from our rows: `stoa-server payments reconcile` names each difference",
    );
}
