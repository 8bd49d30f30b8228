import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { sampleOf } from "../../../test/full-size.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { bookEarnings } from "../../../test/payouts.ts";
import { runChecks } from "../../backoffice/operator/doctor.ts";
import { DAY_MS, HOUR_MS } from "../../core/dates.ts";
import { type IdPrefix, toId, toUuid } from "../../core/ids.ts";

let market: Market;
let seller: Client;
let buyer: Client;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ role: "seller" });
  buyer = await market.createUser();
  market.skipLedgerCheck();
});
after(() => market.close());

async function readFinding() {
  const { config, pool } = market.service.ctx;
  const target = String(pool.options.connectionString);
  const all = await runChecks({ config, target }, market.clock.now);
  return all.find(({ check }) => check === "money")!;
}

const readMetric = async (name: string, kind: string, state: string): Promise<number> => {
  const { text } = await market.as(null).get("/metrics");
  return Number(new RegExp(`^${name}\\{kind="${kind}",state="${state}"\\} (\\S+)$`, "m").exec(text)![1]);
};

async function createOrder(): Promise<string> {
  return toUuid("ord", await buyProduct(buyer, await createProduct(seller, { price: 10 })))!;
}

/** Inserts a row with the columns that each row of the table needs. */
async function insert(table: string, row: Record<string, unknown>): Promise<string> {
  const id = market.service.ctx.newId();
  const columns = Object.entries({ id, ...row });
  await market.query(
    `insert into ${table} (${columns.map(([name]) => name)}) values (${columns.map((_, at) => `$${at + 1}`)})`,
    columns.map(([, value]) => value),
  );
  return id;
}

/** Returns the order's id. */
async function createDispute(opened_at: Date, answer_by: Date | null): Promise<string> {
  const order_id = await createOrder();
  await insert("disputes", {
    order_id,
    provider_dispute_id: `dp_${order_id}`,
    status: "open",
    amount_minor: 100,
    reason: "fraudulent",
    answer_by,
    opened_at,
  });
  return order_id;
}

interface Case {
  kind: string;
  state: string;
  /** The cause, if there are several. */
  how?: string;
  /** Creates a row that is open since now. Returns its public id. */
  create: (now: Date) => Promise<string>;
  closeStatement: string;
  maxAgeMs: number;
  remedy: RegExp;
}

const PROVIDER = /does a worker run, and does the payment provider answer\?/;
/** Other timestamps of the row, which must not count as its age. */
const monthAgo = () => new Date(market.clock.now.getTime() - 30 * DAY_MS);

const withPublicId =
  (prefix: IdPrefix, open: (now: Date) => Promise<string>): Case["create"] =>
  async (now) =>
    toId(prefix, await open(now));

const order = (status: string, mismatch: string | null = null) =>
  withPublicId("ord", async (now) => {
    const id = await createOrder();
    await market.query(
      `update orders set status = $2, completed_at = null, matures_at = null, receipt_year = null, receipt_number = null,
              created_at = $3, mismatch = $4
        where id = $1`,
      [id, status, now, mismatch],
    );
    return id;
  });

const planPayment = (status: string, row: Record<string, unknown> = {}) =>
  withPublicId("pay", (now) =>
    insert("subscription_payments", {
      user_id: buyer.userId,
      buyer_name: "Somebody",
      buyer_email: "somebody@example.com",
      plan: "pro",
      price_minor: 2_900,
      amount_minor: 2_900,
      currency: "USD",
      payment_method_id: "pm_test_ok",
      status,
      owner_present: true,
      created_at: now,
      ...row,
    }),
  );

const refund = (row: (now: Date) => Record<string, unknown>) =>
  withPublicId("refund", async (now) =>
    insert("refunds", {
      order_id: await createOrder(),
      origin: "admin",
      amount_minor: 100,
      currency: "USD",
      reason: "other",
      created_at: monthAgo(),
      ...row(now),
    }),
  );

const payout = (row: (now: Date) => Record<string, unknown>) =>
  withPublicId("payout", (now) =>
    insert("payouts", {
      seller_id: seller.userId,
      amount_minor: 5_000,
      commission_minor: 0,
      currency: "USD",
      destination: "acct_test",
      period_start: "2026-06-01",
      period_end: "2026-06-07",
      created_at: now,
      // The time of the last request must not reset the age.
      asked_at: new Date(now.getTime() + 30 * DAY_MS),
      ...row(now),
    }),
  );

const cases: Case[] = [
  {
    kind: "order",
    state: "pending",
    create: order("pending"),
    closeStatement: "update orders set status = 'canceled' where completed_at is null",
    maxAgeMs: HOUR_MS,
    remedy: PROVIDER,
  },
  {
    kind: "order",
    state: "requires_action",
    create: order("requires_action"),
    closeStatement: "update orders set status = 'canceled' where completed_at is null",
    maxAgeMs: 25 * HOUR_MS,
    remedy: PROVIDER,
  },
  {
    kind: "plan payment",
    state: "pending",
    create: planPayment("pending"),
    closeStatement: "delete from subscription_payments",
    maxAgeMs: HOUR_MS,
    remedy: PROVIDER,
  },
  {
    kind: "plan payment",
    state: "requires_action",
    create: planPayment("requires_action"),
    closeStatement: "delete from subscription_payments",
    maxAgeMs: 25 * HOUR_MS,
    remedy: PROVIDER,
  },
  {
    kind: "refund",
    state: "pending",
    create: refund((now) => ({ status: "pending", created_at: now })),
    closeStatement: "delete from refunds",
    maxAgeMs: 8 * DAY_MS,
    remedy: /approves refunds that no seller decided in 7 days/,
  },
  {
    kind: "refund",
    state: "approved",
    create: refund((now) => ({ status: "approved", decided_at: now })),
    closeStatement: "delete from refunds",
    maxAgeMs: HOUR_MS,
    remedy: PROVIDER,
  },
  {
    kind: "refund",
    state: "processing",
    create: refund((now) => ({
      status: "processing",
      decided_at: now,
      asked_at: new Date(now.getTime() + DAY_MS),
    })),
    closeStatement: "delete from refunds",
    maxAgeMs: DAY_MS,
    remedy: /does the payment provider answer\? If so, its dashboard shows why the bank waits/,
  },
  {
    kind: "payout",
    state: "pending",
    create: payout(() => ({ status: "pending" })),
    closeStatement: "delete from payouts",
    maxAgeMs: HOUR_MS,
    remedy: PROVIDER,
  },
  {
    kind: "payout",
    state: "in_transit",
    create: payout(() => ({ status: "in_transit" })),
    closeStatement: "delete from payouts",
    maxAgeMs: 7 * DAY_MS,
    remedy: /ask the payment provider where it is/,
  },
  {
    kind: "order",
    state: "mismatched",
    create: order("pending", "1899 USD"),
    closeStatement: "update orders set status = 'canceled', mismatch = null where completed_at is null",
    maxAgeMs: 0,
    remedy: /captured another amount than requested: refund all of it there/,
  },
  {
    kind: "plan payment",
    state: "mismatched",
    create: planPayment("pending", { mismatch: "2800 USD" }),
    closeStatement: "delete from subscription_payments",
    maxAgeMs: 0,
    remedy: /captured another amount than requested: refund all of it there/,
  },
  {
    kind: "order",
    state: "mismatched",
    how: ", though it was given up,",
    create: order("canceled", "1899 USD"),
    closeStatement: "update orders set mismatch = null where completed_at is null",
    maxAgeMs: 0,
    remedy: /captured another amount than requested: refund all of it there/,
  },
  {
    kind: "plan payment",
    state: "mismatched",
    how: ", though it was given up,",
    create: planPayment("canceled", { mismatch: "2800 USD" }),
    closeStatement: "delete from subscription_payments",
    maxAgeMs: 0,
    remedy: /captured another amount than requested: refund all of it there/,
  },
  {
    kind: "plan payment",
    state: "unusable",
    create: planPayment("canceled", { unusable_payment_id: "ch_late" }),
    closeStatement: "delete from subscription_payments",
    maxAgeMs: 0,
    remedy: /the payment came too late to buy its plan: refund it at the payment provider/,
  },
  {
    kind: "refund",
    state: "returned",
    create: refund((now) => ({
      status: "succeeded",
      decided_at: monthAgo(),
      completed_at: monthAgo(),
      returned_at: now,
    })),
    closeStatement: "delete from refunds",
    maxAgeMs: 0,
    remedy: /the bank returned it: pay the buyer in another way, then run stoa-server refunds settle/,
  },
  {
    kind: "balance",
    state: "owed_by_closed_account",
    create: withPublicId("usr", async (now) => {
      const leaver = await market.createUser();
      await bookEarnings(market, leaver, { amountMinor: -500n });
      await market.query("update users set closed_at = $2 where id = $1", [leaver.userId, now]);
      return leaver.userId;
    }),
    closeStatement: "update users set closed_at = null where closed_at is not null",
    maxAgeMs: 0,
    remedy: /the account is closed, and a refund or dispute took more than its balance/,
  },
  {
    kind: "payout",
    state: "waits_for_balance",
    create: payout(() => ({ status: "pending", waits_for: "balance_insufficient" })),
    closeStatement: "delete from payouts",
    maxAgeMs: HOUR_MS,
    remedy: /add to the marketplace's balance at the payment provider/,
  },
  {
    kind: "payout",
    state: "reversed",
    create: payout((now) => ({ status: "completed", completed_at: now, reversed_minor: 1_000 })),
    closeStatement: "delete from payouts",
    maxAgeMs: 0,
    remedy: /reversed a part of it: reverse the rest there/,
  },
  {
    kind: "dispute",
    state: "open",
    create: withPublicId("ord", (now) => createDispute(now, null)),
    closeStatement: "update disputes set status = 'won', closed_at = opened_at",
    maxAgeMs: 0,
    remedy: /answer it at the payment provider before the bank's date/,
  },
];

test("several open disputes: the nearest deadline is reported", async () => {
  const due = (days: number) => new Date(market.clock.now.getTime() + days * DAY_MS);
  const opened: string[] = [];
  for (const [at, answerBy] of [due(20), due(7), null].entries()) {
    opened.push(await createDispute(new Date(market.clock.now.getTime() - (3 - at) * HOUR_MS), answerBy));
  }
  const { warning, note } = await readFinding();
  assert.equal(warning, true);
  assert.match(note, /^3 open as dispute, /);
  assert.ok(note.includes(`(${toId("ord", opened[0]!)})`), note);
  assert.ok(note.endsWith(`before the bank's date, ${due(7).toISOString()}`), note);
  const seconds = await readMetric("money_open_due_timestamp_seconds", "dispute", "open");
  assert.equal(seconds, due(7).getTime() / 1000);
  await market.query("update disputes set status = 'won', closed_at = opened_at");
});

suite("doctor and /metrics", () => {
  for (const { kind, state, how = "", create, closeStatement, maxAgeMs, remedy } of sampleOf(cases))
    test(`${kind} ${state}${how} for too long: number, oldest id and remedy`, async () => {
      const since = market.clock.now;
      const oldest = await create(since);
      market.clock.forward(maxAgeMs);
      assert.deepEqual(await readFinding(), { check: "money", ok: true, note: "1 open, none for too long" });
      assert.equal(await readMetric("money_open", kind, state), 1);
      assert.equal(await readMetric("money_open_oldest_seconds", kind, state), maxAgeMs / 1000);
      market.clock.forward(1);
      const { ok, warning, note } = await readFinding();
      assert.deepEqual([ok, warning], [true, true]);
      const what = `1 ${state} as ${kind}, the oldest since ${since.toISOString()} (${oldest}): `;
      assert.equal(note.slice(0, what.length), what);
      assert.match(note, remedy);
      await market.query(closeStatement);
      assert.deepEqual(await readFinding(), { check: "money", ok: true, note: "0 open, none for too long" });
      assert.equal(await readMetric("money_open_oldest_seconds", kind, state), 0);
    });
});
