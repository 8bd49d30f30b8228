import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, suite, test } from "node:test";
import { fileURLToPath } from "node:url";
import { sql } from "kysely";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { inFullRun } from "../../../test/full-size.ts";
import { ledgerWriter } from "../../../test/ledger-writer.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { toId, toUuid } from "../../core/ids.ts";
import type { Tx } from "../../platform/db/database.ts";
import { rebuildSumsIn } from "../analytics/rebuild.ts";
import { type Account, accounts, type Entry, type PostingKind, postTransaction } from "./ledger.ts";
import { findProblems, verifyLedger } from "./verification.ts";

let market: Market;
let seller: Client;
let buyer: Client;
let books: ReturnType<typeof ledgerWriter>;
before(async () => {
  market = await openMarket();
  const people = [await market.createUser(), await market.createUser(), await market.createUser()] as const;
  [seller, buyer] = people;
  const product = await createProduct(seller);
  await buyProduct(buyer, product);
  const [sellerId, buyerId, referrerId] = people.map(({ userId }) => userId) as [string, string, string];
  books = ledgerWriter(market.service.ctx, {
    sellerId,
    buyerId,
    referrerId,
    productId: toUuid("prod", product)!,
  });
});
after(() => market.close());

/** Runs the changes without triggers in a transaction that is rolled back, and returns the problems found. */
async function problemsAfter(...changes: ((tx: Tx) => Promise<unknown>)[]): Promise<string[]> {
  const rollback = new Error("not kept");
  let problems: string[] = [];
  const work = market.service.ctx.db.transaction().execute(async (tx) => {
    await sql`set local session_replication_role = replica`.execute(tx);
    for (const change of changes) await change(tx);
    problems = await findProblems(tx);
    throw rollback;
  });
  await assert.rejects(work, rollback);
  return problems;
}

/** A plan payment of 29.00 with 4.63 tax and a provider fee of 1.14, without ledger entries. */
const insertPlanPayment = (receipt: number, at: string) => (tx: Tx) =>
  execute(`delete from subscription_receipt_counters;
        delete from ledger_entries where transaction_id in (select id from ledger_transactions where kind = 'subscription');
        delete from ledger_transactions where kind = 'subscription';
        delete from subscription_payments;
        insert into subscription_receipt_counters (year, last) values (2026, 1);
        insert into subscription_payments (id, user_id, buyer_name, buyer_email, plan, price_minor, tax_minor, tax_basis_points,
            tax_inclusive, amount_minor, processor_fee_minor, currency, payment_method_id, owner_present, status, created_at, settled_at,
            period_start, period_end, receipt_year, receipt_number)
          values (gen_random_uuid(), '${buyer.userId}', 'B', 'b@example.com', 'pro', 2900, 463, 1900, true, 2900, 114, 'USD',
            'pm', true, 'completed', '${at}', '${at}', '${at}', '2026-02-01', 2026, ${receipt})`)(tx);

/** Drops check constraints, as if the rows came from elsewhere. */
const unchecked = (tx: Tx) =>
  sql`do $$
    declare
      guard record;
    begin
      for guard in select conrelid::regclass as place, conname from pg_constraint
                    where contype = 'c' and conrelid in ('orders'::regclass, 'disputes'::regclass, 'ledger_entries'::regclass) loop
        execute format('alter table %s drop constraint %I', guard.place, guard.conname);
      end loop;
    end $$`.execute(tx);

const execute = (statement: string) => (tx: Tx) => sql.raw(statement).execute(tx);

suite("ledger verification, correct books", () => {
  test("purchases in currencies of each exponent and a plan payment: no problems", async () => {
    const { ctx } = market.service;
    for (const [currency, price] of [
      ["JPY", 500],
      ["KWD", 1.235],
      ["EUR", 0.01],
    ] as const)
      await buyProduct(buyer, await createProduct(seller, { currency, price }));
    const refused = { productId: await createProduct(seller), paymentMethodId: "pm_test_declined" };
    assert.equal((await buyer.post("/v1/purchases", refused)).status, 402);
    const session = await market.createSession(buyer.userId);
    assert.equal((await session.put("/v1/account/subscription", { plan: "pro" })).status, 200);
    const result = await verifyLedger(ctx.db);
    assert.deepEqual(result.problems, []);
    assert.deepEqual([result.ok, result.transactions], [true, 5]);
    const { rows } = await market.query("select count(*) as count from ledger_entries");
    assert.equal(result.entries, rows[0].count);
  });

  const histories: Record<string, (tx: Tx) => Promise<unknown>> = {
    "partial refunds": async (tx) => {
      const order = await books.sells(tx);
      await books.refunds(tx, order, 1n);
      await books.refunds(tx, order, 998n);
    },
    "full refunds in parts": async (tx) => {
      const order = await books.sells(tx);
      for (const amount of [667n, 666n, 666n]) await books.refunds(tx, order, amount);
    },
    "a returned refund": async (tx) => {
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
  for (const [name, history] of Object.entries(histories))
    test(`after ${name}: no problems`, async () => assert.deepEqual(await problemsAfter(history), []));

  test("fifty concurrent purchases: no problems", inFullRun, async () => {
    const products = await Promise.all(Array.from({ length: 50 }, () => createProduct(seller)));
    const sold = Promise.all(products.map((product) => buyProduct(buyer, product)));
    const results = [];
    for (let times = 0; times < 5; times++) results.push(await verifyLedger(market.service.ctx.db));
    await sold;
    results.push(await verifyLedger(market.service.ctx.db));
    assert.deepEqual(
      results.flatMap(({ problems }) => problems),
      [],
    );
  });
});

/** The dispute is closed without a posting. */
const closed = (tx: Tx, id: string, status: "won" | "lost") =>
  execute(
    `update disputes set status = '${status}', held_minor = 0${status === "lost" ? ", lost_minor = 1999" : ""} where id = '${id}';
     update orders set status = '${status === "won" ? "completed" : "refunded"}'
      where id = (select order_id from disputes where id = '${id}')`,
  )(tx);

const isEarned = (account: Account) => account === "seller" || account === "referrer";
const isOwned = (account: Account) =>
  isEarned(account) || account === "in_transit" || account === "buyer_credit";

/** Adds an entry to a posted transaction. */
async function adds(tx: Tx, kind: PostingKind, sourceId: string, account: Account, amount: number) {
  const ofBooking = `(select id from ledger_transactions where kind = '${kind}' and source_id = '${sourceId}')`;
  const owner = isOwned(account) ? `'${seller.userId}'` : "null";
  const maturesAt = isEarned(account) ? "(select matures_at from orders where id = order_id)" : "null";
  await execute(
    `update ledger_transactions set entry_count = entry_count + 1 where id = ${ofBooking};
     update ledger_entries set entry_count = entry_count + 1 where transaction_id = ${ofBooking};
     insert into ledger_entries (transaction_id, position, entry_count, account, owner_id, currency, amount_minor, order_id, matures_at)
     select transaction_id, entry_count, entry_count, '${account}', ${owner}, currency, ${amount}, order_id, ${maturesAt}
       from ledger_entries where transaction_id = ${ofBooking} and position = 1`,
  )(tx);
}

/** Moves an amount of a transaction between two accounts. */
const shifts = (kind: PostingKind, sourceId: string, amount: number, from: Account, to: Account) =>
  execute(
    `update ledger_entries set amount_minor = amount_minor + case account when '${to}' then ${amount} else ${-amount} end
      where account in ('${from}', '${to}')
        and transaction_id = (select id from ledger_transactions where kind = '${kind}' and source_id = '${sourceId}')`,
  );

const ZERO = "00000000-0000-0000-0000-000000000000";

/** Reports a wrong amount for each share of an order. */
const FOUR_SHARES = ["seller", "referrer", "platform_revenue", "tax_payable"].map(
  (account) => new RegExp(`^The refunds and disputes of order ord_\\w{26} book -?\\d+ on ${account}`),
);

/** The sums follow the changed ledger and therefore differ from the receipts. */
const OTHER_RECEIPTS =
  /^Analytics of usr_\w{26}(, (of prod|by usr)_\w{26})? have in the quarter of an hour from 20\S+ gross of \d+ and not the \d+ of receipts, in minor units of (USD|EUR)\.$/;

suite("ledger verification reports", () => {
  const sale = "(select id from ledger_transactions where kind = 'sale' order by id limit 1)";
  const ofSale = `transaction_id = ${sale}`;
  /** Changes made without triggers, and all expected problems. */
  const wrongs: Record<string, { changes: ((tx: Tx) => Promise<unknown>)[]; expected: RegExp[] }> = {
    "a plan tax that differs from its copied rate": {
      changes: [
        insertPlanPayment(1, "2026-01-01"),
        execute("update subscription_payments set tax_basis_points = 2000"),
      ],
      expected: [
        /of a plan books 0 on/,
        /^The payment pay_\w{26} of a plan has a tax of 463, where 483 is due by its rate, in minor units of USD\.$/,
      ],
    },
    "a missing entry": {
      changes: [execute(`delete from ledger_entries where ${ofSale} and account = 'seller'`)],
      expected: [
        OTHER_RECEIPTS,
        /^Ledger transaction [\w-]{36} \(sale\) has \d of its \d entries and does not sum to zero in USD\.$/,
        /^The sale of order ord_\w{26} books 0 on seller of usr_\w{26}, where 449 is due, in minor units of USD\.$/,
      ],
    },
    "an entry with a wrong amount": {
      changes: [
        execute(`update ledger_entries set amount_minor = 448 where ${ofSale} and account = 'seller'`),
      ],
      expected: [
        OTHER_RECEIPTS,
        /^Ledger transaction \S+ \(sale\) does not sum to zero in USD\.$/,
        /books 448 on seller .* where 449 is due/,
      ],
    },
    "an entry on a wrong account": {
      changes: [
        execute(
          `update ledger_entries set account = 'tax_payable' where ${ofSale} and account = 'platform_revenue'`,
        ),
      ],
      expected: [
        OTHER_RECEIPTS,
        /books 0 on platform_revenue, where 50 is due/,
        /books 50 on tax_payable, where 0 is due/,
      ],
    },
    "an entry of a wrong owner": {
      changes: [
        (tx) =>
          execute(
            `update ledger_entries set owner_id = '${buyer.userId}' where ${ofSale} and account = 'seller'`,
          )(tx),
      ],
      expected: [/books (0|449) on seller of usr_/, /books (0|449) on seller of usr_/],
    },
    "an entry of a wrong referrer": {
      changes: [
        async (tx) => {
          const { id } = await books.sells(tx);
          await execute(
            `update ledger_entries set owner_id = '${buyer.userId}' where order_id = '${id}' and account = 'referrer'`,
          )(tx);
        },
      ],
      expected: [
        /^The sale of order ord_\w{26} books 0 on referrer of usr_/,
        /^The sale of order ord_\w{26} books \d+ on referrer of usr_\w{26}, where 0 is due/,
      ],
    },
    "an owner on a platform account": {
      changes: [
        execute(
          `update ledger_entries set owner_id = '${ZERO}' where ${ofSale} and account = 'platform_revenue'`,
        ),
      ],
      expected: [
        /^The sale of order ord_\w{26} books 0 on platform_revenue, where 50 is due/,
        /^The sale of order ord_\w{26} books 50 on platform_revenue of usr_\w{26}, where 0 is due/,
      ],
    },
    "a share whose owner moved to a platform account": {
      changes: [
        execute(
          `update ledger_entries set owner_id = case account when 'seller' then null else '${ZERO}'::uuid end
            where ${ofSale} and account in ('seller', 'platform_revenue')`,
        ),
      ],
      expected: [
        /^The sale of order ord_\w{26} books 0 on platform_revenue, where 50 is due/,
        /^The sale of order ord_\w{26} books 50 on platform_revenue of usr_\w{26}, where 0 is due/,
        /^The sale of order ord_\w{26} books 0 on seller of usr_\w{26}, where 449 is due/,
        /^The sale of order ord_\w{26} books 449 on seller, where 0 is due/,
      ],
    },
    "entries of a missing transaction with a payable balance": {
      changes: [
        (tx) =>
          execute(
            `insert into ledger_entries (transaction_id, position, entry_count, account, owner_id, currency, amount_minor, matures_at)
             values ('${ZERO}', 1, 2, 'provider_clearing', null, 'USD', -7, null),
                    ('${ZERO}', 2, 2, 'seller', '${seller.userId}', 'USD', 7, 'epoch')`,
          )(tx),
      ],
      expected: [/^Ledger transaction 0{8}-[0-]{27} does not exist, but has 2 entries\.$/],
    },
    "a second entry of the same account": {
      changes: [
        async (tx) => {
          const { id } = await books.sells(tx);
          await adds(tx, "sale", id, "platform_revenue", -7);
        },
      ],
      expected: [
        OTHER_RECEIPTS,
        /^Ledger transaction \S+ \(sale\) does not sum to zero in USD and names an account twice in USD\.$/,
        /^The sale of order ord_\w{26} books \d+ on platform_revenue, where \d+ is due, in minor units of USD\.$/,
      ],
    },
    "an entry in another currency": {
      changes: [execute(`update ledger_entries set currency = 'EUR' where ${ofSale}`)],
      expected: [
        OTHER_RECEIPTS,
        /books -?\d+ on \w+.* where 0 is due, in minor units of EUR/,
        /books 0 on \w+.* where -?\d+ is due, in minor units of USD/,
      ],
    },
    "an entry that matures before its order": {
      changes: [
        execute(`update ledger_entries set matures_at = '2026-01-01' where ${ofSale} and account = 'seller'`),
      ],
      expected: [
        /^Entry \d of ledger transaction \S+ \(sale\) belongs to ord_\S+ and matures at 2026-01-01T00:00:00\.000Z, where 2026-06-29T12:00:00\.000Z is due\.$/,
      ],
    },
    "an entry without its order": {
      changes: [
        execute(`update ledger_entries set order_id = null where ${ofSale} and account = 'platform_revenue'`),
      ],
      expected: [
        OTHER_RECEIPTS,
        /^Entry \d of ledger transaction \S+ \(sale\) names no order, but belongs to ord_\w{26}\.$/,
      ],
    },
    "a sale without a transaction": {
      changes: [
        execute(`delete from ledger_entries where ${ofSale}`),
        execute(
          "delete from ledger_transactions where id not in (select transaction_id from ledger_entries)",
        ),
      ],
      expected: [
        OTHER_RECEIPTS,
        /^The sale of order ord_\w{26} books 0 on seller .* where 449 is due/,
        /^The sale of order ord_\w{26} books 0 on \w+, where -?\d+ is due/,
      ],
    },
    "a transaction of a missing order": {
      changes: [
        async (tx) => {
          const order = await books.sells(tx);
          await execute(`delete from orders where id = '${order.id}'`)(tx);
        },
      ],
      expected: [
        ...Array.from(
          { length: 6 },
          () => /^The sale of order ord_\w{26} books -?\d+ on \w+.* where 0 is due/,
        ),
        /^Seller usr_\w{26} has \d+ receipts numbered 1 to \d+ in 2026, and \d+ numbers were assigned\.$/,
      ],
    },
    "an order whose parts differ from its transaction": {
      changes: [
        execute(`update orders set seller_minor = seller_minor - 1, fee_minor = fee_minor + 1
               where id = (select source_id from ledger_transactions where id = ${sale})`),
      ],
      expected: [
        /books 50 on platform_revenue, where 51 is due/,
        /books 449 on seller .* where 448 is due/,
        /^Order ord_\w{26} has a fee of 51, where 50 is due by its rates, in minor units of USD\.$/,
      ],
    },
    "a free copy with a transaction": {
      changes: [
        async (tx) => {
          const { id } = await books.sells(tx, { discountMinor: 1_999n });
          const entries: Entry[] = [
            { account: "platform_revenue", amountMinor: 7n, orderId: id },
            { account: "processor_fees", amountMinor: -7n, orderId: id },
          ];
          await execute(`delete from ledger_entries where order_id = '${id}';
                      delete from ledger_transactions where source_id = '${id}';
                      update orders set processor_fee_minor = null where id = '${id}'`)(tx);
          await postTransaction(market.service.ctx, tx, {
            kind: "sale",
            sourceId: id,
            currency: "USD",
            entries,
          });
        },
      ],
      expected: [
        OTHER_RECEIPTS,
        /books 7 on platform_revenue, where 0 is due/,
        /books -7 on processor_fees, where 0 is due/,
      ],
    },
    "a refund without a transaction": {
      changes: [
        async (tx) => {
          const id = await books.refunds(tx, await books.sells(tx), 1_999n);
          await execute(`delete from ledger_entries where transaction_id in (select id from ledger_transactions where source_id = '${id}');
                      delete from ledger_transactions where source_id = '${id}'`)(tx);
        },
      ],
      expected: [
        /^Refund refund_\w{26} books 0 on provider_clearing, where 1999 is due/,
        /^Refund refund_\w{26} books 0 on shares, where -1999 is due/,
        ...FOUR_SHARES,
      ],
    },
    "a refund without the platform's share": {
      changes: [
        async (tx) => {
          const parts = { feeMinor: 0n, commissionMinor: 0n, taxMinor: 0n, sellerMinor: 100n };
          await books.refunds(tx, await books.sells(tx), 100n, parts);
        },
      ],
      expected: [
        /^The refunds and disputes of order ord_\w{26} book 0 on platform_revenue, where -8 is due/,
        /book -100 on seller .* where -59 is due/,
        /book 0 on referrer .* where -17 is due/,
        /book 0 on tax_payable, where -16 is due/,
        /^Refund refund_\w{26} books 0 on platform_revenue, where -8 is due/,
        /^Refund \S+ books -100 on seller .* where -59 is due/,
        /^Refund \S+ books 0 on referrer .* where -17 is due/,
        /^Refund \S+ books 0 on tax_payable, where -16 is due/,
      ],
    },
    "an order without the amount of its refund": {
      changes: [
        async (tx) => {
          const order = await books.sells(tx);
          await books.refunds(tx, order, 100n);
          await execute(
            `update orders set refunded_minor = 99, status = 'completed' where id = '${order.id}'`,
          )(tx);
        },
      ],
      expected: [
        /^The refunds and disputes of order \S+ book -\d+ on \w+/,
        /^Order ord_\w{26} has 99 minor units refunded, where its refunds and disputes sum to 100, and is completed and should be partially_refunded\.$/,
      ],
    },
    "a returned refund without credit for the buyer": {
      changes: [
        async (tx) => {
          const id = await books.refunds(tx, await books.sells(tx), 700n);
          await execute(`update refunds set returned_at = completed_at where id = '${id}'`)(tx);
        },
      ],
      expected: [
        /^The return of refund refund_\w{26} books 0 on buyer_credit of usr_\w{26}, where 700 is due/,
        /^The return of refund refund_\w{26} books 0 on provider_clearing, where -700 is due/,
      ],
    },
    "a dispute without a transaction": {
      changes: [
        async (tx) => {
          const id = await books.disputes(tx, await books.sells(tx));
          await execute(`delete from ledger_entries where transaction_id in (select id from ledger_transactions where source_id = '${id}');
                      delete from ledger_transactions where source_id = '${id}'`)(tx);
        },
      ],
      expected: [
        /^The disputes of order ord_\w{26} book 0 on dispute_hold, where 1999 is due/,
        ...FOUR_SHARES,
      ],
    },
    "a won dispute that released nothing": {
      changes: [async (tx) => closed(tx, await books.disputes(tx, await books.sells(tx)), "won")],
      expected: [
        /^The disputes of order ord_\w{26} book 1999 on dispute_hold, where 0 is due/,
        ...FOUR_SHARES,
      ],
    },
    "a lost dispute that is still held": {
      changes: [async (tx) => closed(tx, await books.disputes(tx, await books.sells(tx)), "lost")],
      expected: [
        /^The disputes of order ord_\w{26} book 1999 on dispute_hold, where 0 is due/,
        /^Dispute [\w-]{36}, when lost, books 0 on dispute_hold, where -1999 is due/,
        /^Dispute [\w-]{36}, when lost, books 0 on provider_clearing, where 3499 is due/,
        /^Dispute [\w-]{36}, when lost, books 0 on seller of usr_\w{26}, where -1500 is due/,
        ...FOUR_SHARES,
        /^Order ord_\w{26} is refunded and should be completed\.$/,
      ],
    },
    "a loss of the marketplace that its dispute lacks": {
      changes: [
        async (tx) => {
          const order = await books.sells(tx);
          await books.refunds(tx, order, 700n);
          const id = await books.disputes(tx, order, 1_999n);
          await books.loses(tx, order);
          await execute(`update disputes set excess_minor = 0 where id = '${id}'`)(tx);
        },
      ],
      expected: [
        /^Dispute \S+, when lost, books -700 on dispute_losses, where 0 is due/,
        /^Dispute \S+, when lost, books -1299 on dispute_hold, where -1999 is due/,
      ],
    },
    "an open dispute posted as won": {
      changes: [
        async (tx) => {
          const order = await books.sells(tx);
          const id = await books.disputes(tx, order);
          await books.wins(tx, order);
          await execute(`update disputes set status = 'open' where id = '${id}';
                      update orders set status = 'disputed' where id = '${order.id}'`)(tx);
        },
      ],
      expected: [
        /^Ledger transaction [\w-]{36} \(dispute_won\) belongs to dispute [\w-]{36}, which is open\.$/,
      ],
    },
    "a transaction of a missing dispute": {
      changes: [
        async (tx) => {
          const order = await books.sells(tx);
          await books.disputes(tx, order);
          await books.wins(tx, order);
          await execute("delete from disputes")(tx);
        },
      ],
      expected: [
        /^Ledger transaction \S+ \(dispute_opened\) belongs to dispute \S+, which does not exist\.$/,
        /^Ledger transaction \S+ \(dispute_won\) belongs to dispute \S+, which does not exist\.$/,
        ...Array.from({ length: 10 }, () => /names ord_\w{26}, but belongs to no order/),
      ],
    },
    "a refund in progress that its order lacks": {
      changes: [
        async (tx) => {
          const order = await books.sells(tx);
          await execute(`insert into refunds (id, order_id, origin, status, amount_minor, currency, reason, created_at)
                      values (gen_random_uuid(), '${order.id}', 'service', 'processing', 5, 'USD', '', '2026-06-01')`)(
            tx,
          );
        },
      ],
      expected: [
        /^Order ord_\w{26} has 0 minor units reserved for refunds, where its refunds in progress sum to 5\.$/,
      ],
    },
    "a completed payout that is still in transit": {
      changes: [(tx) => books.paysOut(tx, "completed", [])],
      expected: [
        /^The completion of payout payout_\w{26} books 0 on in_transit of usr_\w{26}, where -400 is due/,
        /books 0 on provider_clearing, where 400 is due/,
      ],
    },
    "a failed payout that credited nothing": {
      changes: [(tx) => books.paysOut(tx, "failed", [])],
      expected: [
        /^The failure of payout payout_\w{26} books 0 on in_transit of usr_\w{26}, where -400 is due/,
        /books 0 on referrer of usr_\w{26}, where 100 is due/,
        /books 0 on seller of usr_\w{26}, where 300 is due/,
      ],
    },
    "a returned payout without a return posted": {
      changes: [(tx) => books.paysOut(tx, "returned", ["payout_completed"])],
      expected: [
        /^The return of payout payout_\w{26} books 0 on provider_clearing, where -400 is due/,
        /books 0 on referrer/,
        /books 0 on seller/,
      ],
    },
    ...Object.fromEntries(
      accounts.map((account) => [
        `two entries on ${account} that undo each other`,
        {
          changes: [
            async (tx: Tx) => {
              const order = await books.sells(tx);
              for (const amount of [5, -5]) await adds(tx, "sale", order.id, account, amount);
            },
          ],
          expected: [/^Ledger transaction [\w-]{36} \(sale\) names an account twice in USD\.$/],
        },
      ]),
    ),
    "entries of a dispute on unrelated accounts, reversed by its win": {
      changes: [
        async (tx) => {
          const order = await books.sells(tx);
          const id = await books.disputes(tx, order);
          await books.wins(tx, order);
          await adds(tx, "dispute_opened", id, "processor_fees", 5);
          await adds(tx, "dispute_opened", id, "provider_clearing", -5);
          await adds(tx, "dispute_won", id, "processor_fees", -5);
          await adds(tx, "dispute_won", id, "provider_clearing", 5);
        },
      ],
      expected: [
        /^Dispute [\w-]{36}, when opened, books 5 on processor_fees, where 0 is due, in minor units of USD\.$/,
        /^Dispute [\w-]{36}, when opened, books -5 on provider_clearing, where 0 is due/,
        /^Dispute [\w-]{36}, when won, books -5 on processor_fees, where 0 is due/,
        /^Dispute [\w-]{36}, when won, books 5 on provider_clearing, where 0 is due/,
      ],
    },
    "a dispute that held another party's share, reversed by its win": {
      changes: [
        async (tx) => {
          const order = await books.sells(tx);
          const id = await books.disputes(tx, order);
          await books.wins(tx, order);
          await shifts("dispute_opened", id, 1, "seller", "platform_revenue")(tx);
          await shifts("dispute_won", id, 1, "platform_revenue", "seller")(tx);
        },
      ],
      expected: [
        /^Dispute [\w-]{36}, when opened, books -167 on platform_revenue, where -168 is due/,
        /^Dispute [\w-]{36}, when opened, books -1177 on seller of usr_\w{26}, where -1176 is due/,
        /^Dispute [\w-]{36}, when won, books 167 on platform_revenue, where 168 is due/,
        /^Dispute [\w-]{36}, when won, books 1177 on seller of usr_\w{26}, where 1176 is due/,
      ],
    },
    "a dispute that held too little, reversed by its win": {
      changes: [
        async (tx) => {
          const order = await books.sells(tx);
          const id = await books.disputes(tx, order, 1_000n);
          await books.wins(tx, order);
          await execute(`update disputes set amount_minor = 1999 where id = '${id}'`)(tx);
        },
      ],
      expected: [
        /^Dispute [\w-]{36}, when opened, books 1000 on dispute_hold, where 1999 is due/,
        /^Dispute [\w-]{36}, when opened, books -\d+ on (seller|referrer|platform_revenue|tax_payable)/,
      ],
    },
    "two refunds of which one took the other's amount": {
      changes: [
        async (tx) => {
          const order = await books.sells(tx);
          const first = await books.refunds(tx, order, 1_000n);
          const second = await books.refunds(tx, order, 999n);
          await shifts("refund", first, 1, "tax_payable", "referrer")(tx);
          await shifts("refund", second, 1, "referrer", "tax_payable")(tx);
        },
      ],
      expected: [
        /^Refund refund_\w{26} books -161 on tax_payable, where -160 is due/,
        /^Refund refund_\w{26} books -167 on referrer of usr_\w{26}, where -168 is due/,
        /^Refund refund_\w{26} books -158 on tax_payable, where -159 is due/,
        /^Refund refund_\w{26} books -169 on referrer of usr_\w{26}, where -168 is due/,
      ],
    },
    "entries of a payout on unrelated accounts": {
      changes: [
        async (tx) => {
          const id = await books.paysOut(tx, "completed", ["payout_completed"]);
          await adds(tx, "payout", id, "platform_revenue", 5);
          await adds(tx, "payout", id, "tax_payable", -5);
        },
      ],
      expected: [
        /^Payout payout_\w{26} books 5 on platform_revenue, where 0 is due/,
        /^Payout payout_\w{26} books -5 on tax_payable, where 0 is due/,
      ],
    },
    "a payout that debits the pending balance": {
      changes: [
        async (tx) => {
          const id = await books.paysOut(tx, "completed", ["payout_completed"]);
          await execute(`update ledger_entries set matures_at = '2027-01-01' where account = 'seller'
                         and transaction_id = (select id from ledger_transactions where kind = 'payout' and source_id = '${id}')`)(
            tx,
          );
        },
      ],
      expected: [
        /^Entry \d of ledger transaction \S+ \(payout\) belongs to no order and matures at 2027-01-01T00:00:00\.000Z, where 1970-01-01T00:00:00\.000Z is due\.$/,
      ],
    },
    "a refund of an unpaid order": {
      changes: [
        async (tx) => {
          await execute(`insert into refunds (id, order_id, origin, status, amount_minor, currency, reason, created_at)
                      select gen_random_uuid(), id, 'service', 'processing', 5, 'USD', '', '2026-06-01'
                        from orders where status = 'failed' limit 1;
                      update orders set refunding_minor = 5 where status = 'failed'`)(tx);
        },
      ],
      expected: [/^Order ord_\w{26} is failed and should be completed\.$/],
    },
    "tax, fee and commission with other rates than the order's": {
      changes: [
        async (tx) => {
          const { id } = await books.sells(tx);
          await execute(`update orders set tax_basis_points = 2000, fee_basis_points = 1100, commission_basis_points = 2100
                       where id = '${id}'`)(tx);
        },
      ],
      expected: [
        /^Order ord_\w{26} has a tax of 319, where 333 is due by its rates, in minor units of USD\.$/,
        /^Order ord_\w{26} has a fee of 168, where 185 is due/,
        /^Order ord_\w{26} has a commission of 336, where 353 is due/,
      ],
    },
    "a half that was rounded down": {
      changes: [
        async (tx) => {
          const { id } = await books.sells(tx, {
            ...{ priceMinor: 105n, tax: { basisPoints: 0, inclusive: true } },
            ...{ commissionBasisPoints: 0 },
          });
          await execute(`update orders set fee_minor = 10, seller_minor = 95 where id = '${id}';
                      update ledger_entries set amount_minor = case account when 'seller' then 95 else 10 end
                       where order_id = '${id}' and account in ('seller', 'platform_revenue')`)(tx);
        },
      ],
      expected: [/^Order ord_\w{26} has a fee of 10, where 11 is due by its rates, in minor units of USD\.$/],
    },
    "a sale without an entitlement": {
      changes: [
        async (tx) => {
          const { id } = await books.sells(tx);
          await execute(`delete from entitlements where order_id = '${id}'`)(tx);
        },
      ],
      expected: [
        /^Order ord_\w{26} has no entitlement, where the entitlement active is due\.$/,
        /^Product prod_\w{26} counts \d purchases, and \d buyers have it\.$/,
      ],
    },
    "an active entitlement of a refunded order": {
      changes: [
        async (tx) => {
          const order = await books.sells(tx);
          await books.refunds(tx, order, 1_999n);
          await execute(`update entitlements set status = 'active' where order_id = '${order.id}'`)(tx);
        },
      ],
      expected: [
        /^Order ord_\w{26} has the entitlement active, where the entitlement revoked is due\.$/,
        /^Product prod_\w{26} counts \d purchases, and \d buyers have it\.$/,
      ],
    },
    "a revoked entitlement of a half refunded order": {
      changes: [
        async (tx) => {
          const order = await books.sells(tx);
          await books.refunds(tx, order, 1_000n);
          await execute(`update entitlements set status = 'held' where order_id = '${order.id}'`)(tx);
        },
      ],
      expected: [/^Order ord_\w{26} has the entitlement held, where the entitlement active is due\.$/],
    },
    "an entitlement of an unpaid order": {
      changes: [
        execute(`insert into entitlements (buyer_id, product_id, order_id, major, status, created_at)
              select buyer_id, product_id, id, 1, 'revoked', created_at from orders where status = 'failed'`),
      ],
      expected: [/^Order ord_\w{26} has the entitlement revoked, where no entitlement is due\.$/],
    },
    "an entitlement of another user": {
      changes: [
        async (tx) => {
          const { id } = await books.sells(tx);
          await execute(`update entitlements set buyer_id = '${seller.userId}' where order_id = '${id}'`)(tx);
        },
      ],
      expected: [/^Order ord_\w{26} has an entitlement for another buyer, product or major version\.$/],
    },
    "a discount code with too many redemptions": {
      changes: [
        execute(`insert into discount_codes (id, seller_id, code, percent_basis_points, redemptions, created_at, updated_at)
              values (gen_random_uuid(), '${ZERO}', 'HALF', 5000, 2, '2026-01-01', '2026-01-01')`),
      ],
      expected: [/^Discount code disc_\w{26} counts 2 redemptions, and 0 orders have it\.$/],
    },
    "a discount code released too early": {
      changes: [
        async (tx) => {
          const { id } = await books.sells(tx);
          await execute(`insert into discount_codes (id, seller_id, code, percent_basis_points, redemptions, created_at, updated_at)
                      values ('${ZERO}', '${seller.userId}', 'HALF', 5000, 0, '2026-01-01', '2026-01-01');
                      update orders set discount_code_id = '${ZERO}' where id = '${id}'`)(tx);
        },
      ],
      expected: [/^Discount code disc_\w{26} counts 0 redemptions, and 1 orders have it\.$/],
    },
    "a product with too many purchases": {
      changes: [execute("update product_stats set purchases = purchases + 1 where purchases = 1")],
      expected: [/^Product prod_\w{26} counts 2 purchases, and 1 buyers have it\.$/],
    },
    "a plan payment without a transaction": {
      changes: [insertPlanPayment(1, "2026-01-01")],
      expected: [
        /^The payment pay_\w{26} of a plan books 0 on platform_revenue, where 2437 is due/,
        /books 0 on provider_clearing, where -2786 is due/,
        /books 0 on processor_fees, where -114 is due/,
        /books 0 on tax_payable, where 463 is due/,
      ],
    },
    "a gap in the receipt numbers of plans": {
      changes: [insertPlanPayment(2, "2026-01-01")],
      expected: [
        /of a plan books 0 on/,
        /^Plans have 1 receipts numbered 2 to 2 in 2026, and 1 numbers were assigned\.$/,
      ],
    },
    "a plan receipt of another year": {
      changes: [insertPlanPayment(1, "2025-12-31T23:59:59Z")],
      expected: [
        /of a plan books 0 on/,
        /^The payment pay_\w{26} of a plan has a receipt of 2026, and was completed at 2025-12-31T23:59:59\.000Z\.$/,
      ],
    },
    "a gap in the receipt numbers of a seller": {
      changes: [
        async (tx) => {
          const { id } = await books.sells(tx);
          await execute(`update orders set receipt_number = receipt_number + 1 where id = '${id}';
                      update receipt_counters set last = last + 1`)(tx);
        },
      ],
      expected: [
        /^Seller usr_\w{26} has (\d+) receipts numbered 1 to \d+ in 2026, and \d+ numbers were assigned\.$/,
      ],
    },
    "a receipt counter ahead of the receipts": {
      changes: [execute("update receipt_counters set last = last + 1")],
      expected: [
        /^Seller usr_\w{26} has (\d+) receipts numbered 1 to \1 in 2026, and \d+ numbers were assigned\.$/,
      ],
    },
    "a receipt of another year": {
      changes: [
        async (tx) => {
          const { id } = await books.sells(tx);
          await execute(`update orders set completed_at = '2025-12-31T23:59:59Z' where id = '${id}'`)(tx);
        },
      ],
      expected: [
        OTHER_RECEIPTS,
        /^Ledger transaction [\w-]{36} \(sale\) is dated 2026-06-15T12:00:00\.000Z, where its source is dated 2025-12-31T23:59:59\.000Z\.$/,
        /^Order ord_\w{26} has a receipt of 2026, and was completed at 2025-12-31T23:59:59\.000Z\.$/,
      ],
    },
  };
  for (const [name, { changes, expected }] of Object.entries(wrongs)) {
    test(name, async () => {
      // Rebuilds the sums of analytics, so that only ledger problems remain.
      const problems = await problemsAfter(unchecked, ...changes, rebuildSumsIn);
      const missing = expected.filter((pattern) => !problems.some((problem) => pattern.test(problem)));
      const unexpected = problems.filter((problem) => !expected.some((pattern) => pattern.test(problem)));
      assert.deepEqual({ missing, unexpected }, { missing: [], unexpected: [] });
    });
  }

  test("amounts too large to be added up, together with other problems", async () => {
    const problems = await problemsAfter(
      execute(
        `update ledger_entries set amount_minor = 9223372036854775807 where ${ofSale} and account = 'seller'`,
      ),
      execute("update product_stats set purchases = purchases + 1 where purchases = 1"),
    );
    for (const expected of [
      /^Ledger transaction [\w-]{36} \(sale\) does not sum to zero in USD\.$/,
      /^The sale of order ord_\w{26} books 9223372036854775807 on seller of usr_\w{26}, where 449 is due/,
      /^Product prod_\w{26} counts 2 purchases, and 1 buyers have it\.$/,
      /^A check failed because a sum of amounts is out of range\.$/,
    ])
      assert.ok(
        problems.some((problem) => expected.test(problem)),
        `${expected}: ${problems.join("\n")}`,
      );
  });

  test("at most a hundred problems of a kind, and the number of others", async () => {
    const problems = await problemsAfter(async (tx) => {
      for (let times = 0; times < 120; times++)
        await execute(`insert into ledger_transactions (id, kind, source_id, entry_count, occurred_at)
                    values (gen_random_uuid(), 'sale', gen_random_uuid(), 2, '2026-01-01')`)(tx);
    });
    assert.equal(problems.length, 101);
    assert.equal(problems.at(-1), "There are 20 more like the last one.");
  });
});

suite("the database refuses", () => {
  const wrongs: Record<string, string> = {
    "a completed order without completed_at":
      "update orders set completed_at = null, matures_at = null, receipt_year = null, receipt_number = null",
    "a paid order with status pending": "update orders set status = 'pending'",
    "a refunded order without a refunded amount": "update orders set status = 'refunded'",
    "a partially refunded order with the full amount":
      "update orders set status = 'partially_refunded', refunded_minor = total_minor",
    "a completed order with a refunded amount": "update orders set refunded_minor = 1",
    "an order without matures_at": "update orders set matures_at = null",
    "an order that matures one millisecond too early":
      "update orders set matures_at = matures_at - interval '1 millisecond'",
    "an order that matures before its refund window ends": "update orders set refund_days = 15",
    "a receipt without a year": "update orders set receipt_year = null",
  };
  for (const [name, statement] of Object.entries(wrongs))
    test(name, () =>
      assert.rejects(market.query(`${statement} where status = 'completed'`), { code: "23514" }),
    );
});

suite("stoa-server ledger verify", () => {
  const command = fileURLToPath(new URL("../../../bin/stoa-server.mjs", import.meta.url));

  /** Runs on the market's database, beside its service. */
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

  test("correct books: prints ok and the counts, exit code 0", inFullRun, async () => {
    const { code, stdout, stderr } = await verify("--json");
    const result = JSON.parse(stdout);
    assert.deepEqual([code, result.ok, result.problems], [0, true, []], stderr);
    assert.ok(result.transactions > 50 && result.entries > 150);
    assert.match((await verify()).stdout, /^ok: true\ntransactions: \d+\nentries: \d+\n$/);
  });

  test("a problem: prints it to stderr, exit code 1", async () => {
    const { rows } = await market.query("select id from orders where completed_at is not null limit 1");
    const orderId = toId("ord", rows[0].id);
    await market.query("update orders set refunding_minor = 1 where id = $1", [rows[0].id]);
    const failed = await verify("--json");
    assert.equal(failed.code, 1);
    const { ok, problems } = JSON.parse(failed.stdout);
    assert.equal(ok, false);
    assert.ok(
      problems.some((problem: string) => problem.startsWith(`Order ${orderId} has 1 minor units reserved`)),
    );
    const plain = await verify();
    assert.deepEqual([plain.code, plain.stdout.split("\n")[0]], [1, "ok: false"]);
    assert.ok(plain.stderr.includes(`Order ${orderId} has`));
    await market.query("update orders set refunding_minor = 0 where id = $1", [rows[0].id]);
    assert.equal((await verify()).code, 0);
  });
});
