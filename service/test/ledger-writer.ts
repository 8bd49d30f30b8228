import { sql } from "kysely";
import { type Entry, type PostingKind, postTransaction } from "../src/commerce/ledger/ledger.ts";
import {
  type PostableOrder,
  postOrderTransaction,
  postSale,
  shareEntries,
} from "../src/commerce/orders/order-postings.ts";
import type { Context } from "../src/core/context.ts";
import { DAY_MS } from "../src/core/dates.ts";
import { type SaleParts, type SaleTerms, splitRefund, splitSale } from "../src/core/money/split.ts";
import type { Tx } from "../src/platform/db/database.ts";

/** The parties by uuid. */
export interface LedgerParties {
  sellerId: string;
  buyerId: string;
  referrerId: string;
  productId: string;
}

/** An order with its refunds and disputes. */
export interface LedgerOrder extends PostableOrder {
  refundedMinor: bigint;
  dispute: { id: string; amountMinor: bigint; heldMinor: bigint } | null;
  /** The marketplace's share at the payment provider. */
  atProviderMinor: bigint;
}

export const DISPUTE_FEE = 1_500n;

/** The refunded or disputed amount. */
const takenOf = ({ refundedMinor, dispute }: LedgerOrder) => refundedMinor + (dispute?.heldMinor ?? 0n);
export const freeOf = (order: LedgerOrder) => order.totalMinor - takenOf(order);
const most = (one: bigint, other: bigint) => (one > other ? one : other);

const sharesOf = (order: LedgerOrder, taken: bigint, amount: bigint): Entry[] =>
  amount === 0n ? [] : shareEntries(order, splitRefund(order, taken, amount));

type Outcome = "payout_completed" | "payout_failed" | "payout_returned";

/** Writes rows and bookings directly, as the rooms would, for histories that no provider could produce within a test. */
export function ledgerWriter(ctx: Context, people: LedgerParties) {
  const write = (tx: Tx, statement: string) => sql.raw(statement).execute(tx);

  /** A completed order, by default of 19.99 with included tax, a commission of a fifth and a provider fee of 0.88. */
  async function sells(tx: Tx, input: Partial<SaleTerms> & { currency?: string; feeMinor?: bigint } = {}) {
    const { currency = "USD", feeMinor = 88n, ...changed } = input;
    const terms = {
      ...{ priceMinor: 1_999n, discountMinor: 0n, tax: { basisPoints: 1_900, inclusive: true } },
      ...{ feeBasisPoints: 1_000, commissionBasisPoints: 2_000, ...changed },
    };
    const split = splitSale(terms);
    const order: LedgerOrder = {
      ...{ ...split, id: ctx.newId(), currency },
      ...{ sellerId: people.sellerId, productId: people.productId, referrerId: people.referrerId },
      ...{ maturesAt: new Date(ctx.now().getTime() + 14 * DAY_MS), refundedMinor: 0n, dispute: null },
      atProviderMinor: 0n,
    };
    const processorFeeMinor = split.totalMinor < feeMinor ? 0n : feeMinor;
    order.atProviderMinor = split.totalMinor - processorFeeMinor;
    await tx
      .insertInto("orders")
      .values({
        id: order.id,
        buyerId: await anotherBuyer(tx),
        sellerId: people.sellerId,
        productId: people.productId,
        buyerName: "",
        buyerEmail: "",
        sellerName: "",
        productTitle: "",
        productType: "PROMPT",
        productVersion: "1.0.0",
        status: "completed",
        refundDays: 14,
        createdAt: ctx.now(),
        currency,
        subtotalMinor: split.subtotalMinor,
        discountMinor: split.discountMinor,
        taxMinor: split.taxMinor,
        totalMinor: split.totalMinor,
        feeMinor: split.feeMinor,
        commissionMinor: split.commissionMinor,
        sellerMinor: split.sellerMinor,
        feeBasisPoints: terms.feeBasisPoints,
        commissionBasisPoints: terms.commissionBasisPoints,
        taxBasisPoints: terms.tax.basisPoints,
        taxInclusive: terms.tax.inclusive,
        referrerId: people.referrerId,
        processorFeeMinor,
        completedAt: ctx.now(),
        maturesAt: order.maturesAt,
        receiptYear: ctx.now().getUTCFullYear(),
        receiptNumber: await nextReceipt(tx),
      })
      .execute();
    await write(
      tx,
      `insert into entitlements (buyer_id, product_id, order_id, major, status, created_at)
       select buyer_id, product_id, id, 1, 'active', created_at from orders where id = '${order.id}'`,
    );
    await countUse(tx);
    await postSale(ctx, tx, { ...order, processorFeeMinor }, ctx.now());
    return order;
  }

  /** A buyer without the product. */
  async function anotherBuyer(tx: Tx): Promise<string> {
    const id = ctx.newId();
    await write(
      tx,
      `insert into users (id, email, name, created_at) values ('${id}', '${id}', '', '2026-01-01')`,
    );
    return id;
  }

  const countUse = (tx: Tx) =>
    write(
      tx,
      `update product_stats s set purchases = (select count(*) from entitlements e
                                                where e.product_id = s.product_id and e.status <> 'revoked')
        where product_id = '${people.productId}'`,
    );

  async function nextReceipt(tx: Tx): Promise<number> {
    const { rows } = await sql<{ last: number }>`
      insert into receipt_counters values (${people.sellerId}, ${ctx.now().getUTCFullYear()}, 1)
      on conflict (seller_id, year) do update set last = receipt_counters.last + 1 returning last`.execute(
      tx,
    );
    return rows[0]!.last;
  }

  /** Refunds an amount, with other `parts` than the right ones if given. Undisputed money goes first, then disputed. */
  async function refunds(tx: Tx, order: LedgerOrder, amount: bigint, parts?: SaleParts): Promise<string> {
    const { id, currency } = order;
    const refundId = ctx.newId();
    await tx
      .insertInto("refunds")
      .values({
        id: refundId,
        orderId: id,
        status: "succeeded",
        amountMinor: amount,
        currency,
        reason: "",
        origin: "service",
        createdAt: ctx.now(),
        completedAt: ctx.now(),
      })
      .execute();
    const fromHold = most(0n, amount - freeOf(order));
    await move(tx, order, "refund", refundId, [
      { account: "provider_clearing", amountMinor: amount, orderId: id },
      { account: "dispute_hold", amountMinor: -fromHold, orderId: id },
      ...turned(parts ? shareEntries(order, parts) : sharesOf(order, takenOf(order), amount - fromHold)),
    ]);
    order.refundedMinor += amount;
    order.atProviderMinor -= amount;
    if (order.dispute) await hold(tx, order, order.dispute.heldMinor - fromHold);
    await settleStatus(tx, order);
    return refundId;
  }

  /** Requests a refund, which books nothing while it is open. */
  async function asksForRefund(
    tx: Tx,
    { id, currency }: LedgerOrder,
    amount: bigint,
    status: "pending" | "approved" | "processing",
  ): Promise<void> {
    await tx
      .insertInto("refunds")
      .values({
        id: ctx.newId(),
        orderId: id,
        status,
        amountMinor: amount,
        currency,
        reason: "",
        origin: "service",
        createdAt: ctx.now(),
      })
      .execute();
  }

  /** The buyer's bank returns the refund. */
  async function returnsRefund(tx: Tx, order: LedgerOrder, refundId: string): Promise<void> {
    await write(tx, `update refunds set returned_at = '${ctx.now().toISOString()}' where id = '${refundId}'`);
    const { rows } = await sql<{ amount: number; buyer: string }>`
      select r.amount_minor as amount, o.buyer_id as buyer
        from refunds r join orders o on o.id = r.order_id where r.id = ${refundId}`.execute(tx);
    const amountMinor = BigInt(rows[0]!.amount);
    await book(tx, "refund_returned", refundId, order.currency, [
      { account: "provider_clearing", amountMinor: -amountMinor, orderId: order.id },
      { account: "buyer_credit", ownerId: rows[0]!.buyer, amountMinor, orderId: order.id },
    ]);
  }

  /** The buyer's bank disputes the rest of an order, or up to an amount. */
  async function disputes(tx: Tx, order: LedgerOrder, amount = freeOf(order)): Promise<string> {
    const id = ctx.newId();
    const heldMinor = -most(-amount, -freeOf(order));
    await tx
      .insertInto("disputes")
      .values({
        id,
        orderId: order.id,
        providerDisputeId: id,
        status: "open",
        amountMinor: amount,
        heldMinor,
        feeMinor: DISPUTE_FEE,
        reason: "",
        openedAt: ctx.now(),
      })
      .execute();
    await move(tx, order, "dispute_opened", id, [
      { account: "dispute_hold", amountMinor: heldMinor, orderId: order.id },
      ...turned(sharesOf(order, takenOf(order), heldMinor)),
    ]);
    order.dispute = { id, amountMinor: amount, heldMinor };
    await settleStatus(tx, order);
    return id;
  }

  async function wins(tx: Tx, order: LedgerOrder): Promise<void> {
    const { id, heldMinor } = order.dispute!;
    await close(tx, order, "won");
    await move(tx, order, "dispute_won", id, [
      { account: "dispute_hold", amountMinor: -heldMinor, orderId: order.id },
      ...sharesOf(order, takenOf(order), heldMinor),
    ]);
  }

  async function loses(tx: Tx, order: LedgerOrder): Promise<void> {
    const { id, amountMinor, heldMinor } = order.dispute!;
    const of = { orderId: order.id };
    order.refundedMinor += heldMinor;
    order.atProviderMinor -= amountMinor + DISPUTE_FEE;
    const excessMinor = amountMinor - heldMinor;
    await close(tx, order, "lost", `, lost_minor = ${amountMinor}, excess_minor = ${excessMinor}`);
    const entries: Entry[] = [
      { ...of, account: "dispute_hold", amountMinor: -heldMinor },
      { ...of, account: "dispute_losses", amountMinor: -excessMinor },
      { ...of, account: "provider_clearing", amountMinor: amountMinor + DISPUTE_FEE },
      { ...of, account: "seller", ownerId: order.sellerId, amountMinor: -DISPUTE_FEE },
    ];
    await move(tx, order, "dispute_lost", id, entries);
  }

  async function close(tx: Tx, order: LedgerOrder, status: "won" | "lost", lost = ""): Promise<void> {
    const { id } = order.dispute!;
    order.dispute = null;
    const closed = `status = '${status}', held_minor = 0, closed_at = '${ctx.now().toISOString()}'${lost}`;
    await write(tx, `update disputes set ${closed} where id = '${id}'`);
    await settleStatus(tx, order);
  }

  async function hold(tx: Tx, order: LedgerOrder, heldMinor: bigint): Promise<void> {
    order.dispute!.heldMinor = heldMinor;
    await write(tx, `update disputes set held_minor = ${heldMinor} where id = '${order.dispute!.id}'`);
  }

  async function settleStatus(
    tx: Tx,
    { id, refundedMinor, totalMinor, dispute }: LedgerOrder,
  ): Promise<void> {
    const byMoney = refundedMinor === totalMinor ? "refunded" : "partially_refunded";
    const status = dispute ? "disputed" : refundedMinor > 0n ? byMoney : "completed";
    await write(
      tx,
      `update orders set refunded_minor = ${refundedMinor}, status = '${status}' where id = '${id}'`,
    );
    if (refundedMinor < totalMinor) return;
    await write(tx, `update entitlements set status = 'revoked' where order_id = '${id}'`);
    await countUse(tx);
  }

  /** A payout of sales and commissions, in a state and with the given bookings. */
  async function paysOut(
    tx: Tx,
    status: string,
    outcomes: Outcome[],
    { seller = 300n, referrer = 100n, currency = "USD" } = {},
  ): Promise<string> {
    const id = ctx.newId();
    const amountMinor = seller + referrer;
    await tx
      .insertInto("payouts")
      .values({
        id,
        sellerId: people.sellerId,
        status,
        amountMinor,
        currency,
        commissionMinor: referrer,
        destination: "acct_test",
        periodStart: ctx.now(),
        periodEnd: ctx.now(),
        createdAt: ctx.now(),
      })
      .execute();
    const owned = { ownerId: people.sellerId, maturesAt: new Date(0) };
    const earned: Entry[] = [
      { account: "seller", ...owned, amountMinor: seller },
      { account: "referrer", ...owned, amountMinor: referrer },
    ];
    const onItsWay: Entry[] = [{ account: "in_transit", ownerId: people.sellerId, amountMinor }];
    const paid: Entry[] = [{ account: "provider_clearing", amountMinor }];
    const entries = {
      payout: [...turned(earned), ...onItsWay],
      payout_completed: [...turned(onItsWay), ...paid],
      payout_failed: [...turned(onItsWay), ...earned],
      payout_returned: [...turned(paid), ...earned],
    };
    for (const kind of ["payout", ...outcomes] as const) await book(tx, kind, id, currency, entries[kind]);
    return id;
  }

  const move = (tx: Tx, order: LedgerOrder, kind: PostingKind, sourceId: string, entries: Entry[]) =>
    postOrderTransaction(ctx, tx, order, { kind, sourceId, at: ctx.now(), entries });

  const book = (tx: Tx, kind: PostingKind, sourceId: string, currency: string, entries: Entry[]) =>
    postTransaction(ctx, tx, { kind, sourceId, currency, entries });

  return { sells, asksForRefund, refunds, returnsRefund, disputes, wins, loses, paysOut };
}

const turned = (entries: Entry[]): Entry[] =>
  entries.map((entry) => ({ ...entry, amountMinor: -entry.amountMinor }));
