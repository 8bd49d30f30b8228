import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { AnalyticsEntry, LedgerFigure } from "@stoa/contract";
import fc from "fast-check";
import {
  type AnalyticsQuery,
  type MoneyMovement,
  movementsOf,
  shift,
} from "../../../test/expected-analytics.ts";
import { recountCustomers } from "../../../test/expected-customers.ts";
import { byCurrency, type GroupBy, recountProducts, recountRevenue } from "../../../test/expected-sales.ts";
import { runs } from "../../../test/full-size.ts";
import { anyHistory, type History, openStage, pick, type Shop } from "../../../test/histories.ts";
import type { Client } from "../../../test/market.ts";
import { dayOf } from "../../core/dates.ts";
import { toDecimal, toMinor } from "../../core/money/amount.ts";
import { figures } from "./entries.ts";

/** A history takes 500 ms, a query 100 ms. */
const HISTORIES = 4;
const QUERIES = runs(4, 2);

/** Clock changes at midnight, by 30 minutes and in the south; offsets of 45 minutes; and no changes. */
const ZONES = [
  ...["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"],
  ...["Asia/Beirut", "America/Havana", "America/Santiago", "Pacific/Chatham"],
];
const ledgerFigures = Object.keys(figures) as LedgerFigure[];
/** A few days before clock changes in several zones. */
const BEGINNINGS = ["03-05T22:10:00.000Z", "10-23T20:55:00.000Z"];

const anyQuery = fc.record({
  timezone: fc.constantFrom(...ZONES),
  interval: fc.constantFrom("day" as const, "week" as const, "month" as const),
  currency: fc.constantFrom(undefined, undefined, "USD", "JPY", "KWD", "EUR"),
  groupBy: fc.constantFrom<GroupBy>("product", "category", "referral", "currency"),
  /** In days from the start of the history. */
  first: fc.integer({ min: -20, max: 120 }),
  days: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 4, max: 400 })),
  product: fc.nat(10),
});

const PRICES = ["with tax on top", "with tax inside"];
const markets: Awaited<ReturnType<typeof openStage>>[] = [];
before(async () => {
  for (const prices of PRICES) markets.push(await openStage(prices === "with tax inside"));
});
after(() => Promise.all(markets.map((market) => market.close())));

test("analytics, any history: equal a recomputation from the orders", async () => {
  let played = 0;
  const nextMarket = () => {
    const [beginning, year] = [BEGINNINGS[played % BEGINNINGS.length], 2027 + played];
    return { from: new Date(`${year}-${beginning}`), ...markets[played++ % markets.length]! };
  };
  const anyQueries = fc.array(anyQuery, { minLength: QUERIES, maxLength: QUERIES });
  await fc.assert(
    fc.asyncProperty(anyHistory, anyQueries, async (steps, queries) => {
      const { from, play } = nextMarket();
      const history = await play(steps, from);
      for (const shop of history.shops) {
        const moves = await movementsOf(history, shop);
        for (const { first, days, ...query } of queries) {
          const startDate = shift(dayOf(from), first);
          const endDate = shift(startDate, days);
          await assertEqualToOrders(history, shop, moves, { ...query, startDate, endDate });
        }
      }
    }),
    // Each history has its own year, so shrinking would not reproduce a failure.
    { numRuns: runs(HISTORIES), endOnFailure: true },
  );
});

type RequestedQuery = Omit<AnalyticsQuery, "currency"> & {
  currency: string | undefined;
  groupBy: GroupBy;
  product: number;
};

/** Compares products, revenue and customers. */
async function assertEqualToOrders(
  history: History,
  shop: Shop,
  moves: MoneyMovement[],
  { product, groupBy, currency: requested, ...days }: RequestedQuery,
): Promise<void> {
  const { seller } = shop;
  const read = async (path: string, more: Record<string, string> = {}) => {
    const query = new URLSearchParams({ ...days, ...(requested && { currency: requested }), ...more });
    const reply = await seller.get(`/v1/analytics/${path}?${query}`);
    assert.equal(reply.status, 200, reply.text);
    return reply.body.data;
  };
  const { interval, ...range } = days;
  const currency = requested ?? mostSold(moves);
  const common = { currency, ...range };
  const query = { ...days, currency };

  const productId = pick([undefined, ...shop.products.map(({ id }) => id)], product);
  const products = await read("products", productId ? { productId } : {});
  const sold = recountProducts(moves, history.looks, shop, { ...query, productId });
  assert.deepEqual(products, { ...common, ...sold });

  const revenue = await read("revenue", { groupBy });
  const categoryOf = (id: string) => shop.products.find((one) => one.id === id)!.category;
  const expected = recountRevenue(moves, { ...query, groupBy }, categoryOf);
  assert.deepEqual(withoutFunds(revenue), { ...common, ...expected });
  await assertBalances(shop, revenue);
  for (const figure of ledgerFigures) await assertEqualToEntries(seller, revenue, { figure });
  if (productId) {
    const one = await read("revenue", { groupBy, productId });
    const ofProduct = moves.filter((move) => move.productId === productId);
    const expectedOfOne = recountRevenue(ofProduct, { ...query, groupBy }, categoryOf);
    assert.deepEqual(withoutFunds(one), { ...common, ...expectedOfOne });
    await assertBalances(shop, one);
    for (const figure of ledgerFigures) await assertEqualToEntries(seller, one, { figure, productId });
    await assertEqualToCsv(seller, one, { ...days, productId });
  }

  const customers = await read("customers");
  assert.deepEqual(customers, { ...common, ...recountCustomers(moves, query) });
}

/** All pages of the ledger entries behind a sum add up to it, in minor units. */
async function assertEqualToEntries(
  seller: Client,
  { currency, startDate, endDate, timezone, summary }: ResponseData,
  of: { figure: LedgerFigure; productId?: string },
): Promise<void> {
  const { figure } = of;
  const query = new URLSearchParams({ currency, startDate, endDate, timezone, ...of, limit: "7" });
  const entries: AnalyticsEntry[] = [];
  for (let page = 1, total = 1; entries.length < total; page++) {
    const reply = await seller.get(`/v1/analytics/entries?${query}&page=${page}`);
    assert.equal(reply.status, 200, reply.text);
    assert.equal(reply.body.meta.sum, summary[figure], figure);
    entries.push(...reply.body.data);
    total = reply.body.meta.total;
    assert.ok(entries.length === total || reply.body.data.length > 0);
  }
  const minor = entries.reduce((sum, { amount }) => sum + toSigned(amount, currency)!, 0n);
  assert.equal(toDecimal(minor, currency), summary[figure], figure);
  assert.ok(entries.every(({ occurredAt }, at) => at === 0 || occurredAt <= entries[at - 1]!.occurredAt));
}

/** The rows of the export are those of the timeline. */
async function assertEqualToCsv(
  seller: Client,
  { currency, timeline }: ResponseData,
  query: Record<string, string>,
): Promise<void> {
  const path = `/v1/analytics/revenue/export?${new URLSearchParams({ ...query, currency })}`;
  const [, ...lines] = (await seller.get(path)).text.trimEnd().split("\r\n");
  const rows = timeline.map(({ date, ...sums }: ResponseData) =>
    [date, currency, ...Object.values(sums)].join(","),
  );
  assert.deepEqual(lines, rows);
}

const toSigned = (amount: number, currency: string) =>
  amount < 0 ? -toMinor(-amount, currency)! : toMinor(amount, currency);

function mostSold(moves: MoneyMovement[]): string {
  const sales = Map.groupBy(moves, ({ currency }) => currency);
  const counts = [...sales].map(([currency, of]) => ({
    currency,
    sales: of.filter(({ isSale }) => isSale).length,
  }));
  return byCurrency(counts).toSorted((one, other) => other.sales - one.sales)[0]!.currency;
}

// biome-ignore lint/suspicious/noExplicitAny: a response that the test compares as a whole
type ResponseData = any;

/** Omits balances, which do not depend on the days, and labels. */
function withoutFunds({ summary, breakdown, otherCurrencies, ...rest }: ResponseData) {
  const bare = ({ pendingBalance: _, availableBalance: __, paidOut: ___, ...sums }: ResponseData) => sums;
  return {
    ...rest,
    summary: bare(summary),
    breakdown: breakdown.map(({ label: _, ...sums }: ResponseData) => sums),
    otherCurrencies: otherCurrencies.map(bare),
  };
}

async function assertBalances(
  { seller }: Shop,
  { currency, summary, otherCurrencies }: ResponseData,
): Promise<void> {
  const balances = new Map<string, ResponseData>(
    (await seller.get("/v1/balance")).body.data.map((balance: ResponseData) => [balance.currency, balance]),
  );
  for (const summaryRow of [{ currency, ...summary }, ...otherCurrencies]) {
    const { pending = 0, available = 0 } = balances.get(summaryRow.currency) ?? {};
    assert.deepEqual(
      [summaryRow.pendingBalance, summaryRow.availableBalance, summaryRow.paidOut],
      [pending, available, 0],
    );
  }
}
