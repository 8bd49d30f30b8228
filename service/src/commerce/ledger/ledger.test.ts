import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { DAY_MS } from "../../core/dates.ts";
import { toUuid } from "../../core/ids.ts";
import { balancesOf } from "./balances.ts";
import { type Entry, postTransaction } from "./ledger.ts";

/** The refund window, which exceeds the 7 days of order-payment.ts. */
const MATURES_AFTER_MS = 14 * DAY_MS;

let market: Market;
let seller: Client;
before(async () => {
  market = await openMarket();
  market.skipLedgerCheck();
  seller = await market.createUser();
});
after(() => market.close());

/** Runs the statements in a transaction that is rolled back, and checks deferred constraints. */
async function executeAndRollBack(statements: string[]): Promise<void> {
  const client = await market.service.ctx.pool.connect();
  try {
    await client.query("begin");
    for (const statement of statements) await client.query(statement);
    await client.query("set constraints all immediate");
  } finally {
    await client.query("rollback");
    client.release();
  }
}

const ID = "01980000-0000-7000-8000-000000000001";
const transaction = (count: number) =>
  `insert into ledger_transactions (id, kind, source_id, entry_count, occurred_at)
   values ('${ID}', 'subscription', '${ID}', ${count}, '2026-06-15')`;
const entries = (count: number, amounts: Record<number, number>, currency = "USD") =>
  `insert into ledger_entries (transaction_id, position, entry_count, account, currency, amount_minor)
   values ${Object.entries(amounts)
     .map(([place, amount]) => `('${ID}', ${place}, ${count}, 'platform_revenue', '${currency}', ${amount})`)
     .join(", ")}`;
const balanced = [transaction(2), entries(2, { 1: 100, 2: -100 })];

suite("the database refuses", () => {
  /** `without` removes the one guard: then the statements succeed. */
  const violations: { name: string; statements: string[]; refusal: RegExp; without: string }[] = [
    {
      name: "a transaction that does not sum to zero",
      statements: [transaction(2), entries(2, { 1: 100, 2: -99 })],
      refusal: /does not sum to zero in USD/,
      without: "drop trigger ledger_balances on ledger_transactions",
    },
    {
      name: "a transaction that sums to zero in all, but not in each currency",
      statements: [transaction(2), entries(2, { 1: 100 }), entries(2, { 2: -100 }, "EUR")],
      refusal: /does not sum to zero in EUR/,
      without: "drop trigger ledger_balances on ledger_transactions",
    },
    {
      name: "a transaction without entries",
      statements: [transaction(2)],
      refusal: /has 0 of its 2 entries/,
      without: "drop trigger ledger_balances on ledger_transactions",
    },
    {
      name: "a transaction with fewer entries than its entry_count",
      statements: [transaction(3), entries(3, { 1: 100, 2: -100 })],
      refusal: /has 2 of its 3 entries/,
      without: "drop trigger ledger_balances on ledger_transactions",
    },
    {
      name: "balanced entries added to a committed transaction",
      statements: [...balanced, "set constraints all immediate", entries(2, { 3: 5, 4: -5 })],
      refusal: /ledger_entries_have_places/,
      without: "alter table ledger_entries drop constraint ledger_entries_have_places",
    },
    {
      name: "entries added to a committed transaction with another count",
      statements: [...balanced, "set constraints all immediate", entries(4, { 3: 5, 4: -5 })],
      refusal: /ledger_entries_are_counted/,
      without: "alter table ledger_entries drop constraint ledger_entries_are_counted",
    },
    {
      name: "an entry with amount 0",
      statements: [transaction(3), entries(3, { 1: 100, 2: -100, 3: 0 })],
      refusal: /ledger_entries_amount_minor_check/,
      without: "alter table ledger_entries drop constraint ledger_entries_amount_minor_check",
    },
    {
      name: "an update of an entry",
      statements: [...balanced, "update ledger_entries set amount_minor = amount_minor * 2"],
      refusal: /append-only/,
      without: "drop trigger ledger_entries_stay on ledger_entries",
    },
    {
      name: "an update of a transaction",
      statements: [...balanced, "update ledger_transactions set occurred_at = '2020-01-01'"],
      refusal: /append-only/,
      without: "drop trigger ledger_transactions_stay on ledger_transactions",
    },
    {
      name: "a delete of an entry",
      statements: [...balanced, "delete from ledger_entries"],
      refusal: /append-only/,
      without:
        "drop trigger ledger_entries_stay on ledger_entries; drop trigger ledger_balances on ledger_transactions",
    },
    {
      name: "a delete of a transaction",
      statements: [
        ...balanced,
        "delete from ledger_transactions where id not in (select transaction_id from ledger_entries)",
      ],
      refusal: /append-only/,
      without: "drop trigger ledger_transactions_stay on ledger_transactions",
    },
    {
      name: "a truncate of entries",
      statements: ["truncate ledger_entries"],
      refusal: /append-only/,
      without: "drop trigger ledger_entries_stay on ledger_entries",
    },
    {
      name: "a truncate of transactions",
      statements: ["truncate ledger_transactions cascade"],
      refusal: /append-only/,
      without:
        "drop trigger ledger_transactions_stay on ledger_transactions; drop trigger ledger_entries_stay on ledger_entries",
    },
    {
      name: "a truncate of a referenced table",
      statements: ["truncate users cascade"],
      refusal: /append-only/,
      without: "drop trigger ledger_entries_stay on ledger_entries",
    },
  ];
  for (const { name, statements, refusal, without } of violations) {
    test(name, async () => {
      await assert.rejects(executeAndRollBack(statements), refusal);
      await executeAndRollBack([without, ...statements]);
    });
  }

  test("a second transaction for the same kind and source", async () => {
    await assert.rejects(
      executeAndRollBack([...balanced, transaction(2).replace(ID, "01980000-0000-7000-8000-000000000002")]),
      /ledger_transactions_kind_source_id_key/,
    );
  });

  test("a delete of a user or an order with entries", async () => {
    const order = toUuid("ord", await buyProduct(await market.createUser(), await createProduct(seller)));
    await assert.rejects(
      market.query("delete from orders where id = $1", [order]),
      /violates foreign key|ledger_entries_order_id_fkey/,
    );
    await assert.rejects(market.query("delete from users where id = $1", [seller.userId]), /violates/);
  });

  test("an owner on a platform account, and a missing owner on a personal account", async () => {
    const owned = (account: string, owner: string) =>
      executeAndRollBack([
        transaction(2),
        entries(2, { 2: -100 }),
        `insert into ledger_entries (transaction_id, position, entry_count, account, owner_id, currency, amount_minor)
         values ('${ID}', 1, 2, '${account}', ${owner}, 'USD', 100)`,
      ]);
    await assert.rejects(owned("platform_revenue", `'${seller.userId}'`), /check/);
    await assert.rejects(owned("in_transit", "null"), /check/);
    await owned("in_transit", `'${seller.userId}'`);
  });
});

suite("postTransaction", () => {
  const post = (entries: Entry[], sourceId = market.service.ctx.newId()) => {
    const { ctx } = market.service;
    return ctx.db
      .transaction()
      .execute((tx) =>
        postTransaction(ctx, tx, { kind: "subscription", sourceId, currency: "USD", entries }),
      );
  };
  const countOf = async () => (await market.query("select count(*) from ledger_transactions")).rows[0].count;

  test("entries that do not sum to zero: RangeError", async () => {
    await assert.rejects(
      post([
        { account: "platform_revenue", amountMinor: 100n },
        { account: "provider_clearing", amountMinor: -99n },
      ]),
      RangeError,
    );
  });

  test("twenty concurrent calls for one source: one transaction", async () => {
    const sourceId = market.service.ctx.newId();
    const before = await countOf();
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, () =>
        post(
          [
            { account: "platform_revenue", amountMinor: 100n },
            { account: "provider_clearing", amountMinor: -100n },
          ],
          sourceId,
        ),
      ),
    );
    assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
    assert.equal(await countOf(), before + 1);
  });

  test("entries of zero: nothing is posted", async () => {
    const before = await countOf();
    await post([
      { account: "platform_revenue", amountMinor: 0n },
      { account: "provider_clearing", amountMinor: 0n },
    ]);
    assert.equal(await countOf(), before);
  });
});

suite("balancesOf", () => {
  const balances = (userId: string) => balancesOf(market.service.ctx.db, userId, market.clock.now);
  const none = { pendingMinor: 0n, availableMinor: 0n, reservedMinor: 0n };

  test("an owner without sales: no balance", async () => {
    assert.deepEqual(await balances((await market.createUser()).userId), []);
  });

  test("a sale: pending until it matures, available from then on", async () => {
    const author = await market.createUser();
    await buyProduct(await market.createUser(), await createProduct(author, { price: 19.99 }));
    const sold = { currency: "USD", reservedMinor: 0n, inTransitMinor: 0n, referrer: none };
    assert.deepEqual(await balances(author.userId), [{ ...sold, pendingMinor: 1799n, availableMinor: 0n }]);
    market.clock.forward(MATURES_AFTER_MS - 1);
    assert.deepEqual(await balances(author.userId), [{ ...sold, pendingMinor: 1799n, availableMinor: 0n }]);
    market.clock.forward(1);
    assert.deepEqual(await balances(author.userId), [{ ...sold, pendingMinor: 0n, availableMinor: 1799n }]);
  });

  test("several currencies, payouts and commissions: one balance for each currency", async () => {
    const { ctx } = market.service;
    const [ownerId, maturesAt] = [(await market.createUser()).userId, ctx.now()];
    const later = new Date(maturesAt.getTime() + 1);
    const book = (currency: string, entries: Entry[]) =>
      ctx.db
        .transaction()
        .execute((tx) =>
          postTransaction(ctx, tx, { kind: "payout", sourceId: ctx.newId(), currency, entries }),
        );
    await book("JPY", [
      { account: "seller", ownerId, maturesAt, amountMinor: -300n },
      { account: "referrer", ownerId, maturesAt, amountMinor: -200n },
      { account: "referrer", ownerId, maturesAt: later, amountMinor: 70n },
      { account: "in_transit", ownerId, amountMinor: 430n },
    ]);
    await book("KWD", [
      { account: "seller", ownerId, maturesAt: later, amountMinor: 5n },
      { account: "provider_clearing", amountMinor: -5n },
    ]);
    assert.deepEqual(await balances(ownerId), [
      {
        ...{
          currency: "JPY",
          pendingMinor: 70n,
          availableMinor: -500n,
          reservedMinor: 0n,
          inTransitMinor: 430n,
        },
        referrer: { pendingMinor: 70n, availableMinor: -200n, reservedMinor: 0n },
      },
      { ...none, currency: "KWD", pendingMinor: 5n, inTransitMinor: 0n, referrer: none },
    ]);
  });
});
