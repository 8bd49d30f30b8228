import assert from "node:assert/strict";
import { test } from "node:test";
import { builtInPlans } from "../../core/config/plan-config.ts";
import type { Member } from "../../core/context.ts";
import { allowanceOf } from "./allowance.ts";

const account = { userId: "u1", role: "user", plan: "pro", quota: null } as const;
const permissions = new Set<never>();
const key: Member = { ...account, kind: "key", keyId: "k1", permissions };
const token: Member = { ...account, kind: "token", grantId: "g1", permissions };
const session: Member = {
  ...account,
  kind: "session",
  sessionId: "s1",
  secondFactor: false,
  authenticatedAt: new Date(0),
};
const allowance = (caller: Parameters<typeof allowanceOf>[1]) =>
  allowanceOf(builtInPlans, caller, "203.0.113.1");

test("keys and OAuth tokens of an account: one counter; sessions: another", () => {
  assert.deepEqual(allowance(token), allowance(key));
  assert.deepEqual(allowance({ ...key, keyId: "k2" }), allowance(key));
  assert.notEqual(allowance(session).key, allowance(key).key);
  assert.notEqual(allowance({ ...key, userId: "u2" }).key, allowance(key).key);
});

test("an account's own quotas: replace those of its plan, the shortest window first", () => {
  const quota = [
    { requests: 50, seconds: 3_600 },
    { requests: 5, seconds: 10 },
  ];
  assert.deepEqual(
    allowance({ ...key, quota }).quotas.map(({ seconds }) => seconds),
    [10, 3_600],
  );
});

test("a guest: counted by address, not by cookie", () => {
  assert.deepEqual(allowance({ kind: "guest", guestId: "a" }), allowance({ kind: "guest", guestId: "b" }));
});
