import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, suite, test } from "node:test";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { type Market, openMarket } from "../../../test/market.ts";
import { bookEarnings, requestPayout } from "../../../test/payouts.ts";
import { runChecks } from "../../backoffice/operator/doctor.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { disputeRooms } from "../../jobs.ts";
import { syncDispute } from "./disputes.ts";
import { reconcileNightly, reconcileProvider } from "./provider-reconciliation.ts";

const MINUTE_MS = 60_000;

let market: Market;
/** One object of each kind: our id and the provider's. */
let objects: Record<
  "order" | "plan payment" | "refund" | "payout" | "dispute",
  { ours: string; theirs: string }
>;
before(async () => {
  market = await openMarket();
  const seller = await market.createUser({ role: "seller" });
  const buyer = await market.createUser();
  const { userId } = await market.createUser({ role: "admin" });
  const admin = await market.createSession(userId, { secondFactor: true });
  const buy = async () => buyProduct(buyer, await createProduct(seller, { price: 20 }));
  const [paid, refunded, disputed] = [await buy(), await buy(), await buy()];
  const refund = await admin.post(`/v1/admin/orders/${refunded}/refund`, { reason: "other", amount: 5 });
  const session = await market.createSession(buyer.userId);
  assert.equal((await session.put("/v1/account/subscription", { plan: "pro" })).status, 200);
  const [plan] = (await buyer.get("/v1/account/subscription/payments")).body.data;
  await bookEarnings(market, seller, { amountMinor: 5_000n });
  const payout = (await requestPayout(market, seller, { amount: 50 })).body.data;
  await market.query(
    `insert into fake_provider.disputes
       select 'dp_1', id, order_id, amount_minor, 1500, currency, 'fraudulent', 'lost', created_at
         from fake_provider.charges where order_id = $1`,
    [disputed],
  );
  await syncDispute(market.service.ctx, disputeRooms, "dp_1");
  const theirs = async (table: string, column: string, ours: string) =>
    (await market.query(`select id from fake_provider.${table} where ${column} = $1`, [ours])).rows[0].id;
  const [refundId, payoutId] = [refund.body.data.id, payout.id];
  objects = {
    order: { ours: paid, theirs: await theirs("charges", "order_id", paid) },
    "plan payment": { ours: plan.id, theirs: await theirs("charges", "order_id", plan.id) },
    refund: { ours: refundId, theirs: await theirs("refunds", "refund_id", refundId) },
    payout: { ours: payoutId, theirs: await theirs("payouts", "payout_id", payoutId) },
    dispute: { ours: disputed, theirs: "dp_1" },
  };
  market.clock.forward(10 * MINUTE_MS);
});
after(() => market.close());

const EVER = new Date(0);
const differences = async (since = EVER) => (await reconcileProvider(market.service.ctx, since)).differences;

test("rows that agree with the provider: no difference, and everything is counted", async () => {
  const { ok, ...counted } = await reconcileProvider(market.service.ctx, EVER);
  assert.equal(ok, true, counted.differences.join("\n"));
  assert.partialDeepStrictEqual(counted, { charges: 4, refunds: 1, disputes: 1, payouts: 1 });
  assert.deepEqual(await differences(market.clock.now), [], "nothing was made since");
});

/** Changes our rows, because webhooks may come late; the expected difference; and the repair. */
const faults: Record<
  string,
  { change: () => [string, unknown[]]; repair: () => [string, unknown[]]; expected: () => RegExp }
> = {
  "a charge of another amount": {
    change: () => [
      "update fake_provider.charges set amount_minor = 1900 where id = $1",
      [objects.order.theirs],
    ],
    repair: () => [
      "update fake_provider.charges set amount_minor = 2000 where id = $1",
      [objects.order.theirs],
    ],
    expected: () =>
      new RegExp(`${objects.order.theirs} of 19.00 USD for ${objects.order.ours} is booked as 20.00 USD`),
  },
  "a charge of a plan without a ledger transaction": {
    change: () => [
      "update fake_provider.charges set order_id = 'pay_01kf5v8q3xe8hb1d6c1m2k3n4p' where id = $1",
      [objects["plan payment"].theirs],
    ],
    repair: () => [
      "update fake_provider.charges set order_id = $2 where id = $1",
      [objects["plan payment"].theirs, objects["plan payment"].ours],
    ],
    expected: () =>
      new RegExp(
        `${objects["plan payment"].theirs} .* is not booked: there is no such row|The plan payment ${objects["plan payment"].ours} is booked, and`,
      ),
  },
  "a refund that succeeded later": {
    change: () => [
      "update refunds set status = 'failed', failure_code = 'x' where id = $1",
      [toUuid("refund", objects.refund.ours)],
    ],
    repair: () => [
      "update refunds set status = 'succeeded', failure_code = null where id = $1",
      [toUuid("refund", objects.refund.ours)],
    ],
    expected: () => new RegExp(`${objects.refund.theirs} .* is not booked: ours is failed`),
  },
  "a refund at the dashboard": {
    change: () => [
      `insert into fake_provider.refunds
           select 're_dashboard', 'by hand', id, 700, currency, 'succeeded', null, created_at
             from fake_provider.charges where id = $1`,
      [objects.order.theirs],
    ],
    repair: () => ["delete from fake_provider.refunds where id = 're_dashboard'", []],
    expected: () =>
      /Refund re_dashboard of 7.00 USD .*made at the payment provider's dashboard.* is not booked/,
  },
  "a payout that was paid later": {
    change: () => [
      "update payouts set status = 'failed' where id = $1",
      [toUuid("payout", objects.payout.ours)],
    ],
    repair: () => [
      "update payouts set status = 'completed' where id = $1",
      [toUuid("payout", objects.payout.ours)],
    ],
    expected: () =>
      new RegExp(`${objects.payout.theirs} .*${objects.payout.ours}.* is completed at .* and failed here`),
  },
  "a dispute with another result": {
    change: () => ["update fake_provider.disputes set state = 'won'", []],
    repair: () => ["update fake_provider.disputes set state = 'lost'", []],
    expected: () => new RegExp(`dp_1 of ${objects.dispute.ours} is won at .* and lost here`),
  },
  "a dispute of another amount": {
    change: () => ["update disputes set fee_minor = 1400", []],
    repair: () => ["update disputes set fee_minor = 1500", []],
    expected: () => /dp_1 .* cost 15.00 USD, and 14.00 USD is booked/,
  },
};

test("any differences: the report names each of them and nothing else", async () => {
  // The report names one difference of a dispute at a time.
  const anyFaults = fc
    .subarray(Object.keys(faults), { minLength: 1 })
    .filter((names) => names.filter((name) => name.startsWith("a dispute")).length < 2);
  await fc.assert(
    fc.asyncProperty(anyFaults, async (names) => {
      const chosen = names.map((name) => faults[name]!);
      try {
        for (const { change } of chosen) await market.query(...change());
        const found = await differences();
        for (const { expected } of chosen)
          assert.ok(
            found.some((one) => expected().test(one)),
            found.join("\n"),
          );
        const others = found.filter((one) => !chosen.some(({ expected }) => expected().test(one)));
        assert.deepEqual(others, []);
      } finally {
        for (const { repair } of chosen) await market.query(...repair());
      }
      assert.deepEqual(await differences(), []);
    }),
    { numRuns: runs(12) },
  );
});

test("an object that the provider does not list: a difference", async () => {
  const { theirs, ours } = objects.order;
  await market.query("update fake_provider.charges set state = 'canceled' where id = $1", [theirs]);
  const found = (await differences()).join("\n");
  assert.match(found, new RegExp(`${theirs} .* is canceled at the payment provider, and booked as paid`));
  assert.match(found, new RegExp(`Order ${ours} is booked, and the payment provider does not list it`));
  await market.query("update fake_provider.charges set state = 'succeeded' where id = $1", [theirs]);
});

test("an object younger than two minutes: no difference", async () => {
  const { rows } = await market.query(
    "insert into fake_provider.charges select 'ch_new', $1, 100, 'USD', customer_id, method_id, '', 'succeeded', null, $2 from fake_provider.charges limit 1 returning id",
    [toId("ord", market.service.ctx.newId()), market.clock.now],
  );
  assert.deepEqual(await differences(), []);
  market.clock.forward(3 * MINUTE_MS);
  assert.match((await differences()).join("\n"), /Charge ch_new .* is not booked/);
  await market.query("delete from fake_provider.charges where id = $1", [rows[0].id]);
});

test("a charge newer than its order, because of another clock or the demo data: no difference", async () => {
  const { ours, theirs } = objects.order;
  const moveTo = (at: Date) =>
    market.query("update fake_provider.charges set created_at = $1 where id = $2", [at, theirs]);
  const { rows } = await market.query("select created_at from fake_provider.charges where id = $1", [theirs]);
  await moveTo(market.clock.now);
  assert.deepEqual(await differences(), [], ours);
  await moveTo(rows[0].created_at);
});

test("reconcileNightly: doctor and log name the differences until they are gone", async () => {
  const { config, pool } = market.service.ctx;
  const target = String(pool.options.connectionString);
  const finding = async () => {
    const all = await runChecks({ config, target }, market.clock.now);
    return all.find(({ check }) => check === "payment provider")!;
  };
  assert.match((await finding()).note, /not compared yet/);
  const { change, repair } = faults["a refund at the dashboard"]!;
  await market.query(...change());
  await reconcileNightly(market.service.ctx);
  const { ok, warning, note } = await finding();
  assert.deepEqual([ok, warning], [true, true]);
  assert.match(note, /^1 differences: Refund re_dashboard of 7.00 USD/);
  assert.ok(
    market.logs.some((line) => line.includes("differ from our rows") && line.includes("re_dashboard")),
  );
  await market.query(...repair());
  market.clock.forward(MINUTE_MS);
  await reconcileNightly(market.service.ctx);
  assert.equal((await finding()).warning, undefined);
});

suite("stoa-server payments reconcile", () => {
  const command = fileURLToPath(new URL("../../../bin/stoa-server.mjs", import.meta.url));

  /** Runs on the market's database, beside its service. */
  function reconcile(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    const { config, pool } = market.service.ctx;
    const [key] = config.masterKeys;
    const keys = `${key!.id}:${Buffer.from(key!.bytes).toString("base64")}`;
    const env = {
      ...process.env,
      DATABASE_URL: String(pool.options.connectionString),
      STOA_ENVIRONMENT: "test",
      STOA_MASTER_KEYS: keys,
      STOA_SESSION_KEYS: keys,
      STOA_DATA_DIR: config.dataDir,
    };
    return new Promise((resolve) => {
      execFile(
        process.execPath,
        [command, "payments", "reconcile", ...args],
        { env },
        (error, stdout, stderr) => resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
      );
    });
  }

  test("differences: exit code 1 with each of them; none: exit code 0", async () => {
    const { change, repair } = faults["a payout that was paid later"]!;
    await market.query(...change());
    const reported = await reconcile("--json");
    assert.equal(reported.code, 1, reported.stderr);
    const { ok, differences: found } = JSON.parse(reported.stdout);
    assert.deepEqual([ok, found.length], [false, 1]);
    assert.ok(reported.stderr.includes(objects.payout.ours));
    await market.query(...repair());
    const well = await reconcile("--since", "2026-06-01");
    assert.deepEqual([well.code, well.stdout.split("\n")[0]], [0, "ok: true"], well.stderr);
    const wrong = await reconcile("--since", "yesterday-ish");
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /It must be a date, such as 2026-06-01/);
  });
});
