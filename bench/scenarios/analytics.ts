import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createKeyAsOperator } from "@stoa/service/accounts/api-keys/keys.ts";
import { recordMovement, rollUpSales, type SoldOrder } from "@stoa/service/commerce/analytics/sales-sums.ts";
import type { Context } from "@stoa/service/core/context.ts";
import { toId } from "@stoa/service/core/ids.ts";
import { startEmbedded } from "@stoa/service/platform/db/embedded.ts";
import { filledDataFolder } from "../data-folder.ts";
import { fillDatabase, rebuildAnalytics, secondsOf } from "../ledger-data.ts";
import { runLoad } from "../load.ts";
import type { Options } from "../options.ts";
import { atEnd } from "../processes.ts";
import { comparedWithAim, ms, type Report } from "../report.ts";
import { PRODUCTS_OF_ONE, productId, SELLERS, sellerId, soldMarket } from "../sales.ts";
import { startService, WITHOUT_LIMITS, withBase } from "../shop.ts";

const WARM_UP = 5;
const REQUESTS = 100;
/** Of more orders than a million: their slowest questions take ten seconds each. */
const REQUESTS_OF_MANY = 20;
const MOVEMENTS = 10_000;
/** The time between two sales: a quarter of an hour, so that no two share a sum. */
const SPREAD_MS = 900_000;
const DAY_MS = 86_400_000;
const MONTH = 30;
const YEAR = 365;
const FIVE_YEARS = 1_825;
const AIM_MS = 30;
const AIM_CUSTOMERS_MS = 500;
/** Of a click in the web client. */
const AIM_CLICK_MS = 200;

interface Question {
  name: string;
  path: string;
  /** The length of the range. */
  days: number;
  more?: string;
  /** For the seller's best-selling product. */
  ofProduct?: true;
  aimMs?: number;
}

/** Analytics of a month and of five years, in a market with five years of sales. */
export async function measureAnalytics(options: Options): Promise<Report> {
  const { orders, profile } = options;
  const { dataDir, note } = await filledDataFolder(options, `orders-${orders}`, MAKERS, (dataDir) =>
    fill(dataDir, orders),
  );
  const database = await startEmbedded(dataDir);
  atEnd(() => database.stop());
  const { sellers, cost } = await withBase(dataDir, { target: database.connection }, ({ ctx }) =>
    prepare(ctx),
  );
  const plansFile = join(dataDir, "plans.json");
  await writeFile(plansFile, JSON.stringify(WITHOUT_LIMITS));
  const { origin } = await startService(profile, { STOA_DATA_DIR: dataDir, STOA_PLANS_FILE: plansFile });
  const rows: string[][] = [];
  const amount = orders > 1_000_000 ? REQUESTS_OF_MANY : REQUESTS;
  for (const question of questionsOf()) rows.push(await rowOf({ origin, amount }, question, sellers));
  return {
    columns: ["what", "a tenth of all: p50 ms", "p99 ms", "aim", "met", "another seller: p50 ms", "p99 ms"],
    rows,
    notes: [
      `${orders.toLocaleString("en")} orders of five years, ${SELLERS.toLocaleString("en")} sellers, one of whom has a tenth of all and 200 products; ${note} Each question is asked ${amount} times over HTTP, one request at a time, and never about the same days.`,
      `An order costs ${ms(cost.record)} ms to note and ${ms(cost.fold)} ms to fold into the sums behind it.`,
    ],
  };
}

const MAKERS = ["ledger-data.ts", "sales.ts"].map((name) => new URL(`../${name}`, import.meta.url));

/** Orders, ledger entries and rolled-up sums. */
async function fill(dataDir: string, orders: number): Promise<string> {
  const filled = await fillDatabase(dataDir, soldMarket(orders));
  const [rebuilt] = await secondsOf(1, () => rebuildAnalytics(dataDir));
  return `they were written in ${filled.toFixed(0)} s with the guards off, and \`stoa-server analytics rebuild\` took ${rebuilt!.toFixed(0)} s for all of them.`;
}

interface Seller {
  id: string;
  key: string;
  /** The public id. */
  product: string;
}

async function prepare(ctx: Context) {
  const sellers = [await enter(ctx, 1, 1), await enter(ctx, 2, PRODUCTS_OF_ONE + 1)];
  const cost = await costOf(
    ctx,
    await uuidOf(ctx, sellerId(3)),
    await uuidOf(ctx, productId(PRODUCTS_OF_ONE + 2)),
  );
  await vacuum(ctx);
  return { sellers, cost };
}

/** Without the limit of a statement's time: with ten million orders it takes minutes. */
async function vacuum({ pool }: Context): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("set statement_timeout = 0");
    await client.query("vacuum (analyze)");
  } finally {
    client.release(true);
  }
}

async function enter(ctx: Context, nth: number, product: number): Promise<Seller> {
  const id = await uuidOf(ctx, sellerId(nth));
  await ctx.pool.query("update users set plan = 'enterprise' where id = $1", [id]);
  const { key } = await createKeyAsOperator(ctx, {
    userId: id,
    name: "bench",
    permissions: ["analytics:read"],
  });
  return { id, key, product: toId("prod", await uuidOf(ctx, productId(product))) };
}

async function uuidOf({ pool }: Context, expression: string): Promise<string> {
  const { rows } = await pool.query<{ id: string }>(`select ${expression} as id`);
  return rows[0]!.id;
}

/** Milliseconds per simulated sale, spread over a seller's day, so that they roll up into as many sums as real sales. */
async function costOf(ctx: Context, sellerId: string, productId: string) {
  const sold: SoldOrder = { sellerId, productId, referrerId: null, currency: "USD", discountMinor: 0n };
  const entries = [{ account: "seller" as const, ownerId: sellerId, amountMinor: 900n }];
  const [recording] = await secondsOf(1, () =>
    ctx.db.transaction().execute(async (tx) => {
      for (let n = 0; n < MOVEMENTS; n++)
        await recordMovement(ctx, tx, sold, {
          kind: "sale",
          entries,
          at: new Date(Date.now() - n * SPREAD_MS),
        });
    }),
  );
  const [folding] = await secondsOf(1, () => rollUpSales(ctx));
  const each = (seconds: number) => (seconds * 1000) / MOVEMENTS;
  return { record: each(recording!), fold: each(folding!) };
}

function questionsOf(): Question[] {
  const products = "/v1/analytics/products";
  const revenue = "/v1/analytics/revenue";
  const customers = "/v1/analytics/customers";
  const funnel = "/v1/analytics/funnel";
  const entries = "/v1/analytics/entries";
  const years = { days: FIVE_YEARS, aimMs: AIM_MS };
  return [
    { name: "products, a month", path: products, days: MONTH, aimMs: AIM_MS },
    { name: "products, five years by day", path: products, ...years },
    {
      name: "products, five years by month in New York",
      path: products,
      ...years,
      more: "interval=month&timezone=America/New_York",
    },
    {
      name: "products, five years by day in New York",
      path: products,
      ...years,
      more: "timezone=America/New_York",
    },
    { name: "products, five years of one product", path: products, ...years, ofProduct: true },
    { name: "revenue, a month", path: revenue, days: MONTH, aimMs: AIM_MS },
    { name: "revenue, five years by day", path: revenue, ...years },
    ...["product", "category", "referral", "currency"].map((key) => ({
      name: `revenue, five years by month and ${key}`,
      path: revenue,
      ...years,
      more: `interval=month&groupBy=${key}`,
    })),
    { name: "customers, a month", path: customers, days: MONTH, aimMs: AIM_CUSTOMERS_MS },
    { name: "customers, five years by day", path: customers, days: FIVE_YEARS, aimMs: AIM_CUSTOMERS_MS },
    {
      name: "customers, five years by month",
      path: customers,
      days: FIVE_YEARS,
      aimMs: AIM_CUSTOMERS_MS,
      more: "interval=month",
    },
    { name: "funnel, a month", path: funnel, days: MONTH, aimMs: AIM_CLICK_MS },
    { name: "funnel, a year", path: funnel, days: YEAR, aimMs: AIM_CLICK_MS },
    { name: "funnel, five years", path: funnel, days: FIVE_YEARS },
    { name: "entries of a month", path: entries, days: MONTH, aimMs: AIM_CLICK_MS },
    { name: "entries of a year", path: entries, days: YEAR, aimMs: AIM_CLICK_MS },
    { name: "entries of five years", path: entries, days: FIVE_YEARS },
    { name: "products as CSV, five years", path: `${products}/export`, days: FIVE_YEARS },
    { name: "customers as CSV, five years", path: `${customers}/export`, days: FIVE_YEARS },
  ];
}

interface Asking {
  origin: string;
  /** Of the measured requests of each question. */
  amount: number;
}

async function rowOf(asking: Asking, question: Question, sellers: Seller[]): Promise<string[]> {
  const large = await timesOf(asking, question, sellers[0]!);
  const small = await timesOf(asking, question, sellers[1]!);
  const { aimMs } = question;
  const judged = aimMs
    ? comparedWithAim(ms(large.p50), `p50 < ${aimMs} ms`, large.p50 < aimMs)
    : [ms(large.p50), "", ""];
  return [question.name, judged[0]!, ms(large.p99), judged[1]!, judged[2]!, ms(small.p50), ms(small.p99)];
}

/** Each request ends on another day, so that neither answers nor plans are cached. */
async function timesOf(
  { origin, amount }: Asking,
  { path, days, more = "", ofProduct }: Question,
  { key, product }: Seller,
) {
  const headers = { authorization: `Bearer ${key}` };
  const only = ofProduct ? `&productId=${product}` : "";
  const lane = Array.from({ length: WARM_UP + amount }, (_, ago) => ({
    method: "GET",
    path: `${path}?startDate=${dayBefore(days + ago)}&endDate=${dayBefore(ago)}${more && `&${more}`}${only}`,
    headers,
  }));
  const ask = (requests: typeof lane) =>
    runLoad({ origin, amount: requests.length, connections: 1, lanes: [requests] });
  await ask(lane.slice(amount));
  return ask(lane.slice(0, amount));
}

const dayBefore = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);
