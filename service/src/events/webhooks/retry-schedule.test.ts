import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseRetryAfterMs, toNextAttemptAt } from "./retry-schedule.ts";

const now = new Date("2026-06-15T12:00:00.000Z");
const MINUTE_MS = 60_000;
const noJitter = () => 0;
const minutesUntil = (at: Date | null) => at && (at.getTime() - now.getTime()) / MINUTE_MS;

test("schedule: eight attempts at the specified delays", () => {
  const waits = Array.from({ length: 9 }, (_, made) => minutesUntil(toNextAttemptAt(made, now, noJitter)));
  assert.deepEqual(waits, [0, 1, 5, 30, 120, 360, 720, 1440, null]);
});

test("jitter: no attempt is early, and none more than a tenth late", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 7 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (made, drawn) => {
        const exact = toNextAttemptAt(made, now, noJitter)!.getTime() - now.getTime();
        const wait = toNextAttemptAt(made, now, () => drawn)!.getTime() - now.getTime();
        assert.ok(wait >= exact && wait <= Math.ceil(exact * 1.1), `${wait} for ${exact}`);
      },
    ),
  );
});

test("Retry-After: lengthens a delay and never shortens it", () => {
  assert.equal(minutesUntil(toNextAttemptAt(1, now, noJitter, 10 * MINUTE_MS)), 10);
  assert.equal(minutesUntil(toNextAttemptAt(5, now, noJitter, 10 * MINUTE_MS)), 360);
});

const headers: [header: string | null, ms: number][] = [
  [null, 0],
  ["120", 120_000],
  [" 7 ", 7_000],
  ["0", 0],
  ["99999", 3_600_000],
  ["Mon, 15 Jun 2026 12:05:00 GMT", 300_000],
  ["Mon, 15 Jun 2026 11:00:00 GMT", 0],
  ["Mon, 15 Jun 2027 12:00:00 GMT", 3_600_000],
  ["soon", 0],
  ["-5", 0],
  ["1e9", 0],
  ["9".repeat(400), 3_600_000],
];
for (const [header, ms] of headers) {
  test(`Retry-After ${header}: ${ms} ms`, () => assert.equal(parseRetryAfterMs(header, now), ms));
}
