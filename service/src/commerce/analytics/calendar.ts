import { DAY_MS, dayOf, daysAfter } from "../../core/dates.ts";
import { firstOf } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";
import { listDayStarts } from "./calendar-queries.ts";

export interface Day {
  date: string;
  at: Date;
}

/** About 40 kB for each year of a zone. */
const MAX_CACHED_YEARS = 500;

/** Never invalidated: time zone tables change only with a new runtime or database. */
const yearCache = new Map<string, Day[]>();

/** Returns the days from the first to the last and the day after; null: the database lacks the zone. */
export async function listDays(
  db: Queries,
  { timezone, startDate, endDate }: { timezone: string; startDate: string; endDate: string },
): Promise<Day[] | null> {
  const [first, after] = [new Date(startDate), daysAfter(new Date(endDate), 1)];
  const days: Day[] = [];
  for (let year = first.getUTCFullYear(); year <= after.getUTCFullYear(); year++) {
    const ofYear = await listDaysOfYear(db, timezone, year);
    if (!ofYear) return null;
    days.push(...ofYear);
  }
  const skipped = (first.getTime() - Date.UTC(first.getUTCFullYear(), 0)) / DAY_MS;
  const dayCount = (after.getTime() - first.getTime()) / DAY_MS;
  return days.slice(skipped, skipped + dayCount + 1);
}

async function listDaysOfYear(db: Queries, timezone: string, year: number): Promise<Day[] | null> {
  const name = `${timezone.toLowerCase()} ${year}`;
  const known = yearCache.get(name);
  if (known) return known;
  const starts = await listDayStarts(db, timezone, year);
  if (!starts) return null;
  const newYear = new Date(Date.UTC(year, 0));
  const days = starts.map((at, day) => ({ date: dayOf(daysAfter(newYear, day)), at }));
  if (yearCache.size >= MAX_CACHED_YEARS) yearCache.delete(firstOf([...yearCache.keys()]));
  yearCache.set(name, days);
  return days;
}
