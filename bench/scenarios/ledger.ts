import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rebuildSums } from "@stoa/service/commerce/analytics/rebuild.ts";
import { balancesOf } from "@stoa/service/commerce/ledger/balances.ts";
import { verifyLedger } from "@stoa/service/commerce/ledger/verification.ts";
import { openDatabase, openPool } from "@stoa/service/platform/db/database.ts";
import { startEmbedded } from "@stoa/service/platform/db/embedded.ts";
import type pg from "pg";
import { fillDatabase, idOf, insertTransactions, secondsOf } from "../ledger-data.ts";
import type { Options } from "../options.ts";
import { atEnd, ROOT, start } from "../processes.ts";
import { median, quantilesOf } from "../quantile.ts";
import { comparedWithAim, ms, type Report } from "../report.ts";
import { withBase } from "../shop.ts";

/** Four entries each, plus refunds and payouts: a million entries. */
const SALES = 240_000;
const SELLERS = 2_000;
const BUYERS = 1_000;
/** Sales of one seller, who has many products, since a buyer buys a product once. */
const OF_ONE = 100_000;
const MORE_PRODUCTS = OF_ONE / BUYERS + 1;
const REFUNDED_EVERY = 20;
const ROUNDS = 3;
const LOOKS = 100;
const AIM_VERIFY_SECONDS = 10;
const AIM_BALANCE_MS = 50;

/** Verifies the ledger of a market with many sales, and reads a balance. */
export async function measureLedger(_options: Options): Promise<Report> {
  const dataDir = await mkdtemp(join(tmpdir(), "stoa-bench-ledger-"));
  atEnd(() => rm(dataDir, { recursive: true, force: true }));
  const filled = await fillDatabase(dataDir, [...people, ...sales, ...refunds, ...use, ...payouts]);
  const database = await startEmbedded(dataDir);
  atEnd(() => database.stop());
  await withBase(dataDir, { target: database.connection }, ({ ctx }) => rebuildSums(ctx));
  const pool = openPool({ target: database.connection, maxConnections: 2 });
  atEnd(() => pool.end());
  const verdict = await mustBeRight(pool);
  const proofs = await secondsOf(ROUNDS, () => verifyLedger(openDatabase(pool)));
  const commands = await secondsOf(ROUNDS, () => verifyByCommand(dataDir));
  const [large, small] = [await balanceTimes(pool, 1), await balanceTimes(pool, 2)];
  await mustBeFound(pool);
  return {
    columns: ["what", "median", "aim", "met", "every run"],
    rows: [
      [
        ...["`ledger verify`, the proofs alone"],
        ...comparedWithAim(
          `${median(proofs).toFixed(2)} s`,
          `≤ ${AIM_VERIFY_SECONDS} s`,
          median(proofs) <= AIM_VERIFY_SECONDS,
        ),
        proofs.map((time) => time.toFixed(2)).join(", "),
      ],
      [
        ...["`stoa-server ledger verify`, the whole command", `${median(commands).toFixed(2)} s`, "", ""],
        commands.map((time) => time.toFixed(2)).join(", "),
      ],
      [
        ...[`balance of a seller with ${large.entries.toLocaleString("en")} entries`],
        ...comparedWithAim(`${ms(large.p50)} ms`, `≤ ${AIM_BALANCE_MS} ms`, large.p50 <= AIM_BALANCE_MS),
        `p99 ${ms(large.p99)} ms`,
      ],
      [
        ...[
          `balance of a seller with ${small.entries.toLocaleString("en")} entries`,
          `${ms(small.p50)} ms`,
          "",
          "",
        ],
        `p99 ${ms(small.p99)} ms`,
      ],
    ],
    notes: [
      `${verdict.entries.toLocaleString("en")} entries in ${verdict.transactions.toLocaleString("en")} transactions, written in ${filled.toFixed(0)} s with the guards off; then all is well, and one cent that somebody moved is found.`,
    ],
  };
}

const sellerOf = `case when n <= ${OF_ONE} then 1 else 2 + n % ${SELLERS - 1} end`;
const productOf = `case when n <= ${OF_ONE} then ${SELLERS + 1} + n / ${BUYERS} else 2 + n % ${SELLERS - 1} end`;

const people = [
  `insert into users (id, email, name, role, created_at)
   select ${idOf("seller", "n")}, 'seller' || n || '@bench.example', 'Seller ' || n, 'seller', '2026-01-01'
     from generate_series(1, ${SELLERS}) n`,
  `insert into users (id, email, name, created_at)
   select ${idOf("buyer", "n")}, 'buyer' || n || '@bench.example', 'Buyer ' || n, '2026-01-01'
     from generate_series(0, ${BUYERS - 1}) n`,
  `insert into products (id, author_id, title, description, type, status, price_minor, currency, compatibility, tags,
                         requirements, features, models, preview, version, card, created_at, updated_at, moved_at)
   select ${idOf("product", "n")}, ${idOf("seller", `case when n <= ${SELLERS} then n else 1 end`)}, 'Product ' || n, '', 'PROMPT', 'unpublished', 1999, 'USD', '{}', '{}',
          '{}', '{}', '{}', '', '1.0.0', '{}', '2026-01-01', '2026-01-01', '2026-01-01'
     from generate_series(1, ${SELLERS + MORE_PRODUCTS}) n`,
];

/** A tenth for the platform, 30 cents for the provider; each sale matures after two weeks. */
const sales = [
  `insert into orders (id, buyer_id, seller_id, product_id, buyer_name, buyer_email, seller_name, product_title, product_type,
                       product_version, status, subtotal_minor, total_minor, fee_minor, seller_minor, fee_basis_points,
                       processor_fee_minor, currency, refund_days, payment_method_id, created_at, completed_at, matures_at,
                       receipt_year, receipt_number)
   select ${idOf("order", "n")}, ${idOf("buyer", `n % ${BUYERS}`)}, ${idOf("seller", "seller")}, ${idOf("product", "product")},
          '', '', '', '', 'PROMPT', '1.0.0', 'completed', price, price, fee, price - fee, 1000, 30, 'USD', 14, 'pm_test_ok',
          sold_at, sold_at, sold_at + interval '14 days', 2026, row_number() over (partition by seller order by n)
     from (select n, ${sellerOf} as seller, ${productOf} as product, 100 + n % 5000 as price, (100 + n % 5000 + 5) / 10 as fee,
                  '2026-01-01'::timestamptz + n * interval '100 seconds' as sold_at
             from generate_series(1, ${SALES}) n) as sale`,
  "insert into receipt_counters select seller_id, receipt_year, max(receipt_number) from orders group by 1, 2",
  insertTransactions(
    "sale",
    "select id as source_id, completed_at as happened_at, * from orders",
    `('provider_clearing', null::uuid, processor_fee_minor - total_minor, null::timestamptz),
     ('processor_fees', null, -processor_fee_minor, null),
     ('seller', seller_id, seller_minor, matures_at),
     ('platform_revenue', null, fee_minor, null)`,
  ),
];

const refunds = [
  `insert into refunds (id, order_id, origin, status, amount_minor, currency, reason, created_at, completed_at)
   select ${idOf("refund", "id::text")}, id, 'service', 'succeeded', total_minor, currency, '', completed_at, completed_at
     from orders where receipt_number % ${REFUNDED_EVERY} = 0`,
  `update orders set status = 'refunded', refunded_minor = total_minor where receipt_number % ${REFUNDED_EVERY} = 0`,
  insertTransactions(
    "refund",
    `select r.id as source_id, r.completed_at as happened_at, o.* from refunds r join orders o on o.id = r.order_id`,
    `('provider_clearing', null::uuid, total_minor, null::timestamptz),
     ('seller', seller_id, -seller_minor, matures_at),
     ('platform_revenue', null, -fee_minor, null)`,
  ),
];

const use = [
  `insert into entitlements (buyer_id, product_id, order_id, major, status, created_at)
   select buyer_id, product_id, id, 1, case status when 'refunded' then 'revoked' else 'active' end, completed_at from orders`,
  `insert into product_stats (product_id, purchases)
   select product_id, count(*) filter (where status <> 'revoked') from entitlements group by 1`,
];

const payouts = [
  `insert into payouts (id, seller_id, status, amount_minor, commission_minor, currency, destination, period_start, period_end, created_at, completed_at)
   select ${idOf("payout", "n")}, ${idOf("seller", "n")}, 'completed', 1000, 0, 'USD', 'acct_test', '2026-01-01', '2026-02-01', '2026-03-01', '2026-03-02'
     from generate_series(1, ${SELLERS}) n`,
  insertTransactions(
    "payout",
    "select id as source_id, created_at as happened_at, null::uuid as id, seller_id, amount_minor, currency from payouts",
    `('seller', seller_id, -amount_minor, 'epoch'::timestamptz), ('in_transit', seller_id, amount_minor, null)`,
  ),
  insertTransactions(
    "payout_completed",
    "select id as source_id, completed_at as happened_at, null::uuid as id, seller_id, amount_minor, currency from payouts",
    `('in_transit', seller_id, -amount_minor, null::timestamptz), ('provider_clearing', null, amount_minor, null)`,
  ),
];

async function mustBeRight(pool: pg.Pool) {
  const verdict = await verifyLedger(openDatabase(pool));
  if (!verdict.ok) throw new Error(`the ledger is wrong: ${verdict.problems.slice(0, 5).join(" ")}`);
  return verdict;
}

/** Proves that the verification finds an error. */
async function mustBeFound(pool: pg.Pool): Promise<void> {
  const client = await pool.connect();
  await client.query("set session_replication_role = replica");
  await client.query(
    `update ledger_entries set amount_minor = amount_minor + 1
      where (transaction_id, position) = (select transaction_id, position from ledger_entries limit 1)`,
  );
  client.release(true);
  const { problems } = await verifyLedger(openDatabase(pool));
  if (problems.length < 2) throw new Error(`a cent was moved, and nobody noticed: ${problems.join(" ")}`);
}

const verifyByCommand = (dataDir: string) =>
  start(process.execPath, [join(ROOT, "service/bin/stoa-server.mjs"), "ledger", "verify", "--json"], {
    env: { STOA_DATA_DIR: dataDir, DATABASE_URL: "", STOA_ENVIRONMENT: "test" },
  }).output();

async function balanceTimes(pool: pg.Pool, seller: number) {
  const { rows } = await pool.query<{ id: string; entries: number }>(
    `select owner_id as id, count(*) as entries from ledger_entries where owner_id = ${idOf("seller", `'${seller}'`)} group by 1`,
  );
  const { id, entries } = rows[0]!;
  const db = openDatabase(pool);
  const seconds = await secondsOf(LOOKS, () => balancesOf(db, id, new Date()));
  return { entries, ...quantilesOf(seconds.map((time) => time * 1000)) };
}
