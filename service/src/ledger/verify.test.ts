import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, suite, test } from "node:test";
import { fileURLToPath } from "node:url";
import { sql } from "kysely";
import { booksOf } from "../../test/books.ts";
import { hasBought, hasProduct } from "../../test/factories.ts";
import { type Client, type Market, openMarket } from "../../test/market.ts";
import type { Tx } from "../db/database.ts";
import { toId, toUuid } from "../ids.ts";
import { type Entry, post } from "./ledger.ts";
import { findProblems, verifyLedger } from "./verify.ts";

let market: Market;
let seller: Client;
let buyer: Client;
let books: ReturnType<typeof booksOf>;
before(async () => {
  market = await openMarket();
  const people = [await market.hasUser(), await market.hasUser(), await market.hasUser()] as const;
  [seller, buyer] = people;
  const product = await hasProduct(seller);
  await hasBought(buyer, product);
  const [sellerId, buyerId, referrerId] = people.map(({ userId }) => userId) as [string, string, string];
  books = booksOf(market.service.ctx, { sellerId, buyerId, referrerId, productId: toUuid("prod", product)! });
});
after(() => market.close());

/** What is done in a transaction that is never kept, with the guards off: what would the proofs say of it? */
async function problemsAfter(...deeds: ((tx: Tx) => Promise<unknown>)[]): Promise<string[]> {
  const kept = new Error("not kept");
  let problems: string[] = [];
  const work = market.service.ctx.db.transaction().execute(async (tx) => {
    await sql`set local session_replication_role = replica`.execute(tx);
    for (const deed of deeds) await deed(tx);
    problems = await findProblems(tx);
    throw kept;
  });
  await assert.rejects(work, kept);
  return problems;
}

const does = (statement: string) => (tx: Tx) => sql.raw(statement).execute(tx);

suite("a ledger is proved", () => {
  test("after purchases in currencies of every exponent, and of a plan", async () => {
    const { ctx } = market.service;
    for (const [currency, price] of [
      ["JPY", 500],
      ["KWD", 1.235],
      ["EUR", 0.01],
    ] as const)
      await hasBought(buyer, await hasProduct(seller, { currency, price }));
    const refused = { productId: await hasProduct(seller), paymentMethodId: "pm_test_declined" };
    assert.equal((await buyer.post("/v1/purchases", refused)).status, 402);
    const session = await market.hasSession(buyer.userId);
    assert.equal((await session.put("/v1/account/subscription", { plan: "pro" })).status, 200);
    const verdict = await verifyLedger(ctx.db);
    assert.deepEqual(verdict.problems, []);
    assert.deepEqual([verdict.ok, verdict.transactions], [true, 5]);
    const { rows } = await market.query("select count(*) as count from ledger_entries");
    assert.equal(verdict.entries, rows[0].count);
  });

  const histories: Record<string, (tx: Tx) => Promise<unknown>> = {
    "partial refunds": async (tx) => {
      const order = await books.sells(tx);
      await books.refunds(tx, order, 1n);
      await books.refunds(tx, order, 998n);
    },
    "refunds of all of it": async (tx) => {
      const order = await books.sells(tx);
      for (const amount of [667n, 666n, 666n]) await books.refunds(tx, order, amount);
    },
    "a refund that the buyer's bank sent back": async (tx) => {
      const order = await books.sells(tx);
      await books.returnsRefund(tx, order, await books.refunds(tx, order, 700n));
    },
    "a free copy": (tx) => books.sells(tx, { discountMinor: 1_999n }),
    "an open dispute": async (tx) => books.disputes(tx, await books.sells(tx)),
    "a dispute of what refunds had left": async (tx) => {
      const order = await books.sells(tx);
      await books.refunds(tx, order, 500n);
      await books.disputes(tx, order);
    },
    "a refund that reached the buyer while the bank held all of it": async (tx) => {
      const order = await books.sells(tx);
      await books.disputes(tx, order);
      await books.refunds(tx, order, 700n);
      await books.wins(tx, order);
    },
    "a dispute of more than was left": async (tx) => {
      const order = await books.sells(tx);
      await books.refunds(tx, order, 700n);
      await books.disputes(tx, order, 1_999n);
      await books.loses(tx, order);
    },
    "a dispute that was won": async (tx) => {
      const order = await books.sells(tx);
      await books.disputes(tx, order);
      await books.wins(tx, order);
    },
    "a dispute that was lost": async (tx) => {
      const order = await books.sells(tx);
      await books.disputes(tx, order);
      await books.loses(tx, order);
    },
    "payouts in every state": async (tx) => {
      await books.paysOut(tx, "pending", []);
      await books.paysOut(tx, "in_transit", [], { currency: "JPY" });
      await books.paysOut(tx, "completed", ["payout_completed"]);
      await books.paysOut(tx, "failed", ["payout_failed"]);
      await books.paysOut(tx, "returned", ["payout_completed", "payout_returned"]);
    },
  };
  for (const [what, history] of Object.entries(histories))
    test(`after ${what}`, async () => assert.deepEqual(await problemsAfter(history), []));

  test("while fifty purchases go on beside it", async () => {
    const products = await Promise.all(Array.from({ length: 50 }, () => hasProduct(seller)));
    const sold = Promise.all(products.map((product) => hasBought(buyer, product)));
    const verdicts = [];
    for (let times = 0; times < 5; times++) verdicts.push(await verifyLedger(market.service.ctx.db));
    await sold;
    verdicts.push(await verifyLedger(market.service.ctx.db));
    assert.deepEqual(
      verdicts.flatMap(({ problems }) => problems),
      [],
    );
  });
});

/** The dispute is over, and nobody told the books. */
const closed = (tx: Tx, id: string, status: "won" | "lost") =>
  does(
    `update disputes set status = '${status}', held_minor = 0 where id = '${id}';
     update orders set status = '${status === "won" ? "completed" : "refunded"}'
      where id = (select order_id from disputes where id = '${id}')`,
  )(tx);

/** Of each who shares in an order, something is wrong. */
const FOUR_SHARES = ["seller", "referrer", "platform_revenue", "tax_payable"].map(
  (account) => new RegExp(`^The refunds and disputes of order ord_\\w{26} book -?\\d+ on ${account}`),
);

suite("a problem is told", () => {
  const sale = "(select id from ledger_transactions where kind = 'sale' order by id limit 1)";
  const ofSale = `transaction_id = ${sale}`;
  /** What was done past the guards, and what is said of it: all of it, sentence by sentence. */
  const wrongs: Record<string, { deeds: ((tx: Tx) => Promise<unknown>)[]; said: RegExp[] }> = {
    "an entry that is gone": {
      deeds: [does(`delete from ledger_entries where ${ofSale} and account = 'seller'`)],
      said: [
        /^Ledger transaction [\w-]{36} \(sale\) has \d of its \d entries and does not sum to zero in USD\.$/,
        /^The sale of order ord_\w{26} books 0 on seller of usr_\w{26}, where 449 is due, in minor units of USD\.$/,
      ],
    },
    "an entry of another amount": {
      deeds: [does(`update ledger_entries set amount_minor = 448 where ${ofSale} and account = 'seller'`)],
      said: [
        /^Ledger transaction \S+ \(sale\) does not sum to zero in USD\.$/,
        /books 448 on seller .* where 449 is due/,
      ],
    },
    "an entry on another account": {
      deeds: [
        does(
          `update ledger_entries set account = 'tax_payable' where ${ofSale} and account = 'platform_revenue'`,
        ),
      ],
      said: [/books 0 on platform_revenue, where 50 is due/, /books 50 on tax_payable, where 0 is due/],
    },
    "an entry of somebody else": {
      deeds: [
        (tx) =>
          does(
            `update ledger_entries set owner_id = '${buyer.userId}' where ${ofSale} and account = 'seller'`,
          )(tx),
      ],
      said: [/books (0|449) on seller of usr_/, /books (0|449) on seller of usr_/],
    },
    "an entry in another currency": {
      deeds: [does(`update ledger_entries set currency = 'EUR' where ${ofSale}`)],
      said: [
        /books -?\d+ on \w+.* where 0 is due, in minor units of EUR/,
        /books 0 on \w+.* where -?\d+ is due, in minor units of USD/,
      ],
    },
    "an entry that matures earlier than its order": {
      deeds: [
        does(`update ledger_entries set matures_at = '2026-01-01' where ${ofSale} and account = 'seller'`),
      ],
      said: [
        /^Entry \d of ledger transaction \S+ \(sale\) matures at 2026-01-01T00:00:00\.000Z, its order ord_\S+ at 2026-/,
      ],
    },
    "an entry that names no order": {
      deeds: [
        does(`update ledger_entries set order_id = null where ${ofSale} and account = 'platform_revenue'`),
      ],
      said: [/^Entry \d of ledger transaction \S+ \(sale\) names no order, and is about ord_\w{26}\.$/],
    },
    "a sale that is not booked": {
      deeds: [
        does(`delete from ledger_entries where ${ofSale}`),
        does("delete from ledger_transactions where id not in (select transaction_id from ledger_entries)"),
      ],
      said: [
        /^The sale of order ord_\w{26} books 0 on seller .* where 449 is due/,
        /^The sale of order ord_\w{26} books 0 on \w+, where -?\d+ is due/,
      ],
    },
    "a booking whose order is not there": {
      deeds: [
        async (tx) => {
          const order = await books.sells(tx);
          await does(`delete from orders where id = '${order.id}'`)(tx);
        },
      ],
      said: [
        ...Array.from(
          { length: 6 },
          () => /^The sale of order ord_\w{26} books -?\d+ on \w+.* where 0 is due/,
        ),
        /^Seller usr_\w{26} has \d+ receipts numbered 1 to \d+ in 2026, and \d+ numbers were given out\.$/,
      ],
    },
    "an order whose parts are not those that were booked": {
      deeds: [
        does(`update orders set seller_minor = seller_minor - 1, fee_minor = fee_minor + 1
               where id = (select source_id from ledger_transactions where id = ${sale})`),
      ],
      said: [/books 50 on platform_revenue, where 51 is due/, /books 449 on seller .* where 448 is due/],
    },
    "a free copy for which something is booked": {
      deeds: [
        async (tx) => {
          const { id } = await books.sells(tx, { discountMinor: 1_999n });
          const entries: Entry[] = [
            { account: "platform_revenue", amountMinor: 7n, orderId: id },
            { account: "processor_fees", amountMinor: -7n, orderId: id },
          ];
          await does(`delete from ledger_entries where order_id = '${id}';
                      delete from ledger_transactions where source_id = '${id}';
                      update orders set processor_fee_minor = null where id = '${id}'`)(tx);
          await post(market.service.ctx, tx, { kind: "sale", sourceId: id, currency: "USD", entries });
        },
      ],
      said: [/books 7 on platform_revenue, where 0 is due/, /books -7 on processor_fees, where 0 is due/],
    },
    "a refund that is not booked": {
      deeds: [
        async (tx) => {
          const id = await books.refunds(tx, await books.sells(tx), 1_999n);
          await does(`delete from ledger_entries where transaction_id in (select id from ledger_transactions where source_id = '${id}');
                      delete from ledger_transactions where source_id = '${id}'`)(tx);
        },
      ],
      said: [
        /^Refund refund_\w{26} books 0 on provider_clearing, where 1999 is due/,
        /^Refund refund_\w{26} books 0 on shares, where -1999 is due/,
        ...FOUR_SHARES,
      ],
    },
    "a refund of which the platform bears nothing": {
      deeds: [
        async (tx) => {
          const parts = { feeMinor: 0n, commissionMinor: 0n, taxMinor: 0n, sellerMinor: 100n };
          await books.refunds(tx, await books.sells(tx), 100n, parts);
        },
      ],
      said: [
        /^The refunds and disputes of order ord_\w{26} book 0 on platform_revenue, where -8 is due/,
        /book -100 on seller .* where -59 is due/,
        /book 0 on referrer .* where -17 is due/,
        /book 0 on tax_payable, where -16 is due/,
      ],
    },
    "an order that forgot its refund": {
      deeds: [
        async (tx) => {
          const order = await books.sells(tx);
          await books.refunds(tx, order, 100n);
          await does(`update orders set refunded_minor = 99, status = 'completed' where id = '${order.id}'`)(
            tx,
          );
        },
      ],
      said: [
        /^The refunds and disputes of order \S+ book -\d+ on \w+/,
        /^Order ord_\w{26} says that 99 minor units are given back, its refunds and disputes 100, and is completed and should be partially_refunded\.$/,
      ],
    },
    "a refund that came back, and is owed to nobody": {
      deeds: [
        async (tx) => {
          const id = await books.refunds(tx, await books.sells(tx), 700n);
          await does(`update refunds set returned_at = completed_at where id = '${id}'`)(tx);
        },
      ],
      said: [
        /^The return of refund refund_\w{26} books 0 on buyer_credit of usr_\w{26}, where 700 is due/,
        /^The return of refund refund_\w{26} books 0 on provider_clearing, where -700 is due/,
      ],
    },
    "a dispute that is not booked": {
      deeds: [
        async (tx) => {
          const id = await books.disputes(tx, await books.sells(tx));
          await does(`delete from ledger_entries where transaction_id in (select id from ledger_transactions where source_id = '${id}');
                      delete from ledger_transactions where source_id = '${id}'`)(tx);
        },
      ],
      said: [/^The disputes of order ord_\w{26} book 0 on dispute_hold, where 1999 is due/, ...FOUR_SHARES],
    },
    "a dispute that was won and gave nothing back": {
      deeds: [async (tx) => closed(tx, await books.disputes(tx, await books.sells(tx)), "won")],
      said: [/^The disputes of order ord_\w{26} book 1999 on dispute_hold, where 0 is due/, ...FOUR_SHARES],
    },
    "a dispute that was lost and is still held": {
      deeds: [async (tx) => closed(tx, await books.disputes(tx, await books.sells(tx)), "lost")],
      said: [
        /^The disputes of order ord_\w{26} book 1999 on dispute_hold, where 0 is due/,
        /^Dispute [\w-]{36}, when lost, books 0 on provider_clearing, where 1500 is due/,
        /^Dispute [\w-]{36}, when lost, books 0 on seller of usr_\w{26}, where -1500 is due/,
        ...FOUR_SHARES,
        /^Order ord_\w{26} is refunded and should be completed\.$/,
      ],
    },
    "a dispute that is open and was booked as won": {
      deeds: [
        async (tx) => {
          const order = await books.sells(tx);
          const id = await books.disputes(tx, order);
          await books.wins(tx, order);
          await does(`update disputes set status = 'open' where id = '${id}';
                      update orders set status = 'disputed' where id = '${order.id}'`)(tx);
        },
      ],
      said: [/^Ledger transaction [\w-]{36} \(dispute_won\) is about dispute [\w-]{36}, which is open\.$/],
    },
    "a booking of a dispute that is not there": {
      deeds: [
        async (tx) => {
          const order = await books.sells(tx);
          await books.disputes(tx, order);
          await books.wins(tx, order);
          await does("delete from disputes")(tx);
        },
      ],
      said: [
        /^Ledger transaction \S+ \(dispute_opened\) is about dispute \S+, which is not there\.$/,
        /^Ledger transaction \S+ \(dispute_won\) is about dispute \S+, which is not there\.$/,
        ...Array.from({ length: 10 }, () => /names ord_\w{26}, and is about no order/),
      ],
    },
    "a refund on its way of which its order knows nothing": {
      deeds: [
        async (tx) => {
          const order = await books.sells(tx);
          await does(`insert into refunds (id, order_id, origin, status, amount_minor, currency, reason, created_at)
                      values (gen_random_uuid(), '${order.id}', 'service', 'processing', 5, 'USD', '', '2026-06-01')`)(
            tx,
          );
        },
      ],
      said: [/^Order ord_\w{26} says that 0 minor units are on their way back, its refunds 5\.$/],
    },
    "a payout that was completed and is still on its way": {
      deeds: [(tx) => books.paysOut(tx, "completed", [])],
      said: [
        /^The completion of payout payout_\w{26} books 0 on in_transit of usr_\w{26}, where -400 is due/,
        /books 0 on provider_clearing, where 400 is due/,
      ],
    },
    "a payout that failed and gave nothing back": {
      deeds: [(tx) => books.paysOut(tx, "failed", [])],
      said: [
        /^The failure of payout payout_\w{26} books 0 on in_transit of usr_\w{26}, where -400 is due/,
        /books 0 on referrer of usr_\w{26}, where 100 is due/,
        /books 0 on seller of usr_\w{26}, where 300 is due/,
      ],
    },
    "a payout that came back and was not returned": {
      deeds: [(tx) => books.paysOut(tx, "returned", ["payout_completed"])],
      said: [
        /^The return of payout payout_\w{26} books 0 on provider_clearing, where -400 is due/,
        /books 0 on referrer/,
        /books 0 on seller/,
      ],
    },
    "a payment of a plan that is not booked": {
      deeds: [
        (tx) =>
          does(`insert into subscription_payments (id, user_id, plan, price_minor, amount_minor, currency,
                  payment_method_id, owner_present, status, created_at)
                values (gen_random_uuid(), '${buyer.userId}', 'pro', 2900, 2900, 'USD', 'pm', true, 'completed', '2026-01-01')`)(
            tx,
          ),
      ],
      said: [
        /^The payment pay_\w{26} of a plan books 0 on platform_revenue, where 2900 is due/,
        /books 0 on provider_clearing, where -2900 is due/,
      ],
    },
    "a receipt number that was left out": {
      deeds: [
        async (tx) => {
          const { id } = await books.sells(tx);
          await does(`update orders set receipt_number = receipt_number + 1 where id = '${id}';
                      update receipt_counters set last = last + 1`)(tx);
        },
      ],
      said: [
        /^Seller usr_\w{26} has (\d+) receipts numbered 1 to \d+ in 2026, and \d+ numbers were given out\.$/,
      ],
    },
    "a number that was given to nobody": {
      deeds: [does("update receipt_counters set last = last + 1")],
      said: [
        /^Seller usr_\w{26} has (\d+) receipts numbered 1 to \1 in 2026, and \d+ numbers were given out\.$/,
      ],
    },
    "a receipt of another year": {
      deeds: [
        async (tx) => {
          const { id } = await books.sells(tx);
          await does(`update orders set completed_at = '2025-12-31T23:59:59Z' where id = '${id}'`)(tx);
        },
      ],
      said: [/^Order ord_\w{26} has a receipt of 2026, and was completed at 2025-12-31T23:59:59\.000Z\.$/],
    },
  };
  for (const [what, { deeds, said }] of Object.entries(wrongs)) {
    test(what, async () => {
      const problems = await problemsAfter(...deeds);
      const untold = said.filter((pattern) => !problems.some((problem) => pattern.test(problem)));
      const unforeseen = problems.filter((problem) => !said.some((pattern) => pattern.test(problem)));
      assert.deepEqual({ untold, unforeseen }, { untold: [], unforeseen: [] });
    });
  }

  test("a hundred of a kind, and how many more there are", async () => {
    const problems = await problemsAfter(async (tx) => {
      for (let times = 0; times < 120; times++)
        await does(`insert into ledger_transactions (id, kind, source_id, entry_count, occurred_at)
                    values (gen_random_uuid(), 'sale', gen_random_uuid(), 2, '2026-01-01')`)(tx);
    });
    assert.equal(problems.length, 101);
    assert.equal(problems.at(-1), "There are 20 more like the last one.");
  });
});

suite("stoa-server ledger verify", () => {
  const command = fileURLToPath(new URL("../../bin/stoa-server.mjs", import.meta.url));

  /** On the market's database, beside its service. */
  function verify(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    const { config } = market.service.ctx;
    const [key] = config.masterKeys;
    const env = {
      ...process.env,
      DATABASE_URL: databaseUrl(),
      STOA_ENVIRONMENT: "test",
      STOA_MASTER_KEYS: `${key!.id}:${Buffer.from(key!.bytes).toString("base64")}`,
      STOA_SESSION_KEYS: `${key!.id}:${Buffer.from(key!.bytes).toString("base64")}`,
      STOA_DATA_DIR: config.dataDir,
    };
    return new Promise((resolve) => {
      execFile(process.execPath, [command, "ledger", "verify", ...args], { env }, (error, stdout, stderr) =>
        resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
      );
    });
  }

  const databaseUrl = () => {
    const { connectionString } = market.service.ctx.pool.options as { connectionString?: string };
    return connectionString!;
  };

  test("says that all is well, with how much it looked at", async () => {
    const { code, stdout, stderr } = await verify("--json");
    const verdict = JSON.parse(stdout);
    assert.deepEqual([code, verdict.ok, verdict.problems], [0, true, []], stderr);
    assert.ok(verdict.transactions > 50 && verdict.entries > 150);
    assert.match((await verify()).stdout, /^ok: true\ntransactions: \d+\nentries: \d+\n$/);
  });

  test("names what is wrong, and fails", async () => {
    const { rows } = await market.query("select id from orders where completed_at is not null limit 1");
    const orderId = toId("ord", rows[0].id);
    await market.query("update orders set refunded_minor = 1 where id = $1", [rows[0].id]);
    const told = await verify("--json");
    assert.equal(told.code, 1);
    const { ok, problems } = JSON.parse(told.stdout);
    assert.equal(ok, false);
    assert.ok(
      problems.some((problem: string) => problem.startsWith(`Order ${orderId} says that 1 minor units`)),
    );
    const plain = await verify();
    assert.deepEqual([plain.code, plain.stdout.split("\n")[0]], [1, "ok: false"]);
    assert.ok(plain.stderr.includes(`Order ${orderId} says`));
    await market.query("update orders set refunded_minor = 0 where id = $1", [rows[0].id]);
    assert.equal((await verify()).code, 0);
  });
});
