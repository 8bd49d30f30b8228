import type { AnalyticsFunnel, ProductAnalytics, RevenueAnalytics } from "@stoa/sdk";
import { keepPreviousData, type QueryClient, queryOptions } from "@tanstack/react-query";
import { stoa } from "../api.ts";
import { type DaySpan, daysAfter, isDay, lengthOf, monthsOf, spanBefore, todayIn } from "../lib/day-span.ts";
import { pageNumber } from "../routes/search-params.ts";

export const PRESETS = { "7d": 7, "30d": 30, "90d": 90, "12m": 365 } as const;
export type Preset = keyof typeof PRESETS;
const DEFAULT_PRESET: Preset = "30d";

export const GROUPS = ["product", "category", "referral", "currency"] as const;
export type Group = (typeof GROUPS)[number];
/** The figures that have a line over time. */
export const LINES = ["netRevenue", "sales", "views", "refunds"] as const;
export type Line = (typeof LINES)[number];
const CHARTS = ["line", "groups", "funnel"] as const;
/** A chart that can show its table instead. */
export type ChartName = (typeof CHARTS)[number];
export const INTERVALS = ["day", "week", "month"] as const;
export type Interval = (typeof INTERVALS)[number];
export const FIGURES = [
  "netRevenue",
  "grossRevenue",
  "refunds",
  "disputes",
  "platformFees",
  "referralCommissions",
  "tax",
] as const;
export type Figure = (typeof FIGURES)[number];

/** Which days, and how amounts of them are read. */
export interface SpanSearch {
  preset?: Preset;
  /** An own span, in place of the preset. */
  from?: string;
  to?: string;
  /** Default: the time zone of the browser. */
  zone?: string;
  /** Default: the currency of most sales. */
  currency?: string;
  /** The id of one product. Default: all of them. */
  product?: string;
}

/** The state of the page. All of it is in the address. */
export interface AnalyticsSearch extends SpanSearch {
  interval?: Interval;
  compare?: "none";
  line?: Line;
  group?: Group;
  table?: ChartName;
}

export interface EntriesSearch extends SpanSearch {
  figure?: Figure;
  page?: number;
}

type Given = Record<string, unknown>;

const choice = <N extends string, V extends string>(given: Given, name: N, values: readonly V[], none?: V) =>
  values.includes(given[name] as V) && given[name] !== none
    ? ({ [name]: given[name] } as { [n in N]?: V })
    : {};

function parseSpanSearch(given: Given): SpanSearch {
  const { from, to, zone, currency, product } = given;
  const isOwn = isDay(from) && isDay(to);
  return {
    ...(isOwn ? { from, to } : choice(given, "preset", Object.keys(PRESETS) as Preset[], DEFAULT_PRESET)),
    ...(typeof zone === "string" && isZone(zone) && { zone }),
    ...(typeof currency === "string" && /^[A-Z]{3}$/.test(currency) && { currency }),
    ...(typeof product === "string" && product !== "" && { product: product.slice(0, 100) }),
  };
}

export const parseAnalyticsSearch = (given: Given): AnalyticsSearch => ({
  ...parseSpanSearch(given),
  ...choice(given, "interval", INTERVALS),
  ...choice(given, "compare", ["none"]),
  ...choice(given, "line", LINES, "netRevenue"),
  ...choice(given, "group", GROUPS, "product"),
  ...choice(given, "table", CHARTS),
});

export const parseEntriesSearch = (given: Given): EntriesSearch => ({
  ...parseSpanSearch(given),
  ...choice(given, "figure", FIGURES, "netRevenue"),
  ...pageNumber(given),
});

function isZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }) !== undefined;
  } catch {
    return false;
  }
}

export const zoneOf = ({ zone }: SpanSearch): string =>
  zone ?? new Intl.DateTimeFormat().resolvedOptions().timeZone;

export const presetOf = ({ preset, from }: SpanSearch): Preset | null =>
  from === undefined ? (preset ?? DEFAULT_PRESET) : null;

export function spanOf(search: SpanSearch): DaySpan {
  const { from, to } = search;
  if (from !== undefined && to !== undefined) return { from, to };
  const today = todayIn(zoneOf(search));
  return { from: daysAfter(today, 1 - PRESETS[presetOf(search) ?? DEFAULT_PRESET]), to: today };
}

/** More rows than these are longer than a screen is wide. */
const MAX_DAYS = 92;
const MAX_WEEKS_OF_DAYS = 731;

export function intervalOf(search: AnalyticsSearch): Interval {
  if (search.interval !== undefined) return search.interval;
  const days = lengthOf(spanOf(search));
  if (days <= MAX_DAYS) return "day";
  return days <= MAX_WEEKS_OF_DAYS ? "week" : "month";
}

/** What every request about some days has. */
export interface SpanQuery {
  startDate: string;
  endDate: string;
  timezone: string;
  currency: string | undefined;
  productId: string | undefined;
}

export const spanQuery = (search: SpanSearch, { from, to } = spanOf(search)): SpanQuery => ({
  startDate: from,
  endDate: to,
  timezone: zoneOf(search),
  currency: search.currency,
  productId: search.product,
});

/** Without what is not given, for an example as code. */
export function givenQuery(search: SpanSearch) {
  const { currency, productId, ...days } = spanQuery(search);
  return { ...days, ...(currency && { currency }), ...(productId && { productId }) };
}

const readRevenue = (client: QueryClient, span: SpanQuery, interval: Interval, groupBy: Group) =>
  client.fetchQuery({
    queryKey: ["analytics", "revenue", span, interval, groupBy],
    queryFn: async ({ signal }) => await stoa.analytics.revenue({ ...span, interval, groupBy }, { signal }),
  });

const readViews = (client: QueryClient, span: SpanQuery, interval: Interval) =>
  client.fetchQuery({
    queryKey: ["analytics", "products", span, interval],
    queryFn: async ({ signal }) => await stoa.analytics.products({ ...span, interval }, { signal }),
  });

const readFunnel = (client: QueryClient, { currency: _, ...span }: SpanQuery) =>
  client.fetchQuery({
    queryKey: ["analytics", "funnel", span],
    queryFn: async ({ signal }) => await stoa.analytics.funnel(span, { signal }),
  });

/** What the page shows of one span. */
export interface SpanReport {
  span: DaySpan;
  revenue: RevenueAnalytics;
  funnel: AnalyticsFunnel;
  /** null: the line of views is not shown. */
  views: ProductAnalytics | null;
}

export interface Report extends SpanReport {
  interval: Interval;
  group: Group;
  line: Line;
  /** null: not compared. */
  before: SpanReport | null;
}

/** All of a view in one answer, so that figures of two spans never stand beside each other while one of them loads. */
export function reportQuery(search: AnalyticsSearch) {
  const { line = "netRevenue", group = "product", compare } = search;
  const interval = intervalOf(search);
  const span = spanOf(search);
  const readSpan = async (client: QueryClient, of: DaySpan, groupBy: Group): Promise<SpanReport> => {
    const query = spanQuery(search, of);
    const [revenue, funnel, views] = await Promise.all([
      readRevenue(client, query, interval, groupBy),
      readFunnel(client, query),
      line === "views" ? readViews(client, query, interval) : null,
    ]);
    return { span: of, revenue, funnel, views };
  };
  return queryOptions({
    queryKey: ["analytics", "report", spanQuery(search), interval, group, line, compare],
    queryFn: async ({ client }): Promise<Report> => {
      const [now, before] = await Promise.all([
        readSpan(client, span, group),
        // Its groups are not shown, so that another grouping does not ask again.
        compare === "none" ? null : readSpan(client, spanBefore(span), "currency"),
      ]);
      return { ...now, before, interval, group, line };
    },
    placeholderData: keepPreviousData,
  });
}

export const COHORT_MONTHS = 6;

/** From the first day of the month five months before the last day. */
function startOfCohorts(endDate: string): string {
  let month = `${endDate.slice(0, "2026-11".length)}-01`;
  for (let back = 1; back < COHORT_MONTHS; back++)
    month = `${daysAfter(month, -1).slice(0, "2026-11".length)}-01`;
  return month;
}

/** Of all products: an account buys a product once, so that nobody returns to one. */
export function customersQuery(search: SpanSearch) {
  const { productId: _, ...asked } = spanQuery(search);
  const span = { ...asked, startDate: startOfCohorts(asked.endDate) };
  return queryOptions({
    queryKey: ["analytics", "customers", span],
    queryFn: async ({ signal }) => await stoa.analytics.customers({ ...span, interval: "month" }, { signal }),
    placeholderData: keepPreviousData,
  });
}

export const ENTRIES_PER_PAGE = 50;

/**
 * The months of a longer span are proven one after another: the service adds up the entries of the orders, so that a request about years
 * of many sales would take seconds.
 */
const MAX_DAYS_AT_ONCE = 31;

/** The parts of a span that are proven one after another, the last one first; null: all of it at once. */
export function proofMonths(search: SpanSearch): DaySpan[] | null {
  const span = spanOf(search);
  return lengthOf(span) > MAX_DAYS_AT_ONCE ? monthsOf(span) : null;
}

/** A page of the entries behind a figure, and the figure. */
export function proofQuery(search: EntriesSearch) {
  const { figure = "netRevenue", page = 1 } = search;
  const span = spanQuery(search);
  return queryOptions({
    queryKey: ["analytics", "entries", span, figure, page],
    queryFn: async ({ client, signal }) => {
      const [entries, revenue] = await Promise.all([
        stoa.analytics.entries({ ...span, figure, page, limit: ENTRIES_PER_PAGE }, { signal }).page(),
        readRevenue(client, span, "month", "currency"),
      ]);
      return { figure, page, entries, revenue };
    },
    placeholderData: keepPreviousData,
  });
}

/** The figures of a span that is proven month by month. */
export function provenFiguresQuery(search: SpanSearch) {
  const span = spanQuery(search);
  return queryOptions({
    queryKey: ["analytics", "proven-figures", span],
    queryFn: ({ client }) => readRevenue(client, span, "month", "currency"),
  });
}
