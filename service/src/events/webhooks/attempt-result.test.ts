import assert from "node:assert/strict";
import { test } from "node:test";
import { type LeasedDelivery, toAttemptResult } from "./attempt-result.ts";

const now = new Date("2026-06-15T12:00:00.000Z");
const first: LeasedDelivery = {
  ...{ id: "delivery", eventId: "event", endpointId: "endpoint", leaseToken: "token" },
  ...{ status: "pending", attempts: 0, scheduledAttempts: 0, isManual: false, resumeAt: null },
};
const outcomeAt = (status: number, headers = {}) =>
  toAttemptResult(first, { response: { status, headers, body: "" }, problem: null }, now, () => 0);

test("response status: any 2xx succeeds, and nothing else", () => {
  const successes = Array.from({ length: 500 }, (_, n) => n + 100).filter(
    (status) => outcomeAt(status).status === "succeeded",
  );
  assert.deepEqual(
    successes,
    Array.from({ length: 100 }, (_, n) => n + 200),
  );
});

test("410: ends the delivery at once", () => {
  const ended = Array.from({ length: 200 }, (_, n) => n + 400).filter((status) => outcomeAt(status).isGone);
  assert.deepEqual(ended, [410]);
  assert.equal(outcomeAt(410).status, "failed");
});

test("Retry-After: counts for 429 and 503 only", () => {
  const retryAfter = { "retry-after": "600" };
  const statuses = Array.from({ length: 400 }, (_, n) => n + 200).filter(
    (status) => outcomeAt(status, retryAfter).blockedUntil !== null,
  );
  assert.deepEqual(statuses, [429, 503]);
});

test("200 with a broken body: is retried", () => {
  const broken = { response: { status: 200, headers: {}, body: "" }, problem: "connection" } as const;
  const { status, error } = toAttemptResult(first, broken, now, () => 0);
  assert.deepEqual([status, error], ["retrying", "connection"]);
});
