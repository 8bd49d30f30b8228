import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { assertError, type Market, openMarket } from "../../../test/market.ts";
import { builtInPlans } from "../../core/config/plan-config.ts";

let market: Market;
before(async () => {
  market = await openMarket({ config: { planConfig: builtInPlans } });
});
after(() => market.close());

test("GET /account/usage: returns every window of the plan without counting itself", async () => {
  const pro = await market.createUser({ plan: "pro" });
  const inSeconds = (seconds: number) => new Date(market.clock.now.getTime() + seconds * 1000).toISOString();
  await pro.get("/v1/categories");
  const { body } = await pro.get("/v1/account/usage");
  assert.deepEqual(body.data, {
    plan: "pro",
    windows: [
      { limit: 100, seconds: 60, used: 1, remaining: 99, resetAt: inSeconds(60) },
      { limit: 1_000, seconds: 3_600, used: 1, remaining: 999, resetAt: inSeconds(3_600) },
      { limit: 10_000, seconds: 86_400, used: 1, remaining: 9_999, resetAt: inSeconds(86_400) },
    ],
    sessionWindows: [
      { limit: 600, seconds: 60, used: 0, remaining: 600, resetAt: null },
      { limit: 10_000, seconds: 3_600, used: 0, remaining: 10_000, resetAt: null },
    ],
  });
});

test("GET /account/usage by session: reads the counters of keys without adding to them", async () => {
  const user = await market.createUser();
  const session = await market.createSession(user.userId);
  const { data } = (await session.get("/v1/account/usage")).body;
  assert.deepEqual([data.windows[0].used, data.sessionWindows[0].used], [0, 0]);
});

test("GET /account/usage with an exhausted quota: answers, for every method and spelling", async () => {
  const free = await market.createUser();
  for (let at = 0; at < builtInPlans.plans.free.quotas[0]!.requests; at++) await free.get("/v1/nothing");
  assert.equal((await free.get("/v1/categories")).status, 429);
  for (const [method, path] of [
    ["GET", "/v1/account/usage"],
    ["GET", "/v1/account/usage/"],
    ["HEAD", "/v1/account/usage"],
  ] as const) {
    const reply = await free.request(method, path);
    assert.deepEqual([reply.status, reply.headers.get("x-ratelimit-remaining")], [200, "0"]);
  }
});

test("GET /account/usage: any key, no guests", async () => {
  const powerless = await market.createUser({ permissions: [] });
  assert.equal((await powerless.get("/v1/account/usage")).status, 200);
  const { name, value } = market.service.ctx.guests.cookie();
  const reply = await market.as(null).get("/v1/account/usage", { cookie: `${name}=${value}` });
  assertError(reply, 403, "UNAUTHORIZED");
});
