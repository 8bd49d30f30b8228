import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, suite, test } from "node:test";
import { fileURLToPath } from "node:url";
import { sql } from "kysely";
import { buyProduct, createProduct } from "../../../test/factories.ts";
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

/** 29.00, of which 4.63 are tax and the provider kept 1.14: not booked, and with a receipt of 2026. */
const paysPlan = (receipt: number, at: string) => (tx: Tx) =>
  does(`delete from subscription_receipt_counters;
        delete from ledger_entries where transaction_id in (select id from ledger_transactions where kind = 'subscription');
        delete from ledger_transactions where kind = 'subscription';
        delete from subscription_payments;
        insert into subscription_receipt_counters (year, last) values (2026, 1);
        insert into subscription_payments (id, user_id, buyer_name, buyer_email, plan, price_minor, tax_minor, tax_basis_points,
            tax_inclusive, amount_minor, processor_fee_minor, currency, payment_method_id, owner_present, status, created_at, settled_at,
            period_start, period_end, receipt_year, receipt_number)
          values (gen_random_uuid(), '${buyer.userId}', 'B', 'b@example.com', 'pro', 2900, 463, 1900, true, 2900, 114, 'USD',
            'pm', true, 'completed', '${at}', '${at}', '${at}', '2026-02-01', 2026, ${receipt})`)(tx);

/** What a row alone tells, its table refuses: for rows that came by another way. */
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

const does = (statement: string) => (tx: Tx) => sql.raw(statement).execute(tx);

suite("a ledger is proved", () => {
  test("after purchases in currencies of every exponent, and of a plan", async () => {
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
    const products = await Promise.all(Array.from({ length: 50 }, () => createProduct(seller)));
    const sold = Promise.all(products.map((product) => buyProduct(buyer, product)));
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

/** The dispute is over, and nobody told the ledger. */
const closed = (tx: Tx, id: string, status: "won" | "lost") =>
  does(
    `update disputes set status = '${status}', held_minor = 0${status === "lost" ? ", lost_minor = 1999" : ""} where id = '${id}';
     update orders set status = '${status === "won" ? "completed" : "refunded"}'
      where id = (select order_id from disputes where id = '${id}')`,
  )(tx);

const isEarned = (account: Account) => account === "seller" || account === "referrer";
const isOwned = (account: Account) =>
  isEarned(account) || account === "in_transit" || account === "buyer_credit";

/** One more entry of a booking, as if it had always had it. */
async function adds(tx: Tx, kind: PostingKind, sourceId: string, account: Account, amount: number) {
  const ofBooking = `(select id from ledger_transactions where kind = '${kind}' and source_id = '${sourceId}')`;
  const owner = isOwned(account) ? `'${seller.userId}'` : "null";
  const maturesAt = isEarned(account) ? "(select matures_at from orders where id = order_id)" : "null";
  await does(
    `update ledger_transactions set entry_count = entry_count + 1 where id = ${ofBooking};
     update ledger_entries set entry_count = entry_count + 1 where transaction_id = ${ofBooking};
     insert into ledger_entries (transaction_id, position, entry_count, account, owner_id, currency, amount_minor, order_id, matures_at)
     select transaction_id, entry_count, entry_count, '${account}', ${owner}, currency, ${amount}, order_id, ${maturesAt}
       from ledger_entries where transaction_id = ${ofBooking} and position = 1`,
  )(tx);
}

/** Moves something of a booking from one account to another. */
const shifts = (kind: PostingKind, sourceId: string, amount: number, from: Account, to: Account) =>
  does(
    `update ledger_entries set amount_minor = amount_minor + case account when '${to}' then ${amount} else ${-amount} end
      where account in ('${from}', '${to}')
        and transaction_id = (select id from ledger_transactions where kind = '${kind}' and source_id = '${sourceId}')`,
  );

const ZERO = "00000000-0000-0000-0000-000000000000";

/** Of each who shares in an order, something is wrong. */
const FOUR_SHARES = ["seller", "referrer", "platform_revenue", "tax_payable"].map(
  (account) => new RegExp(`^The refunds and disputes of order ord_\\w{26} book -?\\d+ on ${account}`),
);

/** Whatever follows the ledger does not fit the receipts. */
const OTHER_RECEIPTS =
  /^Analytics of usr_\w{26}(, (of prod|by usr)_\w{26})? have in the quarter of an hour from 20\S+ gross of \d+ and not the \d+ of receipts, in minor units of (USD|EUR)\.$/;

suite("a problem is told", () => {
  const sale = "(select id from ledger_transactions where kind = 'sale' order by id limit 1)";
  const ofSale = `transaction_id = ${sale}`;
  /** What was done past the guards, and what is said of it: all of it, sentence by sentence. */
  const wrongs: Record<string, { deeds: ((tx: Tx) => Promise<unknown>)[]; said: RegExp[] }> = {
    "a tax of a plan that its copied rate does not say": {
      deeds: [paysPlan(1, "2026-01-01"), does("update subscription_payments set tax_basis_points = 2000")],
      said: [
        /of a plan books 0 on/,
        /^The payment pay_\w{26} of a plan has a tax of 463, where 483 is due by its rate, in minor units of USD\.$/,
      ],
    },
    "an entry that is gone": {
      deeds: [does(`delete from ledger_entries where ${ofSale} and account = 'seller'`)],
      said: [
        OTHER_RECEIPTS,
        /^Ledger transaction [\w-]{36} \(sale\) has \d of its \d entries and does not sum to zero in USD\.$/,
        /^The sale of order ord_\w{26} books 0 on seller of usr_\w{26}, where 449 is due, in minor units of USD\.$/,
      ],
    },
    "an entry of another amount": {
      deeds: [does(`update ledger_entries set amount_minor = 448 where ${ofSale} and account = 'seller'`)],
      said: [
        OTHER_RECEIPTS,
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
      said: [
        OTHER_RECEIPTS,
        /books 0 on platform_revenue, where 50 is due/,
        /books 50 on tax_payable, where 0 is due/,
      ],
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
    "an entry of another referrer": {
      deeds: [
        async (tx) => {
          const { id } = await books.sells(tx);
          await does(
            `update ledger_entries set owner_id = '${buyer.userId}' where order_id = '${id}' and account = 'referrer'`,
          )(tx);
        },
      ],
      said: [
        /^The sale of order ord_\w{26} books 0 on referrer of usr_/,
        /^The sale of order ord_\w{26} books \d+ on referrer of usr_\w{26}, where 0 is due/,
      ],
    },
    "an entry that somebody has on an account that nobody has": {
      deeds: [
        does(
          `update ledger_entries set owner_id = '${ZERO}' where ${ofSale} and account = 'platform_revenue'`,
        ),
      ],
      said: [
        /^The sale of order ord_\w{26} books 0 on platform_revenue, where 50 is due/,
        /^The sale of order ord_\w{26} books 50 on platform_revenue of usr_\w{26}, where 0 is due/,
      ],
    },
    "a share that changed its owner with an account that nobody has": {
      deeds: [
        does(
          `update ledger_entries set owner_id = case account when 'seller' then null else '${ZERO}'::uuid end
            where ${ofSale} and account in ('seller', 'platform_revenue')`,
        ),
      ],
      said: [
        /^The sale of order ord_\w{26} books 0 on platform_revenue, where 50 is due/,
        /^The sale of order ord_\w{26} books 50 on platform_revenue of usr_\w{26}, where 0 is due/,
        /^The sale of order ord_\w{26} books 0 on seller of usr_\w{26}, where 449 is due/,
        /^The sale of order ord_\w{26} books 449 on seller, where 0 is due/,
      ],
    },
    "entries of no transaction, which somebody could be paid out": {
      deeds: [
        (tx) =>
          does(
            `insert into ledger_entries (transaction_id, position, entry_count, account, owner_id, currency, amount_minor, matures_at)
             values ('${ZERO}', 1, 2, 'provider_clearing', null, 'USD', -7, null),
                    ('${ZERO}', 2, 2, 'seller', '${seller.userId}', 'USD', 7, 'epoch')`,
          )(tx),
      ],
      said: [/^Ledger transaction 0{8}-[0-]{27} is not there, and has 2 entries\.$/],
    },
    "an entry too many beside the one that is due": {
      deeds: [
        async (tx) => {
          const { id } = await books.sells(tx);
          await adds(tx, "sale", id, "platform_revenue", -7);
        },
      ],
      said: [
        OTHER_RECEIPTS,
        /^Ledger transaction \S+ \(sale\) does not sum to zero in USD and names an account twice in USD\.$/,
        /^The sale of order ord_\w{26} books \d+ on platform_revenue, where \d+ is due, in minor units of USD\.$/,
      ],
    },
    "an entry in another currency": {
      deeds: [does(`update ledger_entries set currency = 'EUR' where ${ofSale}`)],
      said: [
        OTHER_RECEIPTS,
        /books -?\d+ on \w+.* where 0 is due, in minor units of EUR/,
        /books 0 on \w+.* where -?\d+ is due, in minor units of USD/,
      ],
    },
    "an entry that matures earlier than its order": {
      deeds: [
        does(`update ledger_entries set matures_at = '2026-01-01' where ${ofSale} and account = 'seller'`),
      ],
      said: [
        /^Entry \d of ledger transaction \S+ \(sale\) is about ord_\S+ and matures at 2026-01-01T00:00:00\.000Z, where 2026-06-29T12:00:00\.000Z is due\.$/,
      ],
    },
    "an entry that names no order": {
      deeds: [
        does(`update ledger_entries set order_id = null where ${ofSale} and account = 'platform_revenue'`),
      ],
      said: [
        OTHER_RECEIPTS,
        /^Entry \d of ledger transaction \S+ \(sale\) names no order, and is about ord_\w{26}\.$/,
      ],
    },
    "a sale that is not booked": {
      deeds: [
        does(`delete from ledger_entries where ${ofSale}`),
        does("delete from ledger_transactions where id not in (select transaction_id from ledger_entries)"),
      ],
      said: [
        OTHER_RECEIPTS,
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
      said: [
        /books 50 on platform_revenue, where 51 is due/,
        /books 449 on seller .* where 448 is due/,
        /^Order ord_\w{26} has a fee of 51, where 50 is due by its rates, in minor units of USD\.$/,
      ],
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
          await postTransaction(market.service.ctx, tx, {
            kind: "sale",
            sourceId: id,
            currency: "USD",
            entries,
          });
        },
      ],
      said: [
        OTHER_RECEIPTS,
        /books 7 on platform_revenue, where 0 is due/,
        /books -7 on processor_fees, where 0 is due/,
      ],
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
        /^Refund refund_\w{26} books 0 on platform_revenue, where -8 is due/,
        /^Refund \S+ books -100 on seller .* where -59 is due/,
        /^Refund \S+ books 0 on referrer .* where -17 is due/,
        /^Refund \S+ books 0 on tax_payable, where -16 is due/,
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
        /^Dispute [\w-]{36}, when lost, books 0 on dispute_hold, where -1999 is due/,
        /^Dispute [\w-]{36}, when lost, books 0 on provider_clearing, where 3499 is due/,
        /^Dispute [\w-]{36}, when lost, books 0 on seller of usr_\w{26}, where -1500 is due/,
        ...FOUR_SHARES,
        /^Order ord_\w{26} is refunded and should be completed\.$/,
      ],
    },
    "a loss of the marketplace that its dispute does not have": {
      deeds: [
        async (tx) => {
          const order = await books.sells(tx);
          await books.refunds(tx, order, 700n);
          const id = await books.disputes(tx, order, 1_999n);
          await books.loses(tx, order);
          await does(`update disputes set excess_minor = 0 where id = '${id}'`)(tx);
        },
      ],
      said: [
        /^Dispute \S+, when lost, books -700 on dispute_losses, where 0 is due/,
        /^Dispute \S+, when lost, books -1299 on dispute_hold, where -1999 is due/,
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
    ...Object.fromEntries(
      accounts.map((account) => [
        `two entries on ${account} that undo each other`,
        {
          deeds: [
            async (tx: Tx) => {
              const order = await books.sells(tx);
              for (const amount of [5, -5]) await adds(tx, "sale", order.id, account, amount);
            },
          ],
          said: [/^Ledger transaction [\w-]{36} \(sale\) names an account twice in USD\.$/],
        },
      ]),
    ),
    "entries on accounts that a dispute has nothing to do with, and their opposites when it was won": {
      deeds: [
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
      said: [
        /^Dispute [\w-]{36}, when opened, books 5 on processor_fees, where 0 is due, in minor units of USD\.$/,
        /^Dispute [\w-]{36}, when opened, books -5 on provider_clearing, where 0 is due/,
        /^Dispute [\w-]{36}, when won, books -5 on processor_fees, where 0 is due/,
        /^Dispute [\w-]{36}, when won, books 5 on provider_clearing, where 0 is due/,
      ],
    },
    "a dispute that took another's share, and gave it back when it was won": {
      deeds: [
        async (tx) => {
          const order = await books.sells(tx);
          const id = await books.disputes(tx, order);
          await books.wins(tx, order);
          await shifts("dispute_opened", id, 1, "seller", "platform_revenue")(tx);
          await shifts("dispute_won", id, 1, "platform_revenue", "seller")(tx);
        },
      ],
      said: [
        /^Dispute [\w-]{36}, when opened, books -167 on platform_revenue, where -168 is due/,
        /^Dispute [\w-]{36}, when opened, books -1177 on seller of usr_\w{26}, where -1176 is due/,
        /^Dispute [\w-]{36}, when won, books 167 on platform_revenue, where 168 is due/,
        /^Dispute [\w-]{36}, when won, books 1177 on seller of usr_\w{26}, where 1176 is due/,
      ],
    },
    "a dispute that holds less than it might, and gave that back": {
      deeds: [
        async (tx) => {
          const order = await books.sells(tx);
          const id = await books.disputes(tx, order, 1_000n);
          await books.wins(tx, order);
          await does(`update disputes set amount_minor = 1999 where id = '${id}'`)(tx);
        },
      ],
      said: [
        /^Dispute [\w-]{36}, when opened, books 1000 on dispute_hold, where 1999 is due/,
        /^Dispute [\w-]{36}, when opened, books -\d+ on (seller|referrer|platform_revenue|tax_payable)/,
      ],
    },
    "two refunds of which one took what the other should have": {
      deeds: [
        async (tx) => {
          const order = await books.sells(tx);
          const first = await books.refunds(tx, order, 1_000n);
          const second = await books.refunds(tx, order, 999n);
          await shifts("refund", first, 1, "tax_payable", "referrer")(tx);
          await shifts("refund", second, 1, "referrer", "tax_payable")(tx);
        },
      ],
      said: [
        /^Refund refund_\w{26} books -161 on tax_payable, where -160 is due/,
        /^Refund refund_\w{26} books -167 on referrer of usr_\w{26}, where -168 is due/,
        /^Refund refund_\w{26} books -158 on tax_payable, where -159 is due/,
        /^Refund refund_\w{26} books -169 on referrer of usr_\w{26}, where -168 is due/,
      ],
    },
    "entries on accounts that a payout has nothing to do with": {
      deeds: [
        async (tx) => {
          const id = await books.paysOut(tx, "completed", ["payout_completed"]);
          await adds(tx, "payout", id, "platform_revenue", 5);
          await adds(tx, "payout", id, "tax_payable", -5);
        },
      ],
      said: [
        /^Payout payout_\w{26} books 5 on platform_revenue, where 0 is due/,
        /^Payout payout_\w{26} books -5 on tax_payable, where 0 is due/,
      ],
    },
    "a payout that lowers what its seller will have, and not what they have": {
      deeds: [
        async (tx) => {
          const id = await books.paysOut(tx, "completed", ["payout_completed"]);
          await does(`update ledger_entries set matures_at = '2027-01-01' where account = 'seller'
                         and transaction_id = (select id from ledger_transactions where kind = 'payout' and source_id = '${id}')`)(
            tx,
          );
        },
      ],
      said: [
        /^Entry \d of ledger transaction \S+ \(payout\) is about no order and matures at 2027-01-01T00:00:00\.000Z, where 1970-01-01T00:00:00\.000Z is due\.$/,
      ],
    },
    "a refund of an order that was never paid": {
      deeds: [
        async (tx) => {
          await does(`insert into refunds (id, order_id, origin, status, amount_minor, currency, reason, created_at)
                      select gen_random_uuid(), id, 'service', 'processing', 5, 'USD', '', '2026-06-01'
                        from orders where status = 'failed' limit 1;
                      update orders set refunding_minor = 5 where status = 'failed'`)(tx);
        },
      ],
      said: [/^Order ord_\w{26} is failed and should be completed\.$/],
    },
    "a tax, a fee and a commission of other rates than the order's": {
      deeds: [
        async (tx) => {
          const { id } = await books.sells(tx);
          await does(`update orders set tax_basis_points = 2000, fee_basis_points = 1100, commission_basis_points = 2100
                       where id = '${id}'`)(tx);
        },
      ],
      said: [
        /^Order ord_\w{26} has a tax of 319, where 333 is due by its rates, in minor units of USD\.$/,
        /^Order ord_\w{26} has a fee of 168, where 185 is due/,
        /^Order ord_\w{26} has a commission of 336, where 353 is due/,
      ],
    },
    "a half that was rounded down": {
      deeds: [
        async (tx) => {
          const { id } = await books.sells(tx, {
            ...{ priceMinor: 105n, tax: { basisPoints: 0, inclusive: true } },
            ...{ commissionBasisPoints: 0 },
          });
          await does(`update orders set fee_minor = 10, seller_minor = 95 where id = '${id}';
                      update ledger_entries set amount_minor = case account when 'seller' then 95 else 10 end
                       where order_id = '${id}' and account in ('seller', 'platform_revenue')`)(tx);
        },
      ],
      said: [/^Order ord_\w{26} has a fee of 10, where 11 is due by its rates, in minor units of USD\.$/],
    },
    "a sale that gave no use": {
      deeds: [
        async (tx) => {
          const { id } = await books.sells(tx);
          await does(`delete from entitlements where order_id = '${id}'`)(tx);
        },
      ],
      said: [
        /^Order ord_\w{26} gives no use, where active use is due\.$/,
        /^Product prod_\w{26} counts \d purchases, and \d buyers have it\.$/,
      ],
    },
    "use that was not taken away with the money": {
      deeds: [
        async (tx) => {
          const order = await books.sells(tx);
          await books.refunds(tx, order, 1_999n);
          await does(`update entitlements set status = 'active' where order_id = '${order.id}'`)(tx);
        },
      ],
      said: [
        /^Order ord_\w{26} gives active use, where revoked use is due\.$/,
        /^Product prod_\w{26} counts \d purchases, and \d buyers have it\.$/,
      ],
    },
    "use of which half the money is back, and that was taken away": {
      deeds: [
        async (tx) => {
          const order = await books.sells(tx);
          await books.refunds(tx, order, 1_000n);
          await does(`update entitlements set status = 'held' where order_id = '${order.id}'`)(tx);
        },
      ],
      said: [/^Order ord_\w{26} gives held use, where active use is due\.$/],
    },
    "use of what was not paid": {
      deeds: [
        does(`insert into entitlements (buyer_id, product_id, order_id, major, status, created_at)
              select buyer_id, product_id, id, 1, 'revoked', created_at from orders where status = 'failed'`),
      ],
      said: [/^Order ord_\w{26} gives revoked use, where no use is due\.$/],
    },
    "use by somebody else than the buyer": {
      deeds: [
        async (tx) => {
          const { id } = await books.sells(tx);
          await does(`update entitlements set buyer_id = '${seller.userId}' where order_id = '${id}'`)(tx);
        },
      ],
      said: [/^Order ord_\w{26} has an entitlement for another buyer, product or major version\.$/],
    },
    "a discount code that counts what nobody holds": {
      deeds: [
        does(`insert into discount_codes (id, seller_id, code, percent_basis_points, redemptions, created_at, updated_at)
              values (gen_random_uuid(), '${ZERO}', 'HALF', 5000, 2, '2026-01-01', '2026-01-01')`),
      ],
      said: [/^Discount code disc_\w{26} counts 2 redemptions, and 0 orders hold it\.$/],
    },
    "a discount code that was given free too early": {
      deeds: [
        async (tx) => {
          const { id } = await books.sells(tx);
          await does(`insert into discount_codes (id, seller_id, code, percent_basis_points, redemptions, created_at, updated_at)
                      values ('${ZERO}', '${seller.userId}', 'HALF', 5000, 0, '2026-01-01', '2026-01-01');
                      update orders set discount_code_id = '${ZERO}' where id = '${id}'`)(tx);
        },
      ],
      said: [/^Discount code disc_\w{26} counts 0 redemptions, and 1 orders hold it\.$/],
    },
    "a product that counts a purchase too many": {
      deeds: [does("update product_stats set purchases = purchases + 1 where purchases = 1")],
      said: [/^Product prod_\w{26} counts 2 purchases, and 1 buyers have it\.$/],
    },
    "a payment of a plan that is not booked": {
      deeds: [paysPlan(1, "2026-01-01")],
      said: [
        /^The payment pay_\w{26} of a plan books 0 on platform_revenue, where 2437 is due/,
        /books 0 on provider_clearing, where -2786 is due/,
        /books 0 on processor_fees, where -114 is due/,
        /books 0 on tax_payable, where 463 is due/,
      ],
    },
    "a receipt of a plan whose number was left out": {
      deeds: [paysPlan(2, "2026-01-01")],
      said: [
        /of a plan books 0 on/,
        /^Plans have 1 receipts numbered 2 to 2 in 2026, and 1 numbers were given out\.$/,
      ],
    },
    "a receipt of a plan of another year": {
      deeds: [paysPlan(1, "2025-12-31T23:59:59Z")],
      said: [
        /of a plan books 0 on/,
        /^The payment pay_\w{26} of a plan has a receipt of 2026, and was completed at 2025-12-31T23:59:59\.000Z\.$/,
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
      said: [
        OTHER_RECEIPTS,
        /^Ledger transaction [\w-]{36} \(sale\) is of 2026-06-15T12:00:00\.000Z, and what it is about of 2025-12-31T23:59:59\.000Z\.$/,
        /^Order ord_\w{26} has a receipt of 2026, and was completed at 2025-12-31T23:59:59\.000Z\.$/,
      ],
    },
  };
  for (const [what, { deeds, said }] of Object.entries(wrongs)) {
    test(what, async () => {
      // The sums of analytics follow these books, so that what is said is of the ledger alone.
      const problems = await problemsAfter(unchecked, ...deeds, rebuildSumsIn);
      const untold = said.filter((pattern) => !problems.some((problem) => pattern.test(problem)));
      const unforeseen = problems.filter((problem) => !said.some((pattern) => pattern.test(problem)));
      assert.deepEqual({ untold, unforeseen }, { untold: [], unforeseen: [] });
    });
  }

  test("amounts too large to be added up, and whatever else is wrong", async () => {
    const problems = await problemsAfter(
      does(
        `update ledger_entries set amount_minor = 9223372036854775807 where ${ofSale} and account = 'seller'`,
      ),
      does("update product_stats set purchases = purchases + 1 where purchases = 1"),
    );
    for (const said of [
      /^Ledger transaction [\w-]{36} \(sale\) does not sum to zero in USD\.$/,
      /^The sale of order ord_\w{26} books 9223372036854775807 on seller of usr_\w{26}, where 449 is due/,
      /^Product prod_\w{26} counts 2 purchases, and 1 buyers have it\.$/,
      /^One of the proofs could not be made, because an amount is too large to be added up\.$/,
    ])
      assert.ok(
        problems.some((problem) => said.test(problem)),
        `${said}: ${problems.join("\n")}`,
      );
  });

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

suite("a row that contradicts itself is refused", () => {
  const wrongs: Record<string, string> = {
    "a completed order that no moment completed":
      "update orders set completed_at = null, matures_at = null, receipt_year = null, receipt_number = null",
    "an order that was paid and is pending": "update orders set status = 'pending'",
    "a refunded order of which nothing is back": "update orders set status = 'refunded'",
    "a partially refunded order of which all is back":
      "update orders set status = 'partially_refunded', refunded_minor = total_minor",
    "a completed order of which something is back": "update orders set refunded_minor = 1",
    "an order that never matures": "update orders set matures_at = null",
    "an order that matures a moment too early":
      "update orders set matures_at = matures_at - interval '1 millisecond'",
    "an order that matures before its refund window is over": "update orders set refund_days = 15",
    "a receipt of no year": "update orders set receipt_year = null",
  };
  for (const [what, statement] of Object.entries(wrongs))
    test(what, () =>
      assert.rejects(market.query(`${statement} where status = 'completed'`), { code: "23514" }),
    );
});

suite("stoa-server ledger verify", () => {
  const command = fileURLToPath(new URL("../../../bin/stoa-server.mjs", import.meta.url));

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
    await market.query("update orders set refunding_minor = 1 where id = $1", [rows[0].id]);
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
    await market.query("update orders set refunding_minor = 0 where id = $1", [rows[0].id]);
    assert.equal((await verify()).code, 0);
  });
});
