import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import fc from "fast-check";
import { createProduct } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { daysAfter } from "../../core/dates.ts";
import { toUuid } from "../../core/ids.ts";
import { inPipelinedSnapshot } from "../../platform/db/pipeline.ts";
import { saleSums } from "../ledger/sales-sums.ts";
import { type DateRange, type DateRangeQuery, parseDateRange, rangeBounds } from "./date-range.ts";
import { grainOfTotals, rankRange, type SumQuery, type Sums, sumRange } from "./range-sums-queries.ts";
import { rollUpSales } from "./sales-sums.ts";

let market: Market;
before(async () => {
  market = await openMarket();
  market.skipLedgerCheck();
});
after(() => market.close());

/** Zones with clock changes at night, at and over midnight, by 30 minutes and 2 hours; one that skipped a day; some without changes. */
const zones = [
  ...["UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"],
  ...[
    "America/Sao_Paulo",
    "America/Havana",
    "Atlantic/Azores",
    "Asia/Beirut",
    "Antarctica/Troll",
    "Pacific/Kiritimati",
  ],
];
const zone = fc.constantFrom(...zones);
const interval = fc.constantFrom<DateRangeQuery["interval"]>("day", "week", "month");
/** Any day, often near a clock change. */
const firstDay = fc.oneof(
  fc.date({ min: new Date("2005-01-01"), max: new Date("2026-12-31"), noInvalidDate: true }),
  fc
    .constantFrom("2011-12-20", "2018-10-28", "2018-02-10", "2025-03-05", "2025-10-20", "2024-03-25")
    .map((day) => new Date(day)),
);
const isoDay = (at: Date) => at.toISOString().slice(0, 10);

const QUARTER_MS = 15 * 60_000;

/** The local date of a moment, computed without PostgreSQL. */
function localDays(timezone: string) {
  const format = new Intl.DateTimeFormat("sv-SE", { timeZone: timezone, dateStyle: "short" });
  return (at: Date) => format.format(at);
}

/** The first day of the week or month of a day, at least the start of the range. */
function bucketOf(day: string, by: DateRangeQuery["interval"], startDate: string): string {
  const at = new Date(`${day}T00:00:00Z`);
  if (by === "week") at.setUTCDate(at.getUTCDate() - ((at.getUTCDay() + 6) % 7));
  if (by === "month") at.setUTCDate(1);
  const first = by === "day" ? day : isoDay(at);
  return first < startDate ? startDate : first;
}

suite("parseDateRange", () => {
  test("any zone: a day begins when local clocks first show its date, a week on Monday", async () => {
    const property = fc.asyncProperty(
      zone,
      interval,
      firstDay,
      fc.integer({ min: 0, max: 45 }),
      async (timezone, by, first, days) => {
        const [startDate, endDate] = [isoDay(first), isoDay(daysAfter(first, days))];
        const span = await parseDateRange(market.service.ctx, {
          period: "day",
          interval: by,
          timezone,
          startDate,
          endDate,
        });
        const localDay = localDays(timezone);
        const firstShown = (day: string) => {
          let at = daysAfter(new Date(`${day}T00:00:00Z`), -1).getTime();
          while (localDay(new Date(at)) < day) at += QUARTER_MS;
          return new Date(at);
        };
        const all = Array.from({ length: days + 1 }, (_, day) => isoDay(daysAfter(first, day)));
        const dates = [...new Set(all.map((day) => bucketOf(day, by, startDate)))];
        assert.deepEqual(span.dates, dates);
        assert.deepEqual(span.edges, [...dates, isoDay(daysAfter(first, days + 1))].map(firstShown));
      },
    );
    await fc.assert(property, { numRuns: runs(100) });
  });

  const setBack: Record<string, [zone: string, day: string, begins: string]> = {
    "two hours, at midnight": ["Antarctica/Vostok", "2023-12-18", "2023-12-17T17:00:00.000Z"],
    "two hours, over midnight": ["America/St_Johns", "1988-10-30", "1988-10-30T01:30:00.000Z"],
    "three hours, at midnight": ["Antarctica/Casey", "2020-03-08", "2020-03-07T13:00:00.000Z"],
    "three hours, over midnight": ["Antarctica/Casey", "2010-03-05", "2010-03-04T13:00:00.000Z"],
  };
  for (const [how, [timezone, day, begins]] of Object.entries(setBack))
    test(`clocks set back by ${how}: the day begins when clocks first show it`, async () => {
      const { edges } = await spanOn(day, timezone);
      assert.equal(edges[0]!.toISOString(), begins);
    });

  test("CET, MET, EET and WET: follow summer time", async () => {
    for (const [timezone, begins] of [
      ["CET", "2026-06-14T22:00:00.000Z"],
      ["met", "2026-06-14T22:00:00.000Z"],
      ["EET", "2026-06-14T21:00:00.000Z"],
      ["WET", "2026-06-14T23:00:00.000Z"],
    ] as const) {
      const span = await spanOn("2026-06-15", timezone);
      assert.deepEqual([span.timezone, span.edges[0]!.toISOString()], [timezone, begins]);
    }
  });
});

const spanOf = (days: Pick<DateRange, "timezone" | "startDate" | "endDate">) =>
  parseDateRange(market.service.ctx, { period: "day", interval: "day", ...days });
const spanOn = (day: string, timezone: string) => spanOf({ timezone, startDate: day, endDate: day });

suite("sumRange", () => {
  const [me, other] = ["01900000-0000-7000-8000-000000000001", "01900000-0000-7000-8000-000000000002"];
  const products = [1, 2, 3].map((end) => `01900000-0000-7000-9000-00000000000${end}`);
  const referrers = [null, "01900000-0000-7000-a000-000000000001", "01900000-0000-7000-a000-000000000002"];

  // Random movements have negative refunds, which no response may have.
  after(() => market.query("truncate sales_sums, sales_movements"));

  interface Movement extends Sums {
    sellerId: string;
    productId: string;
    referrerId: string | null;
    currency: string;
    at: Date;
  }

  const minor = fc.bigInt({ min: -999n, max: 9_999n });
  const movement = fc
    .record({
      sellerId: fc.constantFrom(me!, me!, me!, other!),
      productId: fc.constantFrom(...products),
      referrerId: fc.constantFrom(...referrers),
      currency: fc.constantFrom("USD", "EUR"),
      /** Around the clock changes of November 2025, often at a quarter of an hour; some in the years around it. */
      at: fc.oneof(
        fc.integer({ min: 0, max: 60 * 96 }).map((quarters) => quarters * QUARTER_MS),
        fc.integer({ min: 0, max: 60 * 86_400_000 }),
        fc.integer({ min: -1_000 * 96, max: 400 * 96 }).map((quarters) => quarters * QUARTER_MS),
      ),
      ...{
        sales: fc.bigInt({ min: 0n, max: 1n }),
        gross: minor,
        discounts: minor,
        refunds: minor,
        disputes: minor,
      },
      ...{ tax: minor, fees: minor, commissions: minor },
    })
    .map(
      (values): Movement => ({
        ...values,
        at: new Date(Date.parse("2025-10-05") + values.at),
        net: values.gross - values.refunds - values.disputes - values.fees - values.commissions,
      }),
    );

  const write = (moved: Movement[]) => {
    const rows = moved.map(({ sellerId, productId, referrerId, currency, at, ...sums }) => ({
      ...{ seller_id: sellerId, product_id: productId, referrer_id: referrerId, currency, moved_at: at },
      ...Object.fromEntries(saleSums.map((name) => [name, String(sums[name])])),
    }));
    return market.query(
      `insert into sales_movements
       select (json_populate_recordset(null::sales_movements, json_agg(jsonb_set(row, '{id}', to_jsonb(gen_random_uuid())))::json)).*
         from jsonb_array_elements($1::jsonb) as row`,
      [JSON.stringify(rows)],
    );
  };

  const forScope = { all: "sellerId", product: "productId", referrer: "referrerId" } as const;

  /** Adds up the movements without the sums. */
  function addUp(
    moved: Movement[],
    scope: keyof typeof forScope,
    { dates, timezone, by }: { dates: string[]; timezone: string; by: DateRangeQuery["interval"] },
  ) {
    const localDay = localDays(timezone);
    const sums = new Map<string, Sums>();
    for (const one of moved) {
      const bucket = dates.indexOf(bucketOf(localDay(one.at), by, dates[0]!));
      const ofId = one[forScope[scope]];
      if (one.sellerId !== me || ofId === null || bucket < 0) continue;
      addTo(sums, `${one.currency} ${ofId} ${bucket}`, one);
    }
    return sums;
  }

  function addTo(sums: Map<string, Sums>, key: string, one: Movement) {
    const previous = sums.get(key);
    sums.set(
      key,
      Object.fromEntries(saleSums.map((name) => [name, (previous?.[name] ?? 0n) + one[name]])) as Sums,
    );
  }

  /** Inserts the movements, the first of them rolled up, and parses a range of local days. */
  async function prepare(moved: Movement[], rolledUpTo: number, { timezone, interval, start, days }: Days) {
    await market.query("truncate sales_sums, sales_movements");
    await write(moved.slice(0, rolledUpTo));
    await rollUpSales(market.service.ctx, 7);
    await write(moved.slice(rolledUpTo));
    const first = daysAfter(new Date("2025-10-08"), start);
    const [startDate, endDate] = [isoDay(first), isoDay(daysAfter(first, days))];
    const span = await parseDateRange(market.service.ctx, {
      ...{ period: "day", interval, timezone, startDate, endDate },
    });
    const localDay = localDays(timezone);
    return { span, inSpan: moved.filter(({ at }) => localDay(at) >= startDate && localDay(at) <= endDate) };
  }
  interface Days {
    timezone: string;
    interval: DateRangeQuery["interval"];
    start: number;
    days: number;
  }
  const weeks = { start: fc.integer({ min: 0, max: 50 }), days: fc.integer({ min: 0, max: 40 }) };
  const years = { start: fc.integer({ min: -1_000, max: 0 }), days: fc.integer({ min: 300, max: 1_400 }) };
  const anyDays = fc.oneof(
    ...[weeks, weeks, years].map((range) => fc.record({ timezone: zone, interval, ...range })),
  );
  const anyMovements = fc.array(movement, { minLength: 1, maxLength: 25 });
  /** Several products sold, so that the limit leaves some out. */
  const manyMovements = fc.array(movement, { minLength: 20, maxLength: 40 });

  const isSomething = (sums: Sums) => saleSums.some((name) => sums[name] !== 0n);

  test("any movements, rolled up or not: the sums equal those of the movements in the range", async () => {
    const property = fc.asyncProperty(
      anyMovements,
      fc.nat(25),
      anyDays,
      fc.constantFrom("all", "product", "referrer"),
      fc.constantFrom("day", "month", "year"),
      async (moved, rolledUpTo, days, scope, by) => {
        const { span, inSpan } = await prepare(moved, rolledUpTo, days);
        await mustEqual(inSpan, span, scope, by);
      },
    );
    await fc.assert(property, { numRuns: runs(60) });
  });

  async function mustEqual(
    moved: Movement[],
    { dates, timezone, edges, interval }: DateRange,
    scope: SumQuery["scope"],
    by: SumQuery["by"],
  ): Promise<void> {
    const query = { sellerId: me!, scope, currencies: ["USD", "EUR"], edges, by };
    const rows = await sumRange(market.service.ctx.db, query, saleSums);
    const found = rows.map(
      ({ currency, ofId, bucket, ...sums }) => [`${currency} ${ofId} ${bucket}`, sums] as const,
    );
    const nonZeroSums = (sums: Iterable<readonly [string, Sums]>) =>
      [...sums].filter(([, sum]) => isSomething(sum)).sort();
    assert.deepEqual(nonZeroSums(found), nonZeroSums(addUp(moved, scope, { dates, timezone, by: interval })));
  }

  /** Distinct sums at each of the moments, of one product, rolled up. */
  async function sellAt(moments: Date[]): Promise<Movement[]> {
    await market.query("truncate sales_sums, sales_movements");
    const moved = moments.map((at, nth): Movement => {
      const zeros = Object.fromEntries(saleSums.map((name) => [name, 0n])) as Sums;
      const sums = { ...zeros, sales: 1n, gross: BigInt(nth * nth), net: BigInt(nth * nth) };
      return { ...sums, sellerId: me!, productId: products[0]!, referrerId: null, currency: "USD", at };
    });
    await write(moved);
    await rollUpSales(market.service.ctx);
    return moved;
  }

  test("each quarter of an hour around the clock changes, by day: the sums equal those of each local day", async () => {
    const [first, quarters] = [Date.parse("2025-10-24"), 12 * 96];
    const days = { startDate: "2025-10-26", endDate: "2025-11-03" };
    const inRange = (moved: Movement[], timezone: string) => {
      const localDay = localDays(timezone);
      return moved.filter(({ at }) => localDay(at) >= days.startDate && localDay(at) <= days.endDate);
    };
    const moved = await sellAt(
      Array.from({ length: quarters }, (_, nth) => new Date(first + nth * QUARTER_MS)),
    );
    for (const timezone of zones)
      for (const scope of ["all", "product"] as const)
        await mustEqual(inRange(moved, timezone), await spanOf({ timezone, ...days }), scope, "day");
  });

  test("each first and last day of a month in years, as one range: the sums equal those of its days", async () => {
    const moved = await sellAt(
      Array.from({ length: 48 }, (_, month) => [
        new Date(Date.UTC(2023, month, 1, 3)),
        new Date(Date.UTC(2023, month + 1, 0, 22)),
      ]).flat(),
    );
    for (const timezone of ["UTC", "America/New_York", "Asia/Kathmandu"])
      for (const [startDate, endDate] of [
        ["2023-01-01", "2026-12-31"],
        ["2023-05-01", "2026-04-30"],
        ["2023-09-30", "2025-08-02"],
        ["2024-12-31", "2026-01-01"],
      ] as const) {
        const edges = rangeBounds(await spanOf({ timezone, startDate, endDate }));
        const query = { sellerId: me!, scope: "all" as const, currencies: ["USD"], edges };
        const localDay = localDays(timezone);
        const due = moved.filter(({ at }) => localDay(at) >= startDate && localDay(at) <= endDate);
        for (const by of ["day", "month", "year"] as const) {
          const rows = await sumRange(market.service.ctx.db, { ...query, by }, ["sales", "gross"]);
          const found = rows.map(({ sales, gross }) => [sales, gross]);
          const total = due.reduce((sum, { gross }) => sum + gross, 0n);
          assert.deepEqual(found, [[BigInt(due.length), total]], `${timezone} ${startDate} by ${by}`);
        }
      }
  });

  test("rankRange, any movements: those that moved, by gross sums, then by sales, then by id", async () => {
    const property = fc.asyncProperty(
      manyMovements,
      fc.nat(25),
      anyDays,
      fc.constantFrom("product", "product", "referrer"),
      fc.integer({ min: 1, max: 3 }),
      async (moved, rolledUpTo, days, scope, limit) => {
        const { span, inSpan } = await prepare(moved, rolledUpTo, days);
        const query = {
          sellerId: me!,
          scope,
          currency: "USD",
          edges: rangeBounds(span),
          by: grainOfTotals(rangeBounds(span)),
          limit,
        } as const;
        const found = await inPipelinedSnapshot(market.service.ctx.pool, (tx) =>
          rankRange(tx, query, saleSums),
        );
        const due = new Map<string, Sums>();
        for (const one of inSpan) {
          const ofId = one[forScope[scope]];
          if (one.sellerId === me && one.currency === "USD" && ofId !== null) addTo(due, ofId, one);
        }
        const ranked = [...due]
          .filter(([, sums]) => isSomething(sums))
          .sort(
            ([a, left], [b, right]) =>
              Number(right.gross - left.gross) || Number(right.sales - left.sales) || (a < b ? -1 : 1),
          )
          .slice(0, limit);
        assert.deepEqual(
          found.map(({ ofId, ...sums }) => [ofId, sums]),
          ranked,
        );
      },
    );
    await fc.assert(property, { numRuns: runs(60) });
  });
});

const totals: [from: string, until: string, grain: "month" | "year"][] = [
  ["2026-03-01", "2026-04-01", "month"],
  ["2025-07-01", "2026-07-01", "month"],
  ["2025-12-01", "2026-12-01", "year"],
  ["2026-01-01", "2027-01-01", "year"],
  ["2021-07-01", "2026-07-01", "year"],
];
for (const [from, until, grain] of totals)
  test(`grainOfTotals, from ${from} until ${until}: ${grain}, which needs fewer sums`, () => {
    assert.equal(grainOfTotals([new Date(from), new Date(until)]), grain);
  });

test("sums of more than 15 digits: returned as the nearest JSON number", async () => {
  const seller = await market.createUser({ role: "seller" });
  const productId = toUuid("prod", await createProduct(seller))!;
  for (let sale = 0; sale < 3; sale++)
    await market.query(
      `insert into sales_movements (id, seller_id, product_id, currency, moved_at, sales, gross, tax, fees, net)
       values (gen_random_uuid(), $1, $2, 'USD', $3, 1, 999999999999999, 5, 99999999999999, 900000000000000)`,
      [seller.userId, productId, market.clock.now],
    );
  const admin = await market.createSession((await market.createUser({ role: "admin" })).userId, {
    secondFactor: true,
  });
  for (const rollUp of [() => {}, () => rollUpSales(market.service.ctx)]) {
    await rollUp();
    const { summary, breakdown, timeline } = await dataOf(seller, "/v1/analytics/revenue");
    assert.deepEqual(
      [summary.grossRevenue, summary.avgOrderValue, summary.tax, breakdown[0].grossRevenue],
      [29999999999999.97, 9999999999999.99, 0.15, 29999999999999.97],
    );
    assert.equal(timeline.at(-1).grossRevenue, 29999999999999.97);
    const products = await dataOf(seller, "/v1/analytics/products");
    assert.deepEqual(
      [products.summary.totalRevenue, products.topProducts[0].revenue, products.timeline.at(-1).revenue],
      [29999999999999.97, 29999999999999.97, 29999999999999.97],
    );
    const { currencies } = await dataOf(admin, "/v1/admin/stats");
    const dollars = currencies.find(({ currency }: { currency: string }) => currency === "USD");
    assert.equal(dollars.topSellers[0].grossRevenue, 29999999999999.97);
  }
});

test("sums beyond the safe integers: rows of the timeline are the nearest JSON numbers", async () => {
  const seller = await market.createUser({ role: "seller" });
  const productId = toUuid("prod", await createProduct(seller))!;
  // An odd sum past 2^53 is no double itself.
  for (const gross of [...Array<string>(10).fill("999999999999999"), "1"])
    await market.query(
      `insert into sales_movements (id, seller_id, product_id, currency, moved_at, sales, gross, net)
       values (gen_random_uuid(), $1, $2, 'USD', $3, 1, $4::bigint, $4::bigint)`,
      [seller.userId, productId, market.clock.now, gross],
    );
  const { timeline } = await dataOf(seller, "/v1/analytics/revenue");
  assert.deepEqual([timeline.at(-1).grossRevenue, timeline.at(-1).sales], [99999999999999.91, 11]);
});

async function dataOf(reader: Client, path: string) {
  const reply = await reader.get(path);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
}
