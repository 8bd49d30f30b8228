import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { api } from "@stoa/contract";
import type { FastifyRequest } from "fastify";
import type { ServerDependencies } from "./server-dependencies.ts";
import { startAuthChecks } from "./stream-auth-checks.ts";

const EVERY_MS = 500;
const KEY = "Bearer stoa_test_some-key";
const OTHER_KEY = "Bearer stoa_test_other-key";
const endpoint = api.ai.execute;

/** A server that counts the look-ups of each key, and whose keys can be revoked. */
function openServer(t: TestContext) {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const lookUps: string[] = [];
  const revoked = new Set<string>();
  const key = async (value: string) => {
    lookUps.push(value);
    const caller = { kind: "key", permissions: new Set(["ai:execute"]), role: "USER" };
    return revoked.has(value) ? null : caller;
  };
  const server = {
    ctx: { links: { origin: () => "http://stoa.test" } },
    identify: { key },
  } as unknown as ServerDependencies;
  const left: string[] = [];
  const open = (name: string, authorization: string) =>
    startAuthChecks(server, endpoint, requestWith(authorization), EVERY_MS, () => left.push(name));
  const nextCheck = async () => {
    lookUps.length = 0;
    t.mock.timers.tick(EVERY_MS);
    await turn();
    return lookUps.map((value) => `Bearer ${value}`);
  };
  return { open, left, nextCheck, revoke: (authorization: string) => revoked.add(authorization.slice(7)) };
}

const requestWith = (authorization: string) =>
  ({ headers: { authorization }, query: {}, cookies: {} }) as unknown as FastifyRequest;

test("streams of one key: one check for all, and a revoked key ends all of its streams alone", async (t) => {
  const { open, left, nextCheck, revoke } = openServer(t);
  open("first", KEY);
  open("second", KEY);
  open("other", OTHER_KEY);
  assert.deepEqual(await nextCheck(), [KEY, OTHER_KEY]);
  revoke(KEY);
  await nextCheck();
  assert.deepEqual(left, ["first", "second"]);
});

test("stream that ends: the others of its key are still checked, and after the last one none is", async (t) => {
  const { open, left, nextCheck, revoke } = openServer(t);
  const [stopFirst, stopSecond] = [open("first", KEY), open("second", KEY)];
  stopFirst();
  stopFirst();
  assert.deepEqual(await nextCheck(), [KEY]);
  stopSecond();
  assert.deepEqual(await nextCheck(), []);
  open("third", KEY);
  stopFirst();
  open("fourth", KEY);
  assert.deepEqual(await nextCheck(), [KEY]);
  revoke(KEY);
  await nextCheck();
  assert.deepEqual(left, ["third", "fourth"]);
});
