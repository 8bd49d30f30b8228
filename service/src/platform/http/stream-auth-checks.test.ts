import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { api, type Endpoint } from "@stoa/contract";
import type { FastifyRequest } from "fastify";
import { SESSION_COOKIE } from "./authenticate.ts";
import type { ServerDependencies } from "./server-dependencies.ts";
import { startAuthChecks } from "./stream-auth-checks.ts";

const INTERVAL_MS = 500;
const KEY = "Bearer stoa_test_some-key";
const OTHER_KEY = "Bearer stoa_test_other-key";

interface StreamRequest {
  authorization?: string;
  apiKey?: string;
  session?: string;
}

/** A server that counts the look-ups of each credential, and whose credentials can be revoked. */
function openServer(t: TestContext) {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const lookUps: string[] = [];
  const revoked = new Set<string>();
  const database = { answers: Promise.resolve() };
  const lookUp = (kind: "key" | "session") => async (value: string) => {
    lookUps.push(value);
    await database.answers;
    return revoked.has(value) ? null : { kind, permissions: new Set(["ai:execute"]), role: "USER" };
  };
  const server = {
    ctx: { links: { origin: () => "http://stoa.test" } },
    identify: { key: lookUp("key"), session: lookUp("session") },
  } as unknown as ServerDependencies;
  const left: string[] = [];
  const openWith = (name: string, request: StreamRequest, endpoint: Endpoint = api.ai.execute) =>
    startAuthChecks({
      ...{ server, endpoint, intervalMs: INTERVAL_MS },
      request: toRequest(request),
      leave: () => left.push(name),
    });
  const nextLookUps = async () => {
    lookUps.length = 0;
    t.mock.timers.tick(INTERVAL_MS);
    await nextTurn();
    return [...lookUps];
  };
  return {
    ...{ server, database, left, openWith, nextLookUps },
    open: (name: string, authorization: string) => openWith(name, { authorization }),
    nextCheck: async () => (await nextLookUps()).map((value) => `Bearer ${value}`),
    revoke: (credential: string) => revoked.add(credential.replace("Bearer ", "")),
  };
}

const toRequest = ({ authorization, apiKey, session }: StreamRequest) =>
  ({
    method: "POST",
    // The proof that no other site sent the cookie.
    headers: { authorization, "x-requested-with": "test" },
    query: { ...(apiKey !== undefined && { api_key: apiKey }) },
    cookies: { ...(session !== undefined && { [SESSION_COOKIE]: session }) },
  }) as unknown as FastifyRequest;

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

test("streams with cookies or `api_key`: each has a check of its own, and a revocation ends its stream alone", async (t) => {
  const { openWith, left, nextLookUps, revoke } = openServer(t);
  openWith("session", { session: "one" });
  openWith("other session", { session: "two" });
  openWith("key", { apiKey: "stoa_test_some-key" });
  openWith("other key", { apiKey: "stoa_test_other-key" });
  assert.deepEqual(await nextLookUps(), ["one", "two", "stoa_test_some-key", "stoa_test_other-key"]);
  revoke("two");
  revoke("stoa_test_other-key");
  await nextLookUps();
  assert.deepEqual(left, ["other session", "other key"]);
});

test("stream whose `api_key` differs from its header: ends, and the others of the header continue", async (t) => {
  const { open, openWith, left, nextCheck } = openServer(t);
  openWith("both", { authorization: KEY, apiKey: "stoa_test_other-key" });
  open("header", KEY);
  assert.deepEqual(await nextCheck(), [KEY]);
  assert.deepEqual(left, ["both"]);
});

test("one key at two endpoints: two checks, and a missing permission ends one stream", async (t) => {
  const { open, openWith, left, nextCheck } = openServer(t);
  open("run", KEY);
  openWith("products", { authorization: KEY }, api.ai.productRuns);
  assert.deepEqual(await nextCheck(), [KEY, KEY]);
  assert.deepEqual(left, ["products"]);
});

test("slow check: the next one starts only after its end", async (t) => {
  const { open, database, left, nextCheck, revoke } = openServer(t);
  const slow = Promise.withResolvers<void>();
  database.answers = slow.promise;
  open("stream", KEY);
  assert.deepEqual(await nextCheck(), [KEY]);
  assert.deepEqual(await nextCheck(), []);
  slow.resolve();
  await nextTurn();
  revoke(KEY);
  assert.deepEqual(await nextCheck(), [KEY]);
  assert.deepEqual(left, ["stream"]);
});

test("stream of a public endpoint: no check", async (t) => {
  const { openWith, left, nextLookUps, revoke } = openServer(t);
  revoke(KEY);
  const stop = openWith("public", { authorization: KEY }, api.signIn.becomeFirstAdmin);
  assert.deepEqual(await nextLookUps(), []);
  stop();
  assert.deepEqual(left, []);
});

test("first stream of a key, ended before the others: its request and callback are freed", async (t) => {
  const { server, open, nextCheck } = openServer(t);
  const openFirst = () => {
    const request = toRequest({ authorization: KEY });
    const leave = () => void request;
    const references = [new WeakRef(request), new WeakRef(leave)];
    const options = { server, endpoint: api.ai.execute, intervalMs: INTERVAL_MS, request, leave };
    return { references, stop: startAuthChecks(options) };
  };
  const openAndStopFirst = () => {
    const { references, stop } = openFirst();
    open("second", KEY);
    stop();
    return references;
  };
  const references = openAndStopFirst();
  await nextTurn();
  collectGarbage();
  assert.deepEqual(
    references.map((reference) => reference.deref()),
    [undefined, undefined],
  );
  assert.deepEqual(await nextCheck(), [KEY]);
});

function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
}
