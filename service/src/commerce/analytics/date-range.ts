import type { Context } from "../../core/context.ts";
import { dayOf, daysAfter } from "../../core/dates.ts";
import { invalidRequest } from "../../core/errors.ts";
import { isCurrency } from "../../core/money/amount.ts";
import { firstOf, lastOf } from "../../core/required.ts";
import { listDays } from "./calendar.ts";

/** Which days are asked about, as the query says. */
export interface DateRangeQuery {
  period: "day" | "week" | "month" | "year";
  startDate?: string | undefined;
  endDate?: string | undefined;
  interval: "day" | "week" | "month";
  timezone: string;
  currency?: string | undefined;
}

/** Days of a zone, from the first to the last, both with all of their hours, in buckets that follow each other. */
export interface DateRange {
  timezone: string;
  startDate: string;
  endDate: string;
  interval: DateRangeQuery["interval"];
  /** The first day of each bucket. */
  dates: string[];
  /** When each bucket begins, and at the end when the last one is over: one more than there are dates. */
  edges: Date[];
}

/** When the first day begins, and when the last one is over. */
export const rangeBounds = ({ edges }: DateRange): [from: Date, until: Date] => [
  firstOf(edges),
  lastOf(edges),
];

const PERIOD_DAYS = { day: 1, week: 7, month: 30, year: 365 };
const MAX_YEARS = 5;

/**
 * Zones with summers whose names PostgreSQL takes for offsets without: what the IANA database links each to. All others go by the name
 * that was given: the runtime's own, such as Asia/Calcutta for Asia/Kolkata, PostgreSQL need not know.
 */
const ZONE_CITIES = new Map([
  ["CET", "Europe/Brussels"],
  ["MET", "Europe/Brussels"],
  ["EET", "Europe/Athens"],
  ["WET", "Europe/Lisbon"],
]);

/** The span that a query means; 400 INVALID_REQUEST names the parameter that means none. */
export async function parseDateRange(ctx: Context, query: DateRangeQuery): Promise<DateRange> {
  mustBeCurrency(query.currency);
  const today = todayIn(query.timezone, ctx.now());
  const endDate = query.endDate ?? today;
  const startDate = query.startDate ?? addDays(endDate, -PERIOD_DAYS[query.period]);
  mustBeOrdered(startDate, endDate);
  const { timezone, interval } = query;
  const zone = ZONE_CITIES.get(timezone.toUpperCase()) ?? timezone;
  const days = await listDays(ctx.db, { startDate, endDate, timezone: zone });
  if (!days) throw unknownZoneError();
  const firsts = days.slice(0, -1).filter(({ date }, day) => day === 0 || startsInterval[interval](date));
  const edges = [...firsts, lastOf(days)].map(({ at }) => at);
  return { timezone, startDate, endDate, interval, dates: firsts.map(({ date }) => date), edges };
}

const MONDAY = 1;
/** Whether an interval begins with a day. */
const startsInterval: Record<DateRangeQuery["interval"], (date: string) => boolean> = {
  day: () => true,
  week: (date) => new Date(date).getUTCDay() === MONDAY,
  month: (date) => date.endsWith("-01"),
};

function mustBeCurrency(currency: string | undefined): void {
  if (currency !== undefined && !isCurrency(currency))
    throw invalidRequest("currency", "must be an ISO 4217 code such as USD");
}

const unknownZoneError = () =>
  invalidRequest("timezone", "must be the IANA name of a time zone, such as Europe/Berlin");

/**
 * What the runtime knows besides the names of IANA, and PostgreSQL reads as something else: offsets such as +02:00 the other way round,
 * and of the many zones that BST abbreviates another one.
 */
const AMBIGUOUS_ZONES = /^([^A-Z]|(ACT|ART|AST|BST|CST|EAT|IST|JST|NST|PST)$|SystemV\/)/i;

function todayIn(timezone: string, now: Date): string {
  if (AMBIGUOUS_ZONES.test(timezone)) throw unknownZoneError();
  try {
    return new Intl.DateTimeFormat("sv-SE", { timeZone: timezone, dateStyle: "short" }).format(now);
  } catch {
    throw unknownZoneError();
  }
}

/** So many days later, by the calendar. */
const addDays = (date: string, days: number): string => dayOf(daysAfter(new Date(date), days));

function mustBeOrdered(startDate: string, endDate: string): void {
  if (startDate > endDate) throw invalidRequest("startDate", "must not be after endDate");
  const latest = `${Number(startDate.slice(0, 4)) + MAX_YEARS}${startDate.slice(4)}`;
  if (endDate > latest)
    throw invalidRequest("startDate", `must be at most ${MAX_YEARS} years before endDate`);
}
