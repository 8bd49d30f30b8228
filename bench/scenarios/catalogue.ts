import { openPool } from "@stoa/service/platform/db/database.ts";
import type pg from "pg";
import { type Delays, measureDelays } from "../delays.ts";
import type { Options } from "../options.ts";
import { deleteProducts, generateProducts, measurePublishing } from "../publishing.ts";
import { AT_ONCE, measureQueries, type QueryMeasurement } from "../query-load.ts";
import { makeKinds } from "../questions.ts";
import { megabytes, ms, type Report, toMarkdown } from "../report.ts";
import { openShop, type Shop } from "../shop.ts";
import { measureSpace, type Space } from "../space.ts";

const AIM = { p50: 10, p99: 50 };

interface OfSize {
  size: number;
  asked: QueryMeasurement[];
  space: Space;
  delays: Delays;
  perSecond: Record<string, number>;
}

/** The catalogue at several sizes: the cost of each kind of query, the delay of changes, and the speed of publishing. */
export async function measureCatalogue(options: Options): Promise<Report> {
  const sizes: OfSize[] = [];
  for (const size of options.sizes) sizes.push(await measureSize(options, size));
  return reportOf(sizes);
}

async function measureSize(options: Options, size: number): Promise<OfSize> {
  const shop = await openShop(options, size);
  const pool = openPool({ ...shop.connection, maxConnections: 1 });
  try {
    await pool.query("set statement_timeout = 0");
    return await measureShop(shop, pool, { ...options, size });
  } finally {
    await pool.end();
    await shop.end();
  }
}

async function measureShop(
  shop: Shop,
  pool: pg.Pool,
  { size, prompts, questions }: Options & { size: number },
): Promise<OfSize> {
  const asked: QueryMeasurement[] = [];
  for (const kind of await makeKinds(pool)) {
    if (!questions.test(kind.name)) continue;
    const one = await measureQueries(shop, kind);
    if (one) asked.push(one);
    console.error(`${labelOf(size)}: ${kind.name}: ${one ? timesOf(one) : "not known to this service"}`);
  }
  const space = await measureSpace(shop, pool);
  const newProducts = generateProducts(prompts, pool);
  const other = await shop.startNode();
  const { delays, offered } = await measureDelays(shop, other, newProducts);
  await other.end();
  const offers = await measurePublishing(shop, newProducts);
  await deleteProducts(pool, [...offered, ...offers.offered]);
  return { size, asked, space, delays, perSecond: offers.perSecond };
}

const labelOf = (size: number) => (size % 1e6 === 0 ? `${size / 1e6} M` : `${size / 1e3} k`);
const failuresOf = ({ alone, refused }: QueryMeasurement) => alone.failed + refused;
const timesOf = (asked: QueryMeasurement) => {
  const failures = failuresOf(asked);
  return `${ms(asked.alone.p50)} / ${ms(asked.alone.p99)}${failures > 0 ? `, ${failures} failed` : ""}`;
};
const isFastEnough = (asked: QueryMeasurement) =>
  asked.alone.p50 < AIM.p50 && asked.alone.p99 < AIM.p99 && failuresOf(asked) === 0;

function reportOf(sizes: OfSize[]): Report {
  return {
    ...growthOf(sizes),
    notes: [
      `p50 / p99 in ms, one request at a time, each different from those before it. Growth is that of p50 from the smallest shop to the largest; the aim is p50 < ${AIM.p50} ms and p99 < ${AIM.p99} ms in the largest.`,
      `With ${labelOf(sizes.at(-1)!.size)} products; on the right ${AT_ONCE} requests at once. Found is the median total of the answers that were looked at, nothing the part that was empty.`,
      toMarkdown(detailsOf(sizes.at(-1)!)),
      "From the answer of a change to the first list that shows it; two nodes on one database are asked every 5 ms.",
      toMarkdown(delaysOf(sizes)),
      "Products a second: by a POST and a publish each, or many by one POST of JSON Lines.",
      toMarkdown(offersOf(sizes)),
      "Memory after the questions, that of PostgreSQL with all its processes; and the database on the disk.",
      toMarkdown(spaceOf(sizes)),
      `The largest tables (without indexes) and indexes at ${labelOf(sizes.at(-1)!.size)}.`,
      toMarkdown(largestOf(sizes.at(-1)!)),
    ],
  };
}

const NO_NOTES = { notes: [] };

function growthOf(sizes: OfSize[]): Report {
  const largest = sizes.at(-1)!;
  return {
    columns: ["request", ...sizes.map(({ size }) => labelOf(size)), "growth", "met"],
    rows: largest.asked.map((asked) => {
      const inEach = sizes.map((one) => one.asked.find(({ name }) => name === asked.name));
      const first = inEach[0];
      return [
        asked.name,
        ...inEach.map((one) => (one ? timesOf(one) : "")),
        first ? `${(asked.alone.p50 / first.alone.p50).toFixed(1)}×` : "",
        isFastEnough(asked) ? "yes" : "**no**",
      ];
    }),
    ...NO_NOTES,
  };
}

const detailsOf = ({ asked }: OfSize): Report => ({
  columns: [
    ...["request", "p50 ms", "p95 ms", "p99 ms", "max ms", "Node CPU ms", "PostgreSQL CPU ms"],
    ...["different", "found", "nothing", `${AT_ONCE}: p50 ms`, "p99 ms", "per second"],
  ],
  rows: asked.map(({ name, alone, together, different, total, empty }) => [
    name,
    ...[ms(alone.p50), ms(alone.p95), ms(alone.p99), ms(alone.max)],
    ...[alone.nodeMs.toFixed(2), alone.databaseMs.toFixed(2), String(different)],
    ...[total === null ? "" : String(total), `${Math.round(empty * 100)} %`],
    ...[ms(together.p50), ms(together.p99), together.perSecond.toFixed(0)],
  ]),
  ...NO_NOTES,
});

const delaysOf = (sizes: OfSize[]): Report => ({
  columns: ["p50 / p99 / max ms", ...sizes.map(({ size }) => labelOf(size))],
  rows: (["published", "priced"] as const).flatMap((change) =>
    (["here", "there"] as const).map((node) => [
      `${change === "published" ? "published, among the newest" : "another price, by price"}: ${node === "here" ? "the same node" : "another node"}`,
      ...sizes.map(({ delays }) => {
        const { p50, p99, max } = delays[change][node];
        return `${ms(p50)} / ${ms(p99)} / ${ms(max)}`;
      }),
    ]),
  ),
  ...NO_NOTES,
});

const offersOf = (sizes: OfSize[]): Report => ({
  columns: ["products a second", ...sizes.map(({ size }) => labelOf(size))],
  rows: Object.keys(sizes[0]!.perSecond).map((way) => [
    way,
    ...sizes.map(({ perSecond }) => perSecond[way]!.toFixed(0)),
  ]),
  ...NO_NOTES,
});

function spaceOf(sizes: OfSize[]): Report {
  const row = (what: string, bytes: (space: Space) => number) => [
    what,
    ...sizes.map(({ space }) => `${megabytes(bytes(space))} MB`),
  ];
  return {
    columns: ["what", ...sizes.map(({ size }) => labelOf(size))],
    rows: [
      row("Node (RSS)", ({ nodeBytes }) => nodeBytes),
      row("– of that private", ({ nodePrivateBytes }) => nodePrivateBytes),
      row("PostgreSQL", ({ postgresBytes }) => postgresBytes),
      row("database on the disk", ({ databaseBytes }) => databaseBytes),
    ],
    ...NO_NOTES,
  };
}

const largestOf = ({ space }: OfSize): Report => ({
  columns: ["table or index", "size"],
  rows: space.largest.map(({ name, bytes }) => [name, `${megabytes(bytes)} MB`]),
  ...NO_NOTES,
});
