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
const of = (caller: Parameters<typeof allowanceOf>[1]) => allowanceOf(builtInPlans, caller, "203.0.113.1");

test("keys and OAuth tokens of an account count together, its sessions apart", () => {
  assert.deepEqual(of(token), of(key));
  assert.deepEqual(of({ ...key, keyId: "k2" }), of(key));
  assert.notEqual(of(session).key, of(key).key);
  assert.notEqual(of({ ...key, userId: "u2" }).key, of(key).key);
});

test("an account's own numbers stand in the place of its plan's, the shortest window first", () => {
  const quota = [
    { requests: 50, seconds: 3_600 },
    { requests: 5, seconds: 10 },
  ];
  assert.deepEqual(
    of({ ...key, quota }).quotas.map(({ seconds }) => seconds),
    [10, 3_600],
  );
});

test("a visitor is counted by address, not by cookie", () => {
  assert.deepEqual(of({ kind: "guest", guestId: "a" }), of({ kind: "guest", guestId: "b" }));
});
