import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { bookEarnings } from "../../../test/payouts.ts";
import { runChecks } from "../../backoffice/operator/doctor.ts";
import { type IdPrefix, toId, toUuid } from "../../core/ids.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

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

async function findings() {
  const { config, pool } = market.service.ctx;
  const target = String(pool.options.connectionString);
  const all = await runChecks({ config, target, embedded: null, close: async () => {} }, market.clock.now);
  return all.find(({ check }) => check === "money")!;
}

const figure = async (name: string, kind: string, state: string): Promise<number> => {
  const { text } = await market.as(null).get("/metrics");
  return Number(new RegExp(`^${name}\\{kind="${kind}",state="${state}"\\} (\\S+)$`, "m").exec(text)![1]);
};

async function hasOrder(): Promise<string> {
  return toUuid("ord", await buyProduct(buyer, await createProduct(seller, { price: 10 })))!;
}

/** A row of a table, beside what every one of them must have. */
async function insert(table: string, row: Record<string, unknown>): Promise<string> {
  const id = market.service.ctx.newId();
  const columns = Object.entries({ id, ...row });
  await market.query(
    `insert into ${table} (${columns.map(([name]) => name)}) values (${columns.map((_, at) => `$${at + 1}`)})`,
    columns.map(([, value]) => value),
  );
  return id;
}

/** Answers its order. */
async function hasDispute(opened_at: Date, answer_by: Date | null): Promise<string> {
  const order_id = await hasOrder();
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
  /** How it came to be so, where there are several ways. */
  how?: string;
  /** Open since now; answers its id, as it is told. */
  opens: (now: Date) => Promise<string>;
  ends: string;
  patienceMs: number;
  mend: RegExp;
}

const PROVIDER = /does a worker run, and does the payment provider answer\?/;
/** Long before anything else about it happened. */
const longAgo = () => new Date(market.clock.now.getTime() - 30 * DAY_MS);

const reported =
  (prefix: IdPrefix, open: (now: Date) => Promise<string>): Case["opens"] =>
  async (now) =>
    toId(prefix, await open(now));

const order = (status: string, mismatch: string | null = null) =>
  reported("ord", async (now) => {
    const id = await hasOrder();
    await market.query(
      `update orders set status = $2, completed_at = null, matures_at = null, receipt_year = null, receipt_number = null,
              created_at = $3, mismatch = $4
        where id = $1`,
      [id, status, now, mismatch],
    );
    return id;
  });

const planPayment = (status: string, row: Record<string, unknown> = {}) =>
  reported("pay", (now) =>
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
  reported("refund", async (now) =>
    insert("refunds", {
      order_id: await hasOrder(),
      origin: "admin",
      amount_minor: 100,
      currency: "USD",
      reason: "other",
      created_at: longAgo(),
      ...row(now),
    }),
  );

const payout = (row: (now: Date) => Record<string, unknown>) =>
  reported("payout", (now) =>
    insert("payouts", {
      seller_id: seller.userId,
      amount_minor: 5_000,
      commission_minor: 0,
      currency: "USD",
      destination: "acct_test",
      period_start: "2026-06-01",
      period_end: "2026-06-07",
      created_at: now,
      // Asked again and again: its age is counted from the first time.
      asked_at: new Date(now.getTime() + 30 * DAY_MS),
      ...row(now),
    }),
  );

const cases: Case[] = [
  {
    kind: "order",
    state: "pending",
    opens: order("pending"),
    ends: "update orders set status = 'canceled' where completed_at is null",
    patienceMs: HOUR_MS,
    mend: PROVIDER,
  },
  {
    kind: "order",
    state: "requires_action",
    opens: order("requires_action"),
    ends: "update orders set status = 'canceled' where completed_at is null",
    patienceMs: 25 * HOUR_MS,
    mend: PROVIDER,
  },
  {
    kind: "plan payment",
    state: "pending",
    opens: planPayment("pending"),
    ends: "delete from subscription_payments",
    patienceMs: HOUR_MS,
    mend: PROVIDER,
  },
  {
    kind: "plan payment",
    state: "requires_action",
    opens: planPayment("requires_action"),
    ends: "delete from subscription_payments",
    patienceMs: 25 * HOUR_MS,
    mend: PROVIDER,
  },
  {
    kind: "refund",
    state: "pending",
    opens: refund((now) => ({ status: "pending", created_at: now })),
    ends: "delete from refunds",
    patienceMs: 8 * DAY_MS,
    mend: /approves refunds that no seller decided in 7 days/,
  },
  {
    kind: "refund",
    state: "approved",
    opens: refund((now) => ({ status: "approved", decided_at: now })),
    ends: "delete from refunds",
    patienceMs: HOUR_MS,
    mend: PROVIDER,
  },
  {
    kind: "refund",
    state: "processing",
    opens: refund((now) => ({
      status: "processing",
      decided_at: now,
      asked_at: new Date(now.getTime() + DAY_MS),
    })),
    ends: "delete from refunds",
    patienceMs: DAY_MS,
    mend: /does the payment provider answer\? If so, its dashboard shows why the bank waits/,
  },
  {
    kind: "payout",
    state: "pending",
    opens: payout(() => ({ status: "pending" })),
    ends: "delete from payouts",
    patienceMs: HOUR_MS,
    mend: PROVIDER,
  },
  {
    kind: "payout",
    state: "in_transit",
    opens: payout(() => ({ status: "in_transit" })),
    ends: "delete from payouts",
    patienceMs: 7 * DAY_MS,
    mend: /ask the payment provider where it is/,
  },
  {
    kind: "order",
    state: "mismatched",
    opens: order("pending", "1899 USD"),
    ends: "update orders set status = 'canceled', mismatch = null where completed_at is null",
    patienceMs: 0,
    mend: /captured another amount than requested: refund all of it there/,
  },
  {
    kind: "plan payment",
    state: "mismatched",
    opens: planPayment("pending", { mismatch: "2800 USD" }),
    ends: "delete from subscription_payments",
    patienceMs: 0,
    mend: /captured another amount than requested: refund all of it there/,
  },
  {
    kind: "order",
    state: "mismatched",
    how: ", though it was given up,",
    opens: order("canceled", "1899 USD"),
    ends: "update orders set mismatch = null where completed_at is null",
    patienceMs: 0,
    mend: /captured another amount than requested: refund all of it there/,
  },
  {
    kind: "plan payment",
    state: "mismatched",
    how: ", though it was given up,",
    opens: planPayment("canceled", { mismatch: "2800 USD" }),
    ends: "delete from subscription_payments",
    patienceMs: 0,
    mend: /captured another amount than requested: refund all of it there/,
  },
  {
    kind: "plan payment",
    state: "unusable",
    opens: planPayment("canceled", { unusable_payment_id: "ch_late" }),
    ends: "delete from subscription_payments",
    patienceMs: 0,
    mend: /the payment came too late to buy its plan: refund it at the payment provider/,
  },
  {
    kind: "refund",
    state: "returned",
    opens: refund((now) => ({
      status: "succeeded",
      decided_at: longAgo(),
      completed_at: longAgo(),
      returned_at: now,
    })),
    ends: "delete from refunds",
    patienceMs: 0,
    mend: /the bank returned it: pay the buyer in another way, then run stoa-server refunds settle/,
  },
  {
    kind: "balance",
    state: "owed_by_closed_account",
    opens: reported("usr", async (now) => {
      const leaver = await market.createUser();
      await bookEarnings(market, leaver, { amountMinor: -500n });
      await market.query("update users set closed_at = $2 where id = $1", [leaver.userId, now]);
      return leaver.userId;
    }),
    ends: "update users set closed_at = null where closed_at is not null",
    patienceMs: 0,
    mend: /the account is closed, and a refund or dispute took more than its balance/,
  },
  {
    kind: "payout",
    state: "waits_for_balance",
    opens: payout(() => ({ status: "pending", waits_for: "balance_insufficient" })),
    ends: "delete from payouts",
    patienceMs: HOUR_MS,
    mend: /add to the marketplace's balance at the payment provider/,
  },
  {
    kind: "payout",
    state: "reversed",
    opens: payout((now) => ({ status: "completed", completed_at: now, reversed_minor: 1_000 })),
    ends: "delete from payouts",
    patienceMs: 0,
    mend: /reversed a part of it: reverse the rest there/,
  },
  {
    kind: "dispute",
    state: "open",
    opens: reported("ord", (now) => hasDispute(now, null)),
    ends: "update disputes set status = 'won', closed_at = opened_at",
    patienceMs: 0,
    mend: /answer it at the payment provider before the bank's date/,
  },
];

test("of open disputes the nearest date of a bank is told", async () => {
  const due = (days: number) => new Date(market.clock.now.getTime() + days * DAY_MS);
  const opened: string[] = [];
  for (const [at, answerBy] of [due(20), due(7), null].entries()) {
    opened.push(await hasDispute(new Date(market.clock.now.getTime() - (3 - at) * HOUR_MS), answerBy));
  }
  const { warning, note } = await findings();
  assert.equal(warning, true);
  assert.match(note, /^3 open as dispute, /);
  assert.ok(note.includes(`(${toId("ord", opened[0]!)})`), note);
  assert.ok(note.endsWith(`before the bank's date, ${due(7).toISOString()}`), note);
  const seconds = await figure("money_open_due_timestamp_seconds", "dispute", "open");
  assert.equal(seconds, due(7).getTime() / 1000);
  await market.query("update disputes set status = 'won', closed_at = opened_at");
});

suite("the doctor and /metrics tell of", () => {
  for (const { kind, state, how = "", opens, ends, patienceMs, mend } of cases)
    test(`what is ${state} as ${kind}${how} for too long: how many, which is the oldest, and what to do`, async () => {
      const since = market.clock.now;
      const oldest = await opens(since);
      market.clock.forward(patienceMs);
      assert.deepEqual(await findings(), { check: "money", ok: true, note: "1 open, none for too long" });
      assert.equal(await figure("money_open", kind, state), 1);
      assert.equal(await figure("money_open_oldest_seconds", kind, state), patienceMs / 1000);
      market.clock.forward(1);
      const { ok, warning, note } = await findings();
      assert.deepEqual([ok, warning], [true, true]);
      const what = `1 ${state} as ${kind}, the oldest since ${since.toISOString()} (${oldest}): `;
      assert.equal(note.slice(0, what.length), what);
      assert.match(note, mend);
      await market.query(ends);
      assert.deepEqual(await findings(), { check: "money", ok: true, note: "0 open, none for too long" });
      assert.equal(await figure("money_open_oldest_seconds", kind, state), 0);
    });
});
