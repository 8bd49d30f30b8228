/** The reader's language decides about separators and the order of dates. */
export const LOCALE = navigator.languages.find(isLocale) ?? "en";

/** Browsers may name one that is none, such as en-US@posix. */
function isLocale(tag: string): boolean {
  try {
    return Intl.NumberFormat.supportedLocalesOf(tag).length > 0;
  } catch {
    return false;
  }
}

/** `decimals`: as the service says; without them, as many as the browser knows of the currency. */
export const formatMoney = (amount: number, currency: string, decimals?: number): string =>
  new Intl.NumberFormat(LOCALE, {
    style: "currency",
    currency,
    ...(decimals !== undefined && { minimumFractionDigits: decimals, maximumFractionDigits: decimals }),
  }).format(amount);

/** The cost of a run in USD: four decimals, or two significant digits if it is smaller. */
export const formatCost = (usd: number): string =>
  new Intl.NumberFormat(LOCALE, {
    style: "currency",
    currency: "USD",
    ...(usd > 0 && usd < 0.0001 ? { maximumSignificantDigits: 2 } : { minimumFractionDigits: 4 }),
  }).format(usd);

// Once: to make one takes longer than all that it formats on a page.
const COUNTS = new Intl.NumberFormat(LOCALE);
export const formatCount = (count: number): string => COUNTS.format(count);

/** A day without its year if that is the present one. */
export function formatDate(iso: string): string {
  const date = new Date(iso);
  const isThisYear = date.getFullYear() === new Date().getFullYear();
  return date.toLocaleDateString(LOCALE, {
    day: "numeric",
    month: isThisYear ? "long" : "short",
    ...(!isThisYear && { year: "numeric" }),
  });
}

/** A day and a time of it: for what ends or begins then. */
export function formatMoment(iso: string): string {
  const time = new Date(iso).toLocaleTimeString(LOCALE, { hour: "2-digit", minute: "2-digit" });
  return `${formatDate(iso)}, ${time}`;
}

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
];
const relative = new Intl.RelativeTimeFormat(LOCALE, { numeric: "auto", style: "short" });

/** Relative within a day, else the date. */
export function formatTime(iso: string, now = Date.now()): string {
  const ms = new Date(iso).getTime() - now;
  if (Math.abs(ms) >= 86_400_000) return formatDate(iso);
  const [unit, length] = UNITS.find(([, unitMs]) => Math.abs(ms) >= unitMs) ?? ["second" as const, 1_000];
  return relative.format(Math.round(ms / length), unit);
}

/** The exact time, local and in UTC, for a title. */
export const formatExactTime = (iso: string): string =>
  `${new Date(iso).toLocaleString(LOCALE)} (${iso.slice(0, 19).replace("T", " ")} UTC)`;

/** Stars with one decimal: 4.8. */
export const formatRating = (average: number): string =>
  new Intl.NumberFormat(LOCALE, { minimumFractionDigits: 1, maximumFractionDigits: 1 }).format(average);

/** Two letters for an avatar without a picture. */
export function initialsOf(name: string): string {
  const words = name.trim().split(/\s+/u);
  const letters = [words[0], words.length > 1 ? words.at(-1) : undefined].map(
    (word) => (word ? [...new Intl.Segmenter().segment(word)][0]?.segment : "") ?? "",
  );
  return letters.join("").toLocaleUpperCase(LOCALE);
}

const BYTE_UNITS = ["byte", "kilobyte", "megabyte", "gigabyte"];

/** With three digits: 1.2 MB. */
export function formatBytes(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), BYTE_UNITS.length - 1);
  const unit = BYTE_UNITS[power] ?? "byte";
  const style = { style: "unit", unit, unitDisplay: "short", maximumSignificantDigits: 3 } as const;
  return new Intl.NumberFormat(LOCALE, style).format(bytes / 1000 ** power);
}

/** A share between 0 and 1, with one decimal where it matters: 90.5 %. */
export const formatPercent = (share: number): string =>
  new Intl.NumberFormat(LOCALE, { style: "percent", maximumFractionDigits: 1 }).format(share);

/** The time of the day with seconds. */
export const formatClock = (iso: string): string =>
  new Date(iso).toLocaleTimeString(LOCALE, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
