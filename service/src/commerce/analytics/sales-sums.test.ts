import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, suite, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { sql } from "kysely";
import { createProduct } from "../../../test/factories.ts";
import { type LedgerOrder, ledgerWriter } from "../../../test/ledger-writer.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { type Market, openMarket } from "../../../test/market.ts";
import { until } from "../../../test/until.ts";
import { toUuid } from "../../core/ids.ts";
import type { Tx } from "../../platform/db/database.ts";
import { findProblems, verifyLedger } from "../ledger/verification.ts";
import { rebuildSums } from "./rebuild.ts";
import { rollUpSales } from "./sales-sums.ts";
import { rollUpMovements } from "./sales-sums-queries.ts";

let market: Market;
let books: ReturnType<typeof ledgerWriter>;
before(async () => {
  market = await openMarket();
  const [seller, buyer, referrer] = [
    await market.createUser(),
    await market.createUser(),
    await market.createUser(),
  ];
  const productId = toUuid("prod", await createProduct(seller))!;
  const people = { sellerId: seller.userId, buyerId: buyer.userId, referrerId: referrer.userId };
  books = ledgerWriter(market.service.ctx, { ...people, productId });
});
after(() => market.close());

const inTransaction = <T>(work: (tx: Tx) => Promise<T>) => market.service.ctx.db.transaction().execute(work);
const createSale = () => inTransaction((tx) => books.sells(tx));
const execute = async (statement: string) => void (await market.query(statement));
const problems = async () => (await verifyLedger(market.service.ctx.db)).problems;

/** All sums, including pending movements. */
async function cells() {
  const { rows } = await market.query(
    `select scope, of_id, grain, starts_at, currency, sum(sales)::bigint as sales, sum(gross)::bigint as gross,
            sum(refunds)::bigint as refunds, sum(disputes)::bigint as disputes, sum(net)::bigint as net
       from sales_cells_now group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5`,
  );
  return rows;
}
const count = async (table: string) =>
  (await market.query(`select count(*) as count from ${table}`)).rows[0].count;

/** Creates sales with refunds and disputes over two months. */
async function createHistory(): Promise<void> {
  const steps: ((tx: Tx, order: LedgerOrder) => Promise<unknown>)[][] = [
    [(tx, order) => books.refunds(tx, order, 700n), (tx, order) => books.refunds(tx, order, 1_299n)],
    [(tx, order) => books.disputes(tx, order), (tx, order) => books.wins(tx, order)],
    [
      (tx, order) => books.refunds(tx, order, 500n),
      (tx, order) => books.disputes(tx, order),
      (tx, order) => books.loses(tx, order),
    ],
    [(tx, order) => books.disputes(tx, order), (tx, order) => books.refunds(tx, order, 300n)],
  ];
  for (const moves of steps) {
    const order = await createSale();
    for (const move of moves) {
      market.clock.forward(9 * 86_400_000);
      await inTransaction((tx) => move(tx, order));
    }
  }
  await inTransaction((tx) => books.sells(tx, { discountMinor: 1_999n }));
}

suite("sales sums", () => {
  test("before and after a roll-up and a rebuild: equal", async () => {
    await createHistory();
    const before = await cells();
    assert.deepEqual([await problems(), await count("sales_sums")], [[], 0]);
    await rollUpSales(market.service.ctx, 3);
    assert.deepEqual([await cells(), await problems(), await count("sales_movements")], [before, [], 0]);
    await createSale();
    const [after, sums] = [await cells(), await count("sales_sums")];
    assert.deepEqual(await rebuildSums(market.service.ctx), { sums, changed: 13, removed: 0 });
    assert.deepEqual([await cells(), await problems(), await count("sales_movements")], [after, [], 0]);
    await execute("delete from sales_sums");
    assert.deepEqual(await rebuildSums(market.service.ctx), { sums, changed: sums, removed: 0 });
    assert.deepEqual([await cells(), await problems()], [after, []]);
  });

  test("wrong, missing and unfounded sums: only these are rewritten", async () => {
    const [before, sums] = [await cells(), await count("sales_sums")];
    const one = (nth: number) =>
      `ctid = (select ctid from sales_sums order by starts_at, grain, scope offset ${nth} limit 1)`;
    await execute(`update sales_sums set gross = gross + 1, net = net + 1 where ${one(0)}`);
    await execute(`delete from sales_sums where ${one(1)}`);
    await execute(`update sales_sums set seller_id = gen_random_uuid() where ${one(2)}`);
    assert.deepEqual(await rebuildSums(market.service.ctx), { sums, changed: 3, removed: 1 });
    assert.deepEqual([await cells(), await problems()], [before, []]);
  });

  test("stoa-server analytics rebuild: repairs wrong sums", async () => {
    await execute("update sales_sums set gross = gross + 1, net = net + 1 where grain = 'month'");
    const [months, sums] = [await count("sales_sums where grain = 'month'"), await count("sales_sums")];
    const { config } = market.service.ctx;
    const keys = config.masterKeys
      .map(({ id, bytes }) => `${id}:${Buffer.from(bytes).toString("base64")}`)
      .join();
    const env = {
      ...{
        ...process.env,
        DATABASE_URL: market.target,
        STOA_ENVIRONMENT: "test",
        STOA_DATA_DIR: config.dataDir,
      },
      ...{ STOA_MASTER_KEYS: keys, STOA_SESSION_KEYS: keys },
    };
    const command = fileURLToPath(new URL("../../../bin/stoa-server.mjs", import.meta.url));
    const output = await promisify(execFile)(process.execPath, [command, "analytics", "rebuild", "--json"], {
      env,
    });
    assert.deepEqual(JSON.parse(output.stdout), { sums, changed: months, removed: 0 });
    assert.deepEqual(await problems(), []);
  });

  test("concurrent sales, roll-ups and rebuilds: no movement is lost or counted twice", async () => {
    const { ctx } = market.service;
    const sold = Promise.all(Array.from({ length: 40 }, createSale));
    for (let times = 0; times < 5; times++) {
      await Promise.all([rollUpSales(ctx, 2), rollUpSales(ctx), rebuildSums(ctx), rollUpSales(ctx)]);
      assert.deepEqual(await problems(), []);
    }
    await sold;
    await rollUpSales(ctx);
    assert.deepEqual([await problems(), await count("sales_movements")], [[], 0]);
  });
});

test("GET /metrics: reports the number of pending movements and the age of the oldest", async () => {
  const readMetrics = async () =>
    (await market.as(null).get("/metrics")).text.match(/^analytics_waiting\S* \S+$/gm)!.toSorted();
  await rollUpSales(market.service.ctx);
  assert.deepEqual(await readMetrics(), ["analytics_waiting 0", "analytics_waiting_oldest_seconds 0"]);
  await createSale();
  market.clock.forward(90_000);
  await createSale();
  assert.deepEqual(await readMetrics(), ["analytics_waiting 2", "analytics_waiting_oldest_seconds 90"]);
});

test("rollUpMovements, statistics of an emptied table: reads each movement a few times", async () => {
  const { ctx } = market.service;
  await rollUpSales(ctx);
  const movements = 300;
  const insert = `insert into sales_movements (id, seller_id, product_id, currency, moved_at)
                  select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'USD', now() from generate_series(1, ${movements})`;
  // Pages without rows: PostgreSQL expects that they stay so.
  await execute(insert);
  await execute("delete from sales_movements");
  await execute("analyze sales_movements");
  const read = await inTransaction(async (tx) => {
    await sql.raw(insert).execute(tx);
    assert.equal(await rollUpMovements(tx, movements), movements);
    const { rows } = await sql<{ read: number }>`
      select seq_tup_read + idx_tup_fetch as read from pg_stat_xact_user_tables where relname = 'sales_movements'`.execute(
      tx,
    );
    return rows[0]!.read;
  });
  await execute("delete from sales_sums where seller_id not in (select id from users)");
  assert.ok(read <= 5 * movements, `${read} rows`);
});

test("rollUpSales, connection lost: rolls back; the next run continues", async () => {
  const { ctx } = market.service;
  await createSale();
  await rollUpSales(ctx);
  await createSale();
  const before = await cells();
  const holder = await ctx.pool.connect();
  await holder.query("begin");
  await holder.query("lock table sales_sums in share mode");
  const interrupted = rollUpSales(ctx);
  const ended = assert.rejects(interrupted);
  const kill = `select pid, pg_terminate_backend(pid) from pg_locks
                 where relation = 'sales_sums'::regclass and database = (select oid from pg_database where datname = current_database())
                   and mode = 'RowExclusiveLock' and not granted`;
  const { pid } = await until("the round is cut off", async () => (await holder.query(kill)).rows[0]);
  await ended;
  // PostgreSQL reports the end of a session before it releases the lock, without which the next run does nothing.
  const locks = "select from pg_locks where pid = $1";
  await until("its locks are released", async () => (await holder.query(locks, [pid])).rowCount === 0);
  await holder.query("commit");
  holder.release();
  assert.deepEqual([await cells(), await count("sales_movements")], [before, 1]);
  await rollUpSales(ctx);
  assert.deepEqual([await cells(), await count("sales_movements"), await problems()], [before, 0, []]);
});

test("rollUpSales, statement canceled: keeps the finished batches; the next run continues", async () => {
  const { ctx } = market.service;
  await rollUpSales(ctx);
  for (let times = 0; times < 4; times++) await createSale();
  const before = await cells();
  const holder = await ctx.pool.connect();
  await holder.query("begin");
  await holder.query("select from sales_movements order by id desc limit 1 for update");
  // PostgreSQL reports a timeout in the same way, but a timeout could also end the first batch.
  const canceled = assert.rejects(rollUpSales(ctx, 2), { code: "57014" });
  await waitForBlockedStatements(market);
  await holder.query(`select pg_cancel_backend(pid) from pg_stat_activity
                       where datname = current_database() and wait_event_type = 'Lock'`);
  await canceled;
  await holder.query("commit");
  holder.release();
  assert.deepEqual([await cells(), await count("sales_movements")], [before, 2]);
  await rollUpSales(ctx);
  assert.deepEqual([await cells(), await count("sales_movements"), await problems()], [before, 0, []]);
});

/** Runs the statements in a transaction that is rolled back, and returns the problems that `findProblems` reports. */
async function problemsAfter(...statements: string[]): Promise<string[]> {
  const rollback = new Error("not kept");
  let found: string[] = [];
  const work = inTransaction(async (tx) => {
    for (const statement of statements) await sql.raw(statement).execute(tx);
    found = await findProblems(tx);
    throw rollback;
  });
  await assert.rejects(work, rollback);
  return found;
}

suite("ledger verify reports", () => {
  before(async () => {
    await createSale();
    await rollUpSales(market.service.ctx);
  });

  const WHOSE = "Analytics of usr_\\w{26}";
  const wrongs: Record<string, { statement: string; expected: RegExp[] }> = {
    "a wrong quarter of an hour, its hour and its day": {
      statement:
        "update sales_sums set gross = gross + 1, net = net + 1 where (grain, scope) = ('quarter', 'all') and starts_at = (select max(starts_at) from sales_sums)",
      expected: [
        new RegExp(
          `^${WHOSE} have in the quarter of an hour from 20\\S+ gross of (\\d+) and not \\d+, net of \\d+ and not \\d+, gross of \\1 and not the \\d+ of receipts, in minor units of USD\\.$`,
        ),
        new RegExp(
          `^${WHOSE} have on the day from 20\\d\\d-\\d\\d-\\d\\dT00:00:00\\.000Z gross of \\d+ and not \\d+, net of`,
        ),
        new RegExp(`^${WHOSE} have in the hour from 20\\S+:00:00\\.000Z gross of \\d+ and not \\d+, net of`),
      ],
    },
    "a missing month of a product": {
      statement:
        "delete from sales_sums where (grain, scope) = ('month', 'product') and starts_at = (select min(starts_at) from sales_sums where grain = 'month')",
      expected: [
        new RegExp(
          `^${WHOSE}, of prod_\\w{26} have in the month from 2026-06-01T00:00:00\\.000Z sales of 0 and not \\d+, gross of 0 and`,
        ),
        new RegExp(
          `^${WHOSE}, of prod_\\w{26} have in the year from 2026-01-01T00:00:00\\.000Z sales of \\d+ and not \\d+, gross of`,
        ),
      ],
    },
    "an hour counted twice": {
      statement:
        "update sales_sums set sales = 2 * sales where ctid = (select ctid from sales_sums where grain like 'hour-%' order by starts_at limit 1)",
      expected: [
        new RegExp(`^${WHOSE} have in the hour from 20\\S+:00:00\\.000Z sales of \\d+ and not \\d+, in`),
      ],
    },
    "a missing year of all sales": {
      statement: "delete from sales_sums where (grain, scope) = ('year', 'all')",
      expected: [
        new RegExp(
          `^${WHOSE} have in the year from 2026-01-01T00:00:00\\.000Z sales of \\d+ and not \\d+, gross of`,
        ),
      ],
    },
    "a sale of a referrer counted twice": {
      statement:
        "update sales_sums set sales = 2 * sales where scope = 'referrer' and starts_at = (select max(starts_at) from sales_sums)",
      expected: [
        new RegExp(
          `^${WHOSE}, by usr_\\w{26} have in the quarter of an hour from 20\\S+ sales of \\d+ and not \\d+, in`,
        ),
        new RegExp(`^${WHOSE}, by usr_\\w{26} have on the day from 20\\S+ sales of \\d+ and not \\d+, in`),
      ],
    },
    "sums of an unknown seller": {
      statement:
        "update sales_sums set seller_id = gen_random_uuid() where (grain, scope) = ('day', 'all') and starts_at = (select min(starts_at) from sales_sums where grain = 'day')",
      expected: [
        new RegExp(`^${WHOSE} have on the day from 20\\S+ sales of \\d+ and not 0, gross of`),
        new RegExp(`^${WHOSE} have on the day from 20\\S+ sales of 0 and not \\d+, gross of`),
        new RegExp(`^${WHOSE} have in the month from 20\\S+ sales of \\d+ and not 0, gross of`),
        new RegExp(`^${WHOSE} have in the month from 20\\S+ sales of`),
      ],
    },
    "a transaction dated one day after its order": {
      statement: `alter table ledger_transactions disable trigger user;
             update ledger_transactions set occurred_at = occurred_at + interval '1 day'
              where id = (select id from ledger_transactions where kind = 'sale' order by id limit 1)`,
      expected: [
        /^Ledger transaction [\w-]{36} \(sale\) is dated 20\S+, where its source is dated 20\S+\.$/,
        new RegExp(
          `^${WHOSE}(, (of prod|by usr)_\\w{26})? have in the quarter of an hour from 20\\S+ gross of`,
        ),
      ],
    },
  };
  /** Changes that keep the check constraints of the sums. */
  const units = {
    "a sale": "sales = sales + 1",
    gross: "gross = gross + 1, net = net + 1",
    discounts: "discounts = discounts - 1",
    refunds: "refunds = refunds + 1, net = net - 1",
    disputes: "disputes = disputes + 1, gross = gross + 1",
    tax: "tax = tax + 1",
    fees: "fees = fees - 1, net = net + 1",
    commissions: "commissions = commissions - 1, fees = fees + 1",
    net: "net = net - 1, commissions = commissions + 1",
  };
  for (const table of ["sales_sums", "sales_movements"])
    for (const [what, off] of Object.entries(units))
      test(`${what} off by one in any row of ${table}`, async () => {
        await createSale();
        const one = `select ctid from ${table} order by random() limit 1`;
        const found = await problemsAfter(`update ${table} set ${off} where ctid = (${one})`);
        assert.match(found[0]!, /^Analytics of usr_/);
      });

  for (const [what, { statement, expected }] of Object.entries(wrongs))
    test(what, async () => {
      const found = await problemsAfter(statement);
      const missing = expected.filter((pattern) => !found.some((problem) => pattern.test(problem)));
      const unexpected = found.filter((problem) => !expected.some((pattern) => pattern.test(problem)));
      assert.deepEqual({ missing, unexpected }, { missing: [], unexpected: [] });
    });
});
