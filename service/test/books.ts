import { sql } from "kysely";
import type { Context } from "../src/context.ts";
import type { Tx } from "../src/db/database.ts";
import { type Entry, type PostingKind, post } from "../src/ledger/ledger.ts";
import { type Parts, type SaleTerms, splitRefund, splitSale } from "../src/money/split.ts";
import { type BookedOrder, bookSale, shares } from "../src/purchases/books.ts";

const DAY_MS = 86_400_000;

/** Who is in the books, by uuid. */
export interface People {
  sellerId: string;
  buyerId: string;
  referrerId: string;
  productId: string;
}

/** An order with what became of it. */
export interface BookOrder extends BookedOrder {
  refundedMinor: bigint;
  dispute: { id: string; amountMinor: bigint } | null;
}

type Outcome = "payout_completed" | "payout_failed" | "payout_returned";

/** Rows and bookings as the rooms write them, without the rooms: histories that no provider would tell in a test's time. */
export function booksOf(ctx: Context, people: People) {
  const write = (tx: Tx, statement: string) => sql.raw(statement).execute(tx);

  /** A completed order, by default of 19.99 with a tax inside, a commission of a fifth and 0.88 for the provider. */
  async function sells(tx: Tx, wish: Partial<SaleTerms> & { currency?: string; feeMinor?: bigint } = {}) {
    const { currency = "USD", feeMinor = 88n, ...changed } = wish;
    const split = splitSale({
      ...{ priceMinor: 1_999n, discountMinor: 0n, tax: { basisPoints: 1_900, inclusive: true } },
      ...{ feeBasisPoints: 1_000, commissionBasisPoints: 2_000, ...changed },
    });
    const order: BookOrder = {
      ...{ ...split, id: ctx.newId(), sellerId: people.sellerId, referrerId: people.referrerId, currency },
      ...{ maturesAt: new Date(ctx.now().getTime() + 14 * DAY_MS), refundedMinor: 0n, dispute: null },
    };
    const processorFeeMinor = split.totalMinor < feeMinor ? 0n : feeMinor;
    await tx
      .insertInto("orders")
      .values({
        ...{ id: order.id, buyer_id: people.buyerId, seller_id: people.sellerId, product_id: people.productId },
        ...{ buyer_name: "", buyer_email: "", seller_name: "", product_title: "", product_type: "PROMPT" },
        ...{ product_version: "1.0.0", status: "completed", refund_days: 14, created_at: ctx.now(), currency },
        ...{ subtotal_minor: split.subtotalMinor, discount_minor: split.discountMinor, tax_minor: split.taxMinor },
        ...{ total_minor: split.totalMinor, fee_minor: split.feeMinor, commission_minor: split.commissionMinor },
        ...{ seller_minor: split.sellerMinor, fee_basis_points: 1_000, tax_inclusive: wish.tax?.inclusive ?? true },
        ...{ referrer_id: people.referrerId, processor_fee_minor: processorFeeMinor, completed_at: ctx.now() },
        ...{ matures_at: order.maturesAt, receipt_year: ctx.now().getUTCFullYear() },
        receipt_number: await nextReceipt(tx),
      })
      .execute();
    await bookSale(ctx, tx, { ...order, processorFeeMinor });
    return order;
  }

  async function nextReceipt(tx: Tx): Promise<number> {
    const { rows } = await sql<{ last: number }>`
      insert into receipt_counters values (${people.sellerId}, ${ctx.now().getUTCFullYear()}, 1)
      on conflict (seller_id, year) do update set last = receipt_counters.last + 1 returning last`.execute(tx);
    return rows[0]!.last;
  }

  /** Gives back some of an order, by other parts than it should where some are given. */
  async function refunds(tx: Tx, order: BookOrder, amount: bigint, parts?: Parts): Promise<string> {
    const { id, currency } = order;
    const refundId = ctx.newId();
    await tx
      .insertInto("refunds")
      .values({
        ...{ id: refundId, order_id: id, status: "succeeded", amount_minor: amount, currency, reason: "" },
        ...{ created_at: ctx.now(), completed_at: ctx.now() },
      })
      .execute();
    await book(tx, "refund", refundId, currency, [
      { account: "provider_clearing", amountMinor: amount, orderId: id },
      ...turned(shares(order, parts ?? splitRefund(order, order.refundedMinor, amount))),
    ]);
    order.refundedMinor += amount;
    await settleStatus(tx, order);
    return refundId;
  }

  /** The buyer's bank takes back what is left of an order, or some of it. */
  async function disputes(tx: Tx, order: BookOrder, amount = order.totalMinor - order.refundedMinor): Promise<string> {
    const id = ctx.newId();
    await tx
      .insertInto("disputes")
      .values({
        ...{ id, order_id: order.id, provider_dispute_id: id, status: "open", amount_minor: amount },
        ...{ fee_minor: 1_500n, reason: "", opened_at: ctx.now() },
      })
      .execute();
    order.dispute = { id, amountMinor: amount };
    await write(tx, `update orders set status = 'disputed' where id = '${order.id}'`);
    await book(tx, "dispute_opened", id, order.currency, heldOf(order));
    return id;
  }

  const heldOf = (order: BookOrder): Entry[] => {
    const { amountMinor } = order.dispute!;
    return [
      { account: "dispute_hold", amountMinor, orderId: order.id },
      ...turned(shares(order, splitRefund(order, order.refundedMinor, amountMinor))),
    ];
  };

  async function wins(tx: Tx, order: BookOrder): Promise<void> {
    const held = heldOf(order);
    const { id } = order.dispute!;
    order.dispute = null;
    await write(tx, `update disputes set status = 'won' where id = '${id}'`);
    await settleStatus(tx, order);
    await book(tx, "dispute_won", id, order.currency, turned(held));
  }

  async function loses(tx: Tx, order: BookOrder): Promise<void> {
    const { id, amountMinor } = order.dispute!;
    const of = { orderId: order.id };
    await write(
      tx,
      `update disputes set status = 'lost' where id = '${id}';
       update orders set status = 'refunded' where id = '${order.id}'`,
    );
    await book(tx, "dispute_lost", id, order.currency, [
      { ...of, account: "dispute_hold", amountMinor: -amountMinor },
      { ...of, account: "provider_clearing", amountMinor: amountMinor + 1_500n },
      { ...of, account: "seller", ownerId: order.sellerId, maturesAt: ctx.now(), amountMinor: -1_500n },
    ]);
  }

  const settleStatus = (tx: Tx, { id, refundedMinor, totalMinor }: BookOrder) => {
    const status = refundedMinor === totalMinor ? "refunded" : "partially_refunded";
    return write(
      tx,
      `update orders set refunded_minor = ${refundedMinor}, status = '${refundedMinor > 0n ? status : "completed"}'
        where id = '${id}'`,
    );
  };

  /** A payout to the seller of what they earned as seller and as referrer, in a state and with the bookings of some. */
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
        ...{ id, seller_id: people.sellerId, status, amount_minor: amountMinor, currency },
        ...{ period_start: ctx.now(), period_end: ctx.now(), created_at: ctx.now() },
      })
      .execute();
    const whose = { ownerId: people.sellerId, maturesAt: ctx.now() };
    const earned: Entry[] = [
      { account: "seller", ...whose, amountMinor: seller },
      { account: "referrer", ...whose, amountMinor: referrer },
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

  const book = (tx: Tx, kind: PostingKind, sourceId: string, currency: string, entries: Entry[]) =>
    post(ctx, tx, { kind, sourceId, currency, entries });

  return { sells, refunds, disputes, wins, loses, paysOut };
}

const turned = (entries: Entry[]): Entry[] =>
  entries.map((entry) => ({ ...entry, amountMinor: -entry.amountMinor }));
