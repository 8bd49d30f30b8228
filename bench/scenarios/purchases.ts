import { randomUUID } from "node:crypto";
import { permissions } from "@stoa/contract";
import { createKeyAsOperator } from "@stoa/service/accounts/api-keys/keys.ts";
import { createUser } from "@stoa/service/accounts/people/users.ts";
import { buyProduct } from "@stoa/service/commerce/checkout/purchases.ts";
import { verifyLedger } from "@stoa/service/commerce/ledger/verification.ts";
import type { Context, Member } from "@stoa/service/core/context.ts";
import { toId, toUuid } from "@stoa/service/core/ids.ts";
import { openDatabase, openPool } from "@stoa/service/platform/db/database.ts";
import { askedDuring, costOf } from "@stoa/service/test/statements.ts";
import type pg from "pg";
import { problemsOf } from "../ledger-problems.ts";
import type { Lane } from "../load.ts";
import { type Measured, measure } from "../measure.ts";
import type { Options } from "../options.ts";
import { hasPgbench, pgbench, WITHOUT_PGBENCH } from "../pgbench.ts";
import { atEnd, startScript } from "../processes.ts";
import { median } from "../quantile.ts";
import { type Replay, replayOf, without } from "../replay.ts";
import { comparedWithAim, ms, type Report } from "../report.ts";
import { openShop, type Shop, withBase } from "../shop.ts";

const ROUNDS = 3;
/** Parallel purchases, and purchases per pass. */
const LOADS = [
  { atOnce: 1, purchases: 200 },
  { atOnce: 10, purchases: 800 },
  { atOnce: 50, purchases: 1_200 },
];
const WARM_UP = { atOnce: 10, purchases: 200 };
const PGBENCH_SECONDS = 3;
const SELLERS = 20;
const AIM_OF_PGBENCH = 0.2;
/** Of the fake provider alone. */
const PROVIDER_LOAD = { atOnce: 10, warmUp: 200, charges: 1_000 };
/** More than pgbench can run in its time. */
const TURNS = 30_000;

/** Products, and pairs of buyer and product without a purchase. */
interface Market {
  name: string;
  productIds: string[];
  /** API keys. Each buys each product once. */
  buyers: string[];
  bought: number;
  /** The same for pgbench, with buyers of its own. */
  table: string;
  turned: number;
}

interface Result {
  market: Market;
  atOnce: number;
  ours: Measured[];
  bare: number[];
}

/** Purchases through the service, compared with their statements on the same database. */
export async function measurePurchases(options: Options): Promise<Report> {
  const shop = await openShop(options);
  const pool = openPool({ ...shop.connection, maxConnections: 2 });
  atEnd(() => pool.end());
  const { markets, replay, cost } = await withBase(shop.dataDir, shop.connection, ({ ctx }) =>
    prepare(ctx, pool),
  );
  const isCompared = await hasPgbench();
  const results = markets.flatMap((market) =>
    LOADS.map((load): Result & typeof load => ({ ...load, market, ours: [], bare: [] })),
  );
  for (const market of markets) await buy(shop, market, WARM_UP);
  for (let round = 0; round < ROUNDS; round++) {
    for (const result of results) {
      result.ours.push(await buy(shop, result.market, result));
      if (isCompared) result.bare.push(await turn(shop, replay, result));
    }
  }
  const provider = await measurePaymentProvider(shop);
  await mustBeProved(pool);
  return reportOf(results, isCompared, { ...cost, provider });
}

/** What the fake provider takes of a purchase: a charge and its webhook, in a process of its own. */
async function measurePaymentProvider(shop: Shop): Promise<Pick<Measured, "nodeMs" | "databaseMs">> {
  const known = new Set(await shop.backends());
  const receiver = startScript(new URL("../receiver.ts", import.meta.url), []);
  const [url] = await receiver.waitForLine(/^http:.*/);
  const input = JSON.stringify(shop.connection);
  const provider = startScript(new URL("../payment-provider.ts", import.meta.url), [url], { input });
  const [origin] = await provider.waitForLine(/^http:.*/);
  const target = {
    ...{ origin, pid: provider.pid },
    backends: async () => (await shop.backends()).filter((pid) => !known.has(pid)),
  };
  const charge = (amount: number) =>
    measure(target, { connections: PROVIDER_LOAD.atOnce, amount, lanes: chargesOf(amount) });
  await charge(PROVIDER_LOAD.warmUp);
  const measured = await charge(PROVIDER_LOAD.charges);
  await provider.end();
  await receiver.end();
  return measured;
}

function chargesOf(amount: number): Lane[] {
  const body = JSON.stringify({
    ...{ amountMinor: 1_000, currency: "USD", methodId: "pm_test_ok" },
    ...{ customerId: "bench", description: "Bench" },
  });
  return Array.from({ length: PROVIDER_LOAD.atOnce }, () =>
    Array.from({ length: Math.ceil(amount / PROVIDER_LOAD.atOnce) }, () => ({
      ...{ method: "POST", path: "/v1/charges", body },
      headers: { "content-type": "application/json", "idempotency-key": randomUUID() },
    })),
  );
}

async function prepare(ctx: Context, pool: pg.Pool) {
  const sellers = await largestSellers(pool);
  const productsOf = async (ids: string[]) => {
    const { rows } = await pool.query<{ id: string }>(
      `select product_id as id from listings
        where author_id = any($1::uuid[]) and status = 'published' and currency = 'USD'
        order by hashtext(product_id::text), product_id`,
      [ids],
    );
    return rows.map(({ id }) => id);
  };
  const markets = [
    await openMarket(ctx, pool, `${SELLERS} sellers`, await productsOf(sellers)),
    await openMarket(ctx, pool, "one seller", await productsOf(sellers.slice(0, 1))),
  ];
  return { markets, ...(await watchPurchase(ctx, markets[1]!)) };
}

async function largestSellers(pool: pg.Pool): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(
    `select author_id as id from listings where status = 'published' and currency = 'USD'
      group by author_id order by count(*) desc, author_id limit $1`,
    [SELLERS],
  );
  return rows.map(({ id }) => id);
}

async function openMarket(ctx: Context, pool: pg.Pool, name: string, productIds: string[]): Promise<Market> {
  const planned = WARM_UP.purchases + ROUNDS * LOADS.reduce((sum, { purchases }) => sum + purchases, 0);
  const buyers: string[] = [];
  while (buyers.length * productIds.length < planned) buyers.push((await hasBuyer(ctx)).key);
  const table = `bench.purchases_${name.replaceAll(" ", "_")}`;
  await prepareTurns(pool, table, productIds);
  return { name, productIds, buyers, bought: 0, table, turned: 0 };
}

let people = 0;
async function hasBuyer(ctx: Context): Promise<{ userId: string; key: string }> {
  const email = `purchaser${++people}.${Date.now()}@bench.example`;
  const userId = await createUser(ctx, { email, name: "Purchaser", plan: "enterprise" });
  const { key } = await createKeyAsOperator(ctx, { userId, name: "bench", permissions: [...permissions] });
  return { userId, key };
}

/** Buyer and product of each pgbench transaction by number; these users exist in SQL only. */
async function prepareTurns(pool: pg.Pool, table: string, productIds: string[]): Promise<void> {
  const turns = TURNS * LOADS.length * ROUNDS;
  await pool.query("set statement_timeout = 0");
  await pool.query(`drop table if exists ${table}`);
  await pool.query(
    `create table ${table} as
     with products as (
            select row_number() over () - 1 as n, id, author_id from products where id = any($1::uuid[])),
          buyers as (
            insert into users (id, email, name, created_at)
            select uuidv7(), 'turn-' || gen_random_uuid() || '@bench.example', 'Turn', now()
              from generate_series(0, $2::int / $3::int) returning id),
          numbered as (select row_number() over () - 1 as n, id from buyers)
     select (b.n * $3 + p.n)::int as n, b.id as buyer, p.id as product, p.author_id as seller
       from numbered b cross join products p`,
    [productIds, turns, productIds.length],
  );
  await pool.query(`alter table ${table} add primary key (n)`);
  await pool.query(`analyze ${table}`);
}

/** Records the statements of one purchase, without those of the fake provider. */
async function watchPurchase(
  ctx: Context,
  market: Market,
): Promise<{ replay: Replay; cost: ReturnType<typeof costOf> }> {
  const { userId } = await hasBuyer(ctx);
  const caller: Member = {
    ...{ kind: "key", keyId: "bench", userId, role: "user", plan: "enterprise", quota: null },
    permissions: new Set(permissions),
  };
  const product = market.productIds[0]!;
  let order = "";
  const asked = await askedDuring(async () => {
    const answer = await buyProduct(ctx, caller, { productId: toId("prod", product) });
    order = toUuid("ord", answer.data.orderId)!;
  });
  const { rows } = await ctx.pool.query<{ seller: string }>(
    "select seller_id as seller from orders where id = $1",
    [order],
  );
  const own = without(asked, /fake_provider/);
  const replay = replayOf(own, {
    varying: { buyer: userId, product, seller: rows[0]!.seller },
    beginning: (made) => `\\set n :first + :turn * :clients + :client_id
\\set turn :turn + 1
select buyer, product, seller, ${made.map((name) => `uuidv7() as ${name}`).join(", ")} from :table where n = :n::int \\gset`,
  });
  return { replay, cost: costOf(own) };
}

const buy = (shop: Shop, market: Market, { atOnce, purchases }: (typeof LOADS)[number]): Promise<Measured> =>
  measure(shop, { connections: atOnce, amount: purchases, lanes: lanesOf(market, atOnce, purchases) });

/** The next pairs, dealt out to the connections so that parallel ones have different products. */
function lanesOf(market: Market, atOnce: number, purchases: number): Lane[] {
  const { productIds, buyers } = market;
  const pairs = Array.from({ length: purchases }, () => {
    const turn = market.bought++;
    const productId = toId("prod", productIds[turn % productIds.length]!);
    return { productId, buyer: buyers[Math.floor(turn / productIds.length)]! };
  });
  return Array.from({ length: atOnce }, (_, lane) =>
    pairs
      .filter((_pair, at) => at % atOnce === lane)
      .map(({ productId, buyer }) => ({
        ...{ method: "POST", path: "/v1/purchases", body: JSON.stringify({ productId }) },
        headers: { authorization: `Bearer ${buyer}`, "content-type": "application/json" },
      })),
  );
}

async function turn({ connection }: Shop, replay: Replay, { market, atOnce }: Result): Promise<number> {
  const first = TURNS * market.turned++;
  const constants = { ...replay.constants, first: String(first), turn: "0", clients: String(atOnce) };
  const script = replay.script.replace(":table", market.table);
  return pgbench({ script, constants, connection, connections: atOnce, seconds: PGBENCH_SECONDS });
}

/** Verifies the result, since a wrong one may be fast. */
async function mustBeProved(pool: pg.Pool): Promise<void> {
  const { problems: differences, transactions } = await verifyLedger(openDatabase(pool));
  const problems = problemsOf(differences);
  if (problems.length > 0) throw new Error(`the ledger is wrong: ${problems.slice(0, 5).join(" ")}`);
  if (transactions === 0) throw new Error("nothing was booked");
}

function reportOf(
  results: Result[],
  isCompared: boolean,
  {
    statements,
    roundTrips,
    transactions,
    provider,
  }: ReturnType<typeof costOf> & { provider: Pick<Measured, "nodeMs" | "databaseMs"> },
): Report {
  const rows = results.map(({ market, atOnce, ours, bare }) => {
    const middle = (which: keyof Measured) => median(ours.map((result) => result[which]));
    const ratio = median(bare.map((perSecond, round) => ours[round]!.perSecond / perSecond));
    return [
      ...[
        `of ${market.name}`,
        String(atOnce),
        middle("perSecond").toFixed(0),
        ms(middle("p50")),
        ms(middle("p99")),
      ],
      ...[middle("nodeMs").toFixed(2), middle("databaseMs").toFixed(2)],
      ...(isCompared
        ? [
            median(bare).toFixed(0),
            ...comparedWithAim(ratio.toFixed(2), `≥ ${AIM_OF_PGBENCH}`, ratio >= AIM_OF_PGBENCH),
          ]
        : ["–", "–", `≥ ${AIM_OF_PGBENCH}`, "–"]),
    ];
  });
  const times = ["per second", "p50 ms", "p99 ms", "Node CPU ms", "PostgreSQL CPU ms"];
  return {
    columns: ["purchases", "at once", ...times, "pgbench", "of pgbench", "aim", "met"],
    rows,
    notes: [
      `The service sends ${statements} statements of a purchase in ${roundTrips} round trips and ${transactions} transactions, beside those of its HTTP server.`,
      isCompared
        ? "`pgbench` is the same statements with the same values, as many at once, without a service and without what the fake provider writes."
        : WITHOUT_PGBENCH,
      `${ROUNDS} rounds in turn, medians; the CPU is that of a purchase. It includes the fake provider, which runs in the service's process: alone in a process of its own it takes ${provider.nodeMs.toFixed(2)} ms of Node and ${provider.databaseMs.toFixed(2)} ms of PostgreSQL for a charge and its webhook, at ${PROVIDER_LOAD.atOnce} at once. No product is bought twice by a person, and \`ledger verify\` finds nothing wrong behind all of it.`,
    ],
  };
}
