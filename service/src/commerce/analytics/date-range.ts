import type { Context } from "../../core/context.ts";
import { dayOf, daysAfter } from "../../core/dates.ts";
import { invalidRequest } from "../../core/errors.ts";
import { isCurrency } from "../../core/money/amount.ts";
import { firstOf, lastOf } from "../../core/required.ts";
import { listDays } from "./calendar.ts";

export interface DateRangeQuery {
  period: "day" | "week" | "month" | "year";
  startDate?: string | undefined;
  endDate?: string | undefined;
  interval: "day" | "week" | "month";
  timezone: string;
  currency?: string | undefined;
}

/** Whole days in a time zone, split into consecutive buckets. */
export interface DateRange {
  timezone: string;
  startDate: string;
  endDate: string;
  interval: DateRangeQuery["interval"];
  dates: string[];
  /** The start of each bucket, then the end of the last one. */
  edges: Date[];
}

export const rangeBounds = ({ edges }: DateRange): [from: Date, until: Date] => [
  firstOf(edges),
  lastOf(edges),
];

const PERIOD_DAYS = { day: 1, week: 7, month: 30, year: 365 };
const MAX_YEARS = 5;

/** PostgreSQL reads these names as fixed offsets. The IANA database links them to zones with summer time. */
const ZONE_CITIES = new Map([
  ["CET", "Europe/Brussels"],
  ["MET", "Europe/Brussels"],
  ["EET", "Europe/Athens"],
  ["WET", "Europe/Lisbon"],
]);

/** Throws 400 INVALID_REQUEST with the name of the wrong parameter. */
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

/** Names that the runtime and PostgreSQL interpret differently: `+02:00` has the opposite sign, and BST abbreviates several zones. */
const AMBIGUOUS_ZONES = /^([^A-Z]|(ACT|ART|AST|BST|CST|EAT|IST|JST|NST|PST)$|SystemV\/)/i;

function todayIn(timezone: string, now: Date): string {
  if (AMBIGUOUS_ZONES.test(timezone)) throw unknownZoneError();
  const name = timezone.toLowerCase();
  const format = dateFormats.get(name) ?? createDateFormat(timezone);
  dateFormats.set(name, format);
  return format.format(now);
}

/**
 * By time zone in lower case, since Intl ignores the case: at most the 600 names of the IANA database. Creating a format takes half a
 * millisecond.
 */
const dateFormats = new Map<string, Intl.DateTimeFormat>();

function createDateFormat(timezone: string): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat("sv-SE", { timeZone: timezone, dateStyle: "short" });
  } catch {
    throw unknownZoneError();
  }
}

const addDays = (date: string, days: number): string => dayOf(daysAfter(new Date(date), days));

function mustBeOrdered(startDate: string, endDate: string): void {
  if (startDate > endDate) throw invalidRequest("startDate", "must not be after endDate");
  const latest = `${Number(startDate.slice(0, 4)) + MAX_YEARS}${startDate.slice(4)}`;
  if (endDate > latest)
    throw invalidRequest("startDate", `must be at most ${MAX_YEARS} years before endDate`);
}
