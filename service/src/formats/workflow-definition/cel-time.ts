import type { CelFunc, CelType, CelValue } from "@bufbuild/cel";
import { DAY_MS } from "../../core/dates.ts";
import type { CelLibrary } from "./cel.ts";

/** The UTC fields of the date contain the local time. */
const dateFields: Record<string, (local: Date) => number> = {
  getFullYear: (local) => local.getUTCFullYear(),
  getMonth: (local) => local.getUTCMonth(),
  getDate: (local) => local.getUTCDate(),
  getDayOfMonth: (local) => local.getUTCDate() - 1,
  getDayOfWeek: (local) => local.getUTCDay(),
  getDayOfYear: (local) => Math.floor((local.getTime() - startOfYear(local)) / DAY_MS),
  getHours: (local) => local.getUTCHours(),
  getMinutes: (local) => local.getUTCMinutes(),
  getSeconds: (local) => local.getUTCSeconds(),
  getMilliseconds: (local) => local.getUTCMilliseconds(),
};

/** The library computes with the process's local dates, where daylight saving skips an hour: 2:30 in another zone became 3:30. */
export function createTimeMethods({ celEnv, celMethod, CelScalar: { INT, STRING } }: CelLibrary): CelFunc[] {
  const method = [...celEnv().funcs].find(({ name }) => name === "getFullYear");
  const timestamp = method?.target as CelType;
  return Object.entries(dateFields).flatMap(([name, field]) => [
    celMethod(name, timestamp, [], INT, function () {
      return BigInt(field(toDate(this)));
    }),
    celMethod(name, timestamp, [STRING], INT, function (zone) {
      return BigInt(field(toLocalTime(toDate(this), zone)));
    }),
  ]);
}

function toDate(timestamp: CelValue): Date {
  const { seconds, nanos } = (timestamp as unknown as { message: { seconds: bigint; nanos: number } })
    .message;
  return new Date(Number(seconds) * 1_000 + Math.floor(nanos / 1_000_000));
}

function startOfYear(date: Date): number {
  const start = new Date(date);
  start.setUTCMonth(0, 1);
  return start.setUTCHours(0, 0, 0, 0);
}

const OFFSET = /^([+-]?)(\d\d):(\d\d)$/;

function toLocalTime(date: Date, zone: string): Date {
  const [, sign, hours, minutes] = OFFSET.exec(zone) ?? [];
  if (hours === undefined) return toZoneTime(date, zone);
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * 60_000;
  return new Date(date.getTime() + (sign === "-" ? -offsetMs : offsetMs));
}

function toZoneTime(date: Date, timeZone: string): Date {
  const numeric = {
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
  } as const;
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    ...numeric,
    second: "numeric",
  });
  const parts = format.formatToParts(date);
  const fieldOf = (name: keyof Intl.DateTimeFormatPartTypesRegistry) =>
    Number(parts.find(({ type }) => type === name)?.value);
  const local = new Date(date);
  local.setUTCFullYear(fieldOf("year"), fieldOf("month") - 1, fieldOf("day"));
  local.setUTCHours(fieldOf("hour"), fieldOf("minute"), fieldOf("second"));
  return local;
}
