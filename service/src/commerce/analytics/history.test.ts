import assert from "node:assert/strict";
import { after, before, test } from "node:test";
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
import { dayOf } from "../../core/dates.ts";

/** Each takes half a second, and each question another tenth of one. */
const HISTORIES = 4;
const QUESTIONS = 4;

/** Clocks that change at midnight, by half an hour, in the south; offsets of three quarters; and none at all. */
const ZONES = [
  ...["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"],
  ...["Asia/Beirut", "America/Havana", "America/Santiago", "Pacific/Chatham"],
];
/** Some days before clocks change in several of them. */
const BEGINNINGS = ["03-05T22:10:00.000Z", "10-23T20:55:00.000Z"];

const anyQuestion = fc.record({
  timezone: fc.constantFrom(...ZONES),
  interval: fc.constantFrom("day" as const, "week" as const, "month" as const),
  currency: fc.constantFrom(undefined, undefined, "USD", "JPY", "KWD", "EUR"),
  groupBy: fc.constantFrom<GroupBy>("product", "category", "referral", "currency"),
  /** In days of the history: where it begins, and how many it has. */
  first: fc.integer({ min: -20, max: 120 }),
  days: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 4, max: 400 })),
  product: fc.nat(10),
});

const PRICES = ["with tax on top", "with tax inside"];
const stages: Awaited<ReturnType<typeof openStage>>[] = [];
before(async () => {
  for (const prices of PRICES) stages.push(await openStage(prices === "with tax inside"));
});
after(() => Promise.all(stages.map((stage) => stage.close())));

test("whatever happened, analytics are what anybody would add up from the orders", async () => {
  let played = 0;
  const nextStage = () => {
    const [beginning, year] = [BEGINNINGS[played % BEGINNINGS.length], 2027 + played];
    return { from: new Date(`${year}-${beginning}`), ...stages[played++ % stages.length]! };
  };
  const anyQuestions = fc.array(anyQuestion, { minLength: QUESTIONS, maxLength: QUESTIONS });
  await fc.assert(
    fc.asyncProperty(anyHistory, anyQuestions, async (steps, questions) => {
      const { from, play } = nextStage();
      const history = await play(steps, from);
      for (const shop of history.shops) {
        const moves = await movementsOf(history, shop);
        for (const { first, days, ...question } of questions) {
          const startDate = shift(dayOf(from), first);
          const endDate = shift(startDate, days);
          await mustAgree(history, shop, moves, { ...question, startDate, endDate });
        }
      }
    }),
    // Another history would be of another year.
    { numRuns: runs(HISTORIES), endOnFailure: true },
  );
});

type Asked = Omit<AnalyticsQuery, "currency"> & {
  currency: string | undefined;
  groupBy: GroupBy;
  product: number;
};

/** All three answers to a question. */
async function mustAgree(
  history: History,
  shop: Shop,
  moves: MoneyMovement[],
  { product, groupBy, currency: asked, ...days }: Asked,
): Promise<void> {
  const { seller } = shop;
  const read = async (path: string, more: Record<string, string> = {}) => {
    const query = new URLSearchParams({ ...days, ...(asked && { currency: asked }), ...more });
    const reply = await seller.get(`/v1/analytics/${path}?${query}`);
    assert.equal(reply.status, 200, reply.text);
    return reply.body.data;
  };
  const { interval, ...shown } = days;
  const currency = asked ?? mostSold(moves);
  const told = { currency, ...shown };
  const question = { ...days, currency };

  const productId = pick([undefined, ...shop.products.map(({ id }) => id)], product);
  const products = await read("products", productId ? { productId } : {});
  const sold = recountProducts(moves, history.looks, shop, { ...question, productId });
  assert.deepEqual(products, { ...told, ...sold });

  const revenue = await read("revenue", { groupBy });
  const categoryOf = (id: string) => shop.products.find((one) => one.id === id)!.category;
  const expected = recountRevenue(moves, { ...question, groupBy }, categoryOf);
  assert.deepEqual(withoutFunds(revenue), { ...told, ...expected });
  await mustShowBalances(shop, revenue);

  const customers = await read("customers");
  assert.deepEqual(customers, { ...told, ...recountCustomers(moves, question) });
}

/** The currency with the most sales. */
function mostSold(moves: MoneyMovement[]): string {
  const sales = Map.groupBy(moves, ({ currency }) => currency);
  const counts = [...sales].map(([currency, of]) => ({
    currency,
    sales: of.filter(({ isSale }) => isSale).length,
  }));
  return byCurrency(counts).toSorted((one, other) => other.sales - one.sales)[0]!.currency;
}

// biome-ignore lint/suspicious/noExplicitAny: an answer, of which the test says what it expects
type Told = any;

/** Without what follows from the balance and not from the days, and without the words for people. */
function withoutFunds({ summary, breakdown, otherCurrencies, ...rest }: Told) {
  const bare = ({ pendingBalance: _, availableBalance: __, paidOut: ___, ...sums }: Told) => sums;
  return {
    ...rest,
    summary: bare(summary),
    breakdown: breakdown.map(({ label: _, ...sums }: Told) => sums),
    otherCurrencies: otherCurrencies.map(bare),
  };
}

async function mustShowBalances(
  { seller }: Shop,
  { currency, summary, otherCurrencies }: Told,
): Promise<void> {
  const balances = new Map<string, Told>(
    (await seller.get("/v1/balance")).body.data.map((balance: Told) => [balance.currency, balance]),
  );
  for (const told of [{ currency, ...summary }, ...otherCurrencies]) {
    const { pending = 0, available = 0 } = balances.get(told.currency) ?? {};
    assert.deepEqual([told.pendingBalance, told.availableBalance, told.paidOut], [pending, available, 0]);
  }
}
