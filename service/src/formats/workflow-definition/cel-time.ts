import type { CelFunc, CelType, CelValue } from "@bufbuild/cel";
import type { CelLibrary } from "./cel.ts";

const DAY_MS = 86_400_000;

/** Of a date whose UTC fields hold the local time. */
const dateFields: Record<string, (wall: Date) => number> = {
  getFullYear: (wall) => wall.getUTCFullYear(),
  getMonth: (wall) => wall.getUTCMonth(),
  getDate: (wall) => wall.getUTCDate(),
  getDayOfMonth: (wall) => wall.getUTCDate() - 1,
  getDayOfWeek: (wall) => wall.getUTCDay(),
  getDayOfYear: (wall) => Math.floor((wall.getTime() - startOfYear(wall)) / DAY_MS),
  getHours: (wall) => wall.getUTCHours(),
  getMinutes: (wall) => wall.getUTCMinutes(),
  getSeconds: (wall) => wall.getUTCSeconds(),
  getMilliseconds: (wall) => wall.getUTCMilliseconds(),
};

/**
 * In UTC or in the named zone. The library computes with local dates of the process, where daylight saving skips an
 * hour: 2:30 of another zone became 3:30.
 */
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

/** Throws for an unknown zone. */
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
  const wall = new Date(date);
  wall.setUTCFullYear(fieldOf("year"), fieldOf("month") - 1, fieldOf("day"));
  wall.setUTCHours(fieldOf("hour"), fieldOf("minute"), fieldOf("second"));
  return wall;
}
