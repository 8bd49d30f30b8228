import { LOCALE } from "./format.ts";

/** Whole days, both included: `2026-11-01`. */
export interface DaySpan {
  from: string;
  to: string;
}

const DAY_MS = 86_400_000;
const ISO_DAY = "2026-11-01".length;

export const daysAfter = (day: string, days: number): string =>
  new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, ISO_DAY);

export const lengthOf = ({ from, to }: DaySpan): number => (Date.parse(to) - Date.parse(from)) / DAY_MS + 1;

/** As many days, right before. */
export const spanBefore = (span: DaySpan): DaySpan => ({
  from: daysAfter(span.from, -lengthOf(span)),
  to: daysAfter(span.from, -1),
});

/** The months of a span, the last one first. The first and the last may be parts of a month. */
export function monthsOf({ from, to }: DaySpan): DaySpan[] {
  const first = `${to.slice(0, "2026-11".length)}-01`;
  if (first <= from) return [{ from, to }];
  return [{ from: first, to }, ...monthsOf({ from, to: daysAfter(first, -1) })];
}

/** The date of a time zone at this moment. Swedish dates are ISO 8601. */
export const todayIn = (timeZone: string): string =>
  new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short" }).format(new Date());

/** Days before this are typed years that are not complete. */
const FIRST_DAY = "2000-01-01";

export const isDay = (text: unknown): text is string =>
  typeof text === "string" &&
  /^\d{4}-\d{2}-\d{2}$/.test(text) &&
  text >= FIRST_DAY &&
  !Number.isNaN(Date.parse(text));

/** A day has no time zone: UTC keeps its date. */
const formatIn = (day: string, options: Intl.DateTimeFormatOptions): string =>
  new Date(day).toLocaleDateString(LOCALE, { ...options, timeZone: "UTC" });

export const formatDay = (day: string): string => formatIn(day, { day: "numeric", month: "short" });

export const formatFullDay = (day: string): string =>
  formatIn(day, { weekday: "long", day: "numeric", month: "long", year: "numeric" });

/** `2026-11` */
export const formatMonth = (month: string): string =>
  formatIn(`${month}-01`, { month: "long", year: "numeric" });

export const formatSpan = ({ from, to }: DaySpan): string =>
  new Intl.DateTimeFormat(LOCALE, { dateStyle: "medium", timeZone: "UTC" }).formatRange(
    new Date(from),
    new Date(to),
  );
