import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { sql } from "kysely";
import { createProduct } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import {
  DISPUTE_FEE,
  freeOf,
  type LedgerOrder,
  type LedgerParties,
  ledgerWriter,
} from "../../../test/ledger-writer.ts";
import { type Market, openMarket } from "../../../test/market.ts";
import { DAY_MS } from "../../core/dates.ts";
import { toUuid } from "../../core/ids.ts";
import { shareOf } from "../../core/money/split.ts";
import type { Tx } from "../../platform/db/database.ts";
import { type Balance, balancesOf } from "./balances.ts";
import { findProblems } from "./verification.ts";

const HISTORIES = 40;

let market: Market;
let people: LedgerParties;
before(async () => {
  market = await openMarket();
  const [seller, buyer, referrer] = [
    await market.createUser(),
    await market.createUser(),
    await market.createUser(),
  ];
  const productId = toUuid("prod", await createProduct(seller))!;
  people = { sellerId: seller.userId, buyerId: buyer.userId, referrerId: referrer.userId, productId };
});
after(() => market.close());

const anyRate = fc.constantFrom(0, 1, 700, 1_000, 1_900, 3_333, 10_000);
const anySale = fc.record({
  kind: fc.constant("sale" as const),
  currency: fc.constantFrom("JPY", "USD", "KWD"),
  priceMinor: fc.oneof(fc.bigInt({ min: 1n, max: 30n }), fc.bigInt({ min: 1n, max: 99_999_999n })),
  discount: fc.constantFrom(0, 5_000, 10_000),
  tax: fc.record({ basisPoints: anyRate, inclusive: fc.boolean() }),
  feeBasisPoints: anyRate,
  commissionBasisPoints: anyRate,
});
const anyMove = fc.record({
  kind: fc.constantFrom("refund", "refund the rest", "dispute", "win", "lose", "pay out", "wait"),
  /** An index for the order, and a share of an amount. */
  which: fc.nat(1_000),
  share: fc.integer({ min: 0, max: 10_000 }),
});
type Generated<A> = A extends fc.Arbitrary<infer Value> ? Value : never;
type Step = Generated<typeof anySale> | Generated<typeof anyMove>;
const anyHistory = fc.array(fc.oneof({ arbitrary: anySale, weight: 1 }, { arbitrary: anyMove, weight: 2 }), {
  minLength: 5,
  maxLength: 30,
});

/** Runs `work` in a transaction that is rolled back. */
async function inRolledBackTransaction(work: (tx: Tx) => Promise<void>): Promise<void> {
  const rollback = new Error("not kept");
  const { now } = market.clock;
  const transaction = market.service.ctx.db.transaction().execute(async (tx) => {
    await work(tx);
    await sql`set constraints all immediate`.execute(tx);
    throw rollback;
  });
  await assert.rejects(transaction, (error) => {
    if (error !== rollback) throw error;
    return true;
  });
  market.clock.now = now;
}

/** Applies the possible steps. Returns the orders and those with a lost dispute. */
async function play(tx: Tx, history: Step[]): Promise<{ orders: LedgerOrder[]; lost: Set<LedgerOrder> }> {
  const books = ledgerWriter(market.service.ctx, people);
  const orders: LedgerOrder[] = [];
  const lost = new Set<LedgerOrder>();
  for (const step of history) {
    if (step.kind === "sale") {
      const { discount, priceMinor } = step;
      orders.push(await books.sells(tx, { ...step, discountMinor: shareOf(priceMinor, discount) }));
      continue;
    }
    const { kind, which, share } = step;
    if (kind === "wait") market.clock.forward(which * DAY_MS * 0.02);
    if (kind === "pay out") await payOut(tx, books, which);
    const order = orders[which % (orders.length || 1)];
    if (!order) continue;
    if (kind === "win" && order.dispute) await books.wins(tx, order);
    if (kind === "lose" && order.dispute) {
      await books.loses(tx, order);
      lost.add(order);
    }
    // A refund may have been in progress when the bank took the same money.
    const rest = order.totalMinor - order.refundedMinor;
    if (rest > 0n && kind === "refund the rest") await books.refunds(tx, order, rest);
    if (rest > 0n && kind === "refund")
      await books.refunds(tx, order, 1n + ((rest - 1n) * BigInt(share)) / 10_000n);
    // Every second bank takes the whole amount, whatever was refunded before.
    const amount = which % 2 === 0 ? order.totalMinor : freeOf(order);
    if (amount > 0n && kind === "dispute" && !order.dispute) await books.disputes(tx, order, amount);
  }
  return { orders, lost };
}

/** Pays out the available balances; `which` selects the final state. */
async function payOut(tx: Tx, books: ReturnType<typeof ledgerWriter>, which: number): Promise<void> {
  const { now } = market.clock;
  for (const { currency, availableMinor } of await balancesOf(tx, people.sellerId, now)) {
    if (availableMinor <= 0n) continue;
    const input = { seller: availableMinor, referrer: 0n, currency };
    // The database allows one open payout for each currency.
    if (which % 3 === 0) await books.paysOut(tx, "completed", ["payout_completed"], input);
    if (which % 3 === 1) await books.paysOut(tx, "failed", ["payout_failed"], input);
    if (which % 3 === 2) await books.paysOut(tx, "returned", ["payout_completed", "payout_returned"], input);
  }
}

interface Row {
  account: string;
  owner: string | null;
  currency: string;
  amount: string;
  order: string | null;
  matures: Date | null;
}

const entriesOf = async (tx: Tx): Promise<Row[]> =>
  (
    await sql<Row>`
      select account, owner_id as owner, currency, amount_minor::text as amount, order_id as "order", matures_at as matures
        from ledger_entries`.execute(tx)
  ).rows;

const sum = (rows: Row[]) => rows.reduce((total, { amount }) => total + BigInt(amount), 0n);

/** Computes a balance from the entries; there are no open refunds. */
function expectedBalances(rows: Row[], orders: LedgerOrder[], owner: string, now: Date): Balance[] {
  const mine = rows.filter((row) => row.owner === owner);
  const disputed = orders.filter(({ sellerId, dispute }) => dispute && sellerId === owner);
  const currencies = [...new Set([...mine, ...disputed].map(({ currency }) => currency))].toSorted();
  return currencies.map((currency) => {
    const of = (...accounts: string[]) =>
      mine.filter((row) => row.currency === currency && accounts.includes(row.account));
    const parts = (entries: Row[], reservedMinor: bigint) => ({
      pendingMinor: sum(entries.filter(({ matures }) => matures! > now)),
      availableMinor: sum(entries.filter(({ matures }) => matures! <= now)) - reservedMinor,
      reservedMinor,
    });
    const fees = DISPUTE_FEE * BigInt(disputed.filter((order) => order.currency === currency).length);
    return {
      ...{ currency, ...parts(of("seller", "referrer"), fees), inTransitMinor: sum(of("in_transit")) },
      referrer: parts(of("referrer"), 0n),
    };
  });
}

test("any history: entries sum to zero in each currency, and verification finds no problem", async () => {
  await fc.assert(
    fc.asyncProperty(anyHistory, (history) =>
      inRolledBackTransaction(async (tx) => {
        const { orders } = await play(tx, history);
        assert.deepEqual(await findProblems(tx), []);
        const rows = await entriesOf(tx);
        for (const currency of ["JPY", "USD", "KWD"]) {
          const mine = rows.filter((row) => row.currency === currency);
          assert.equal(sum(mine), 0n, currency);
          const atProvider = orders
            .filter((order) => order.currency === currency)
            .reduce((total, order) => total + order.atProviderMinor, 0n);
          assert.equal(
            -sum(mine.filter(({ account, order }) => account === "provider_clearing" && order !== null)),
            atProvider,
            `what the provider has in ${currency}`,
          );
          const held = orders
            .filter((order) => order.currency === currency)
            .map(({ dispute }) => dispute?.heldMinor ?? 0n);
          assert.equal(
            sum(mine.filter(({ account }) => account === "dispute_hold")),
            held.reduce((total, amount) => total + amount, 0n),
          );
        }
      }),
    ),
    { numRuns: runs(HISTORIES, 10) },
  );
});

test("any history: each balance equals the sum of its entries at any time", async () => {
  await fc.assert(
    fc.asyncProperty(anyHistory, fc.integer({ min: -30, max: 30 }), (history, days) =>
      inRolledBackTransaction(async (tx) => {
        const { orders } = await play(tx, history);
        const rows = await entriesOf(tx);
        const then = new Date(market.clock.now.getTime() + days * DAY_MS);
        for (const owner of [people.sellerId, people.referrerId, people.buyerId])
          assert.deepEqual(await balancesOf(tx, owner, then), expectedBalances(rows, orders, owner, then));
      }),
    ),
    { numRuns: runs(HISTORIES, 10) },
  );
});

const anyRequests = fc.array(
  fc.record({
    which: fc.nat(1_000),
    share: fc.integer({ min: 0, max: 10_000 }),
    status: fc.constantFrom("pending" as const, "approved" as const, "processing" as const),
  }),
  { minLength: 1, maxLength: 6 },
);

test("any history: open refunds reserve exactly what they take from the payable balance", async () => {
  await fc.assert(
    fc.asyncProperty(anyHistory, anyRequests, fc.integer({ min: 0, max: 30 }), (history, requests, days) =>
      inRolledBackTransaction(async (tx) => {
        const { orders } = await play(tx, history);
        const books = ledgerWriter(market.service.ctx, people);
        const requested = new Map<LedgerOrder, bigint>();
        for (const { which, share, status } of requests) {
          const order = orders[which % (orders.length || 1)];
          if (!order || order.totalMinor === 0n) continue;
          const amount = 1n + ((order.totalMinor - 1n) * BigInt(share)) / 10_000n;
          await books.asksForRefund(tx, order, amount, status);
          requested.set(order, (requested.get(order) ?? 0n) + amount);
        }
        const then = new Date(market.clock.now.getTime() + days * DAY_MS);
        const balances = () =>
          Promise.all([people.sellerId, people.referrerId].map((owner) => balancesOf(tx, owner, then)));
        const before = (await balances()).flat();
        await sql`update refunds set status = 'canceled', completed_at = created_at where completed_at is null`.execute(
          tx,
        );
        for (const [order, amount] of requested) {
          const rest = order.totalMinor - order.refundedMinor;
          if (rest > 0n) await books.refunds(tx, order, amount < rest ? amount : rest);
        }
        const payable = ({ currency, availableMinor, referrer }: Balance) => [
          ...[currency, availableMinor, referrer.availableMinor],
        ];
        assert.deepEqual(before.map(payable), (await balances()).flat().map(payable));
      }),
    ),
    { numRuns: runs(HISTORIES, 10) },
  );
});

test("any history: a full refund restores every account except for the provider's fee", async () => {
  await fc.assert(
    fc.asyncProperty(anyHistory, (history) =>
      inRolledBackTransaction(async (tx) => {
        const { orders, lost } = await play(tx, history);
        const books = ledgerWriter(market.service.ctx, people);
        for (const order of orders) {
          const rest = order.totalMinor - order.refundedMinor;
          if (rest > 0n) await books.refunds(tx, order, rest);
        }
        const rows = await entriesOf(tx);
        for (const order of orders) {
          if (lost.has(order)) continue;
          const of = (account: string) =>
            sum(rows.filter((row) => row.order === order.id && row.account === account));
          for (const account of ["seller", "referrer", "platform_revenue", "tax_payable", "dispute_hold"])
            assert.equal(of(account), 0n, account);
          assert.equal(of("provider_clearing"), -of("processor_fees"));
        }
      }),
    ),
    { numRuns: runs(HISTORIES, 10) },
  );
});
