import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { endpoint, json, one } from "@stoa/contract";
import { Registry } from "prom-client";
import { z } from "zod";
import { createProduct } from "../../../test/factories.ts";
import {
  assertError,
  type Client,
  type Market,
  type MarketOptions,
  openMarket,
  type Reply,
} from "../../../test/market.ts";
import { holdDeadlines, startRedis, whyNoRedis } from "../../../test/redis.ts";
import { mintKey } from "../../accounts/api-keys/api-key.ts";
import { createKeyAsOperator } from "../../accounts/api-keys/keys.ts";
import { builtInPlans, type PlanConfig } from "../../core/config/plan-config.ts";
import { ApiError } from "../../core/errors.ts";
import { createPrometheusMetrics } from "./prometheus.ts";
import { createRateLimits } from "./rate-limit.ts";
import { route } from "./route.ts";
import { buildServer } from "./server.ts";

const quota = (requests: number, seconds: number) => ({ requests, seconds });

/** Small enough for a test. */
const small: PlanConfig = {
  ...builtInPlans,
  plans: {
    ...builtInPlans.plans,
    free: { monthlyPrice: 0, concurrentRuns: 50, quotas: [quota(4, 3_600)] },
    pro: { monthlyPrice: 29, concurrentRuns: 50, quotas: [quota(4, 60), quota(7, 3_600)] },
  },
  sessions: [quota(6, 60)],
  guests: [quota(3, 60)],
  failedCredentials: quota(5, 600),
};

const opened: Market[] = [];
async function open(marketOptions: MarketOptions = {}): Promise<Market> {
  const market = await openMarket({
    ...marketOptions,
    config: { planConfig: small, ...marketOptions.config },
  });
  opened.push(market);
  return market;
}
after(() => Promise.all(opened.map((market) => market.close())));

const path = "/v1/categories";
const limitsOf = ({ headers }: Reply) => ({
  limit: Number(headers.get("x-ratelimit-limit")),
  remaining: Number(headers.get("x-ratelimit-remaining")),
  reset: Number(headers.get("x-ratelimit-reset")),
});
const unixSeconds = (date: Date) => Math.ceil(date.getTime() / 1000);

async function getTimes(client: Client, times: number, at = path): Promise<Reply[]> {
  const replies: Reply[] = [];
  for (let count = 0; count < times; count++) replies.push(await client.get(at));
  return replies;
}

function assertLimited(reply: Reply, retryAfter?: number): void {
  assertError(reply, 429, "RATE_LIMIT_EXCEEDED");
  assert.equal(limitsOf(reply).remaining, 0);
  if (retryAfter !== undefined) assert.equal(Number(reply.headers.get("retry-after")), retryAfter);
}

suite("the quota of a plan", () => {
  let market: Market;
  before(async () => {
    market = await open();
  });

  test("headers count down; a refusal has Retry-After", async () => {
    const free = await market.createUser();
    const start = market.clock.now;
    const replies = await getTimes(free, 4);
    const reset = unixSeconds(start) + 3_600;
    assert.deepEqual(
      replies.map(limitsOf),
      [3, 2, 1, 0].map((remaining) => ({ limit: 4, remaining, reset })),
    );
    market.clock.forward(100_500);
    const refused = await free.get(path);
    assertLimited(refused, 3_500);
    assert.deepEqual(limitsOf(refused), { limit: 4, remaining: 0, reset });
    const details = assertError(refused, 429, "RATE_LIMIT_EXCEEDED");
    assert.deepEqual(details, {
      limit: 4,
      windowSeconds: 3_600,
      resetAt: new Date(start.getTime() + 3_600_000).toISOString(),
    });
  });

  test("restored when its window ends; the next request starts a new one", async () => {
    const free = await market.createUser();
    await getTimes(free, 5);
    market.clock.forward(3_599_999);
    assertLimited(await free.get(path), 1);
    market.clock.forward(1);
    const reply = await free.get(path);
    assert.equal(reply.status, 200);
    assert.deepEqual(limitsOf(reply), {
      limit: 4,
      remaining: 3,
      reset: unixSeconds(market.clock.now) + 3_600,
    });
  });

  test("X-RateLimit-Reset: rounded up to seconds", async () => {
    const free = await market.createUser();
    market.clock.forward(1);
    const reply = await free.get(path);
    assert.equal(limitsOf(reply).reset, Math.floor(market.clock.now.getTime() / 1000) + 3_601);
  });

  test("several windows: all apply, headers show the one with the smallest remaining share", async () => {
    const pro = await market.createUser({ plan: "pro" });
    const limits = (await getTimes(pro, 4)).map((reply) => limitsOf(reply).limit);
    assert.deepEqual(limits, [4, 4, 4, 4]);
    market.clock.forward(60_000);
    const later = await getTimes(pro, 3);
    assert.deepEqual(
      later.map((reply) => [limitsOf(reply).limit, limitsOf(reply).remaining]),
      [
        [7, 2],
        [7, 1],
        [7, 0],
      ],
    );
    assertLimited(await pro.get(path), 3_540);
  });

  test("several full windows: headers show the one that ends last", async () => {
    const pro = await market.createUser({ plan: "pro" });
    await getTimes(pro, 3);
    market.clock.forward(60_000);
    await getTimes(pro, 4);
    const refused = await pro.get(path);
    assertLimited(refused, 3_540);
    assert.equal(limitsOf(refused).limit, 7);
  });

  test("a refused request: counts in no window", async () => {
    const pro = await market.createUser({ plan: "pro" });
    await getTimes(pro, 9);
    market.clock.forward(60_000);
    const replies = await getTimes(pro, 4);
    assert.deepEqual(
      replies.map(({ status }) => status),
      [200, 200, 200, 429],
      "of the hour's 7 only 4 were charged before",
    );
  });

  test("the IETF's RateLimit fields", async () => {
    const pro = await market.createUser({ plan: "pro" });
    const { headers } = await pro.get(path);
    assert.equal(headers.get("ratelimit-policy"), '"minute";q=4;w=60, "hour";q=7;w=3600');
    assert.equal(headers.get("ratelimit"), '"minute";r=3;t=60');
    market.clock.forward(20_500);
    assert.equal((await pro.get(path)).headers.get("ratelimit"), '"minute";r=2;t=40');
  });

  test("shared by the keys of an account; sessions have their own", async () => {
    const one = await market.createUser();
    const { key } = await createKeyAsOperator(market.service.ctx, {
      userId: one.userId,
      name: "another",
      permissions: ["products:read"],
    });
    const other = market.as(key);
    await getTimes(one, 2);
    assert.equal(limitsOf(await other.get(path)).remaining, 1);
    assert.equal(limitsOf(await one.get(path)).remaining, 0);
    assertLimited(await other.get(path));
    const [first, second] = [await market.createSession(one.userId), await market.createSession(one.userId)];
    await getTimes(first, 5);
    assert.deepEqual([limitsOf(await second.get(path)).limit, (await second.get(path)).status], [6, 429]);
  });

  test("replaced by the account's own quota", async () => {
    const user = await market.createUser({ plan: "enterprise" });
    const own = JSON.stringify([quota(2, 30)]);
    await market.query("update users set quota = $2 where id = $1", [user.userId, own]);
    const statuses = (await getTimes(user, 3)).map(({ status }) => status);
    assert.deepEqual(statuses, [200, 200, 429]);
  });

  test("counts every authenticated request, refused ones too, with headers", async () => {
    const seller = await market.createUser({ plan: "business" });
    const productId = await createProduct(seller);
    const reader = await market.createUser({ plan: "business", permissions: ["products:read"] });
    const etag = (await reader.get(`/v1/products/${productId}`)).headers.get("etag")!;
    const replies = [
      await reader.get(`/v1/products/${productId}`, { "if-none-match": etag }),
      await reader.get("/v1/products?page=0"),
      await reader.get("/v1/nothing"),
      await reader.request("PUT", "/v1/products"),
      await reader.post("/v1/products", {}),
      await reader.get("/v1/products/prod_nothing"),
      await reader.request("HEAD", "/v1/products"),
    ];
    assert.deepEqual(
      replies.map((reply) => [reply.status, limitsOf(reply).remaining]),
      [304, 400, 404, 405, 403, 404, 200].map((status, at) => [status, 998 - at]),
    );
  });

  test("checked after 401, and before 404, 405 and 403", async () => {
    const reader = await market.createUser({ permissions: ["products:read"] });
    await getTimes(reader, 4);
    for (const [method, at] of [
      ["GET", "/v1/nothing"],
      ["PUT", "/v1/products"],
      ["POST", "/v1/products"],
      ["GET", "/v1/purchases"],
    ] as const)
      assertLimited(await reader.request(method, at));
    assertError(await market.as(null).get("/v1/nothing"), 401, "INVALID_API_KEY");
  });

  test("its headers: readable from other origins", async () => {
    const user = await market.createUser();
    const { headers } = await user.get(path, { origin: "https://app.example" });
    const exposed = headers.get("access-control-expose-headers")!.toLowerCase().split(", ");
    for (const name of ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "ratelimit"])
      assert.ok(exposed.includes(name), name);
    assert.ok(exposed.includes("retry-after") && exposed.includes("ratelimit-policy"));
  });

  test("parallel requests: exact", async () => {
    const free = await market.createUser();
    const replies = await Promise.all(Array.from({ length: 20 }, () => free.get(path)));
    assert.equal(replies.filter(({ status }) => status === 200).length, 4);
  });
});

suite("visitors without an account", () => {
  const from = (ip: string) => ({ "x-forwarded-for": ip });
  let market: Market;
  before(async () => {
    market = await open({ config: { trustProxy: ["127.0.0.1"] } });
  });
  const visit = (ip: string) => {
    const { name, value } = market.service.ctx.guests.cookie();
    return market.as(null).get(path, { cookie: `${name}=${value}`, ...from(ip) });
  };

  test("limited by address, with any number of cookies", async () => {
    const replies = [];
    for (let times = 0; times < 4; times++) replies.push(await visit("203.0.113.1"));
    assert.deepEqual(
      replies.map(({ status }) => status),
      [200, 200, 200, 429],
    );
    assert.deepEqual(limitsOf(replies[0]!), {
      limit: 3,
      remaining: 2,
      reset: unixSeconds(market.clock.now) + 60,
    });
    assert.equal((await visit("203.0.113.2")).status, 200);
  });

  test("an IPv6 /64: one quota", async () => {
    for (const host of ["1", "2", "3"]) assert.equal((await visit(`2001:db8::${host}`)).status, 200);
    assert.equal((await visit("2001:db8::ffff")).status, 429);
    assert.equal((await visit("2001:db8:0:1::1")).status, 200);
  });
});

suite("wrong credentials", () => {
  const wrong = () => mintKey("test").value;
  const failFrom = (market: Market, ip: string, times = 1) =>
    Promise.all(Array.from({ length: times }, () => market.as(wrong()).get(path, { "x-forwarded-for": ip })));

  test("over the limit from an address: 429; a right one still passes", async () => {
    const market = await open();
    const user = await market.createUser({ plan: "business" });
    const session = await market.createSession(user.userId);
    for (let times = 0; times < 5; times++)
      assertError(await market.as(wrong()).get(path), 401, "INVALID_API_KEY");
    market.clock.forward(100_000);
    const refused = await market.as(wrong()).get(path);
    assertError(refused, 429, "RATE_LIMIT_EXCEEDED");
    assert.equal(refused.headers.get("retry-after"), "500");
    assertError(await market.as(wrong()).get("/v1/nothing"), 429, "RATE_LIMIT_EXCEEDED");
    assertError(await market.as(null).get(path), 401, "INVALID_API_KEY");
    assert.equal((await user.get(path)).status, 200, "an office shares an address");
    assert.equal((await session.get(path)).status, 200);
    market.clock.forward(500_000);
    assertError(await market.as(wrong()).get(path), 401, "INVALID_API_KEY");
  });

  test("on /v1: sign-in still works", async () => {
    const market = await open();
    await failFrom(market, "203.0.113.1", 30);
    const login = { email: "ada@example.com", password: "correct horse battery" };
    assertError(await market.as(null).post("/api/auth/login", login), 401, "INVALID_CREDENTIALS");
  });

  test("at sign-in: blocked for their address; API keys still work", async () => {
    const market = await open();
    const user = await market.createUser({ plan: "business" });
    const signIn = (token: string) => market.as(null).post("/api/auth/verify", { token });
    for (let times = 0; times < 5; times++) assertError(await signIn(`wrong${times}`), 401, "INVALID_TOKEN");
    assertError(await signIn("wrong"), 429, "RATE_LIMIT_EXCEEDED");
    assertError(
      await market.as(null).post("/api/auth/magic-link", { email: "ada@example.com" }),
      429,
      "RATE_LIMIT_EXCEEDED",
    );
    assert.equal((await user.get(path)).status, 200);
  });

  test("counted wherever a credential may be sent; a missing one does not count", async () => {
    const market = await open();
    const nobody = market.as(null);
    for (let times = 0; times < 10; times++) assertError(await nobody.get(path), 401, "INVALID_API_KEY");
    await nobody.get(path, { authorization: "Bearer nonsense" });
    await nobody.get(`${path}?api_key=${wrong()}`);
    await nobody.get(path, { cookie: "__Host-session=a.b.c" });
    await nobody.get(path, { cookie: "__Host-guest=x.y" });
    await nobody.get("/v1/nothing", { authorization: "Bearer a.b.c" });
    assertError(await market.as(wrong()).get(path), 429, "RATE_LIMIT_EXCEEDED");
  });

  test("parallel guesses: at most the allowed number is distinguishable from the right one", async () => {
    const market = await open();
    const statuses = (await failFrom(market, "203.0.113.1", 30)).map(({ status }) => status);
    assert.equal(statuses.filter((status) => status === 401).length, 5);
  });

  test("no trusted proxy: counted by the connection's address, X-Forwarded-For is ignored", async () => {
    const market = await open();
    for (let host = 1; host <= 5; host++) await failFrom(market, `203.0.113.${host}`);
    const [refused] = await failFrom(market, "203.0.113.99");
    assertError(refused!, 429, "RATE_LIMIT_EXCEEDED");
  });

  test("a trusted proxy: counted by the address it adds, not by the client's header", async () => {
    const market = await open({ config: { trustProxy: ["127.0.0.1"] } });
    for (let host = 1; host <= 5; host++) await failFrom(market, `198.51.100.${host}, 203.0.113.1`);
    assertError((await failFrom(market, "203.0.113.1"))[0]!, 429, "RATE_LIMIT_EXCEEDED");
    assertError((await failFrom(market, "203.0.113.2"))[0]!, 401, "INVALID_API_KEY");
  });

  test("at sign-in, over the limit from one address after another: each stays blocked", async () => {
    const market = await open({ config: { trustProxy: ["127.0.0.1"] } });
    const guess = (ip: string) =>
      market.as(null).post("/api/auth/verify", { token: "wrong" }, { "x-forwarded-for": ip });
    for (const ip of ["203.0.113.1", "203.0.113.2"]) {
      for (let times = 0; times < 5; times++) assertError(await guess(ip), 401, "INVALID_TOKEN");
      market.clock.forward(1_000);
    }
    const login = { email: "ada@example.com" };
    for (const ip of ["203.0.113.1", "203.0.113.2"])
      assertError(
        await market.as(null).post("/api/auth/magic-link", login, { "x-forwarded-for": ip }),
        429,
        "RATE_LIMIT_EXCEEDED",
      );
  });

  test("an IPv6 /64: one counter", async () => {
    const market = await open({ config: { trustProxy: ["127.0.0.1"] } });
    for (let host = 1; host <= 5; host++) await failFrom(market, `2001:db8::${host}`);
    assertError((await failFrom(market, "2001:db8::dead:beef"))[0]!, 429, "RATE_LIMIT_EXCEEDED");
    assertError((await failFrom(market, "2001:db8:0:1::1"))[0]!, 401, "INVALID_API_KEY");
  });
});

suite("wrong passwords and sign-in tokens", () => {
  const signIn = endpoint({
    name: "auth.login",
    method: "POST",
    base: "/api/auth",
    path: "/login",
    summary: "Sign in",
    access: { who: "public" },
    request: json(z.strictObject({ code: z.enum(["INVALID_CREDENTIALS", "TWO_FACTOR_REQUIRED"]) }), {
      code: "INVALID_CREDENTIALS",
    }),
    response: one(z.object({})),
  });

  test("counted by address like wrong keys; a missing second-factor code is not", async () => {
    const market = await open();
    const { ctx } = market.service;
    const limits = createRateLimits({
      counters: ctx.counters,
      now: ctx.now,
      allowanceOf: () => assert.fail("nobody is identified here"),
      failedCredentials: small.failedCredentials,
    });
    const app = await buildServer({
      ctx,
      routes: [route(signIn, (_ctx, _caller, { body }) => Promise.reject(new ApiError(body.code)))],
      identify: { key: nobody, session: nobody, token: nobody, guest: () => null },
      limits,
      metrics: createPrometheusMetrics({
        registry: new Registry(),
        jobs: async () => [],
        openMoney: async () => [],
        lastLedgerCheck: async () => undefined,
        pendingSales: async () => ({ count: 0, oldestAt: null }),
        oldestPendingEvent: async () => null,
        clockSkew: async () => 0,
        now: ctx.now,
      }),
      addPages: () => {},
    });
    const codeOf = async (code: string) => {
      const reply = await app.inject({ method: "POST", url: "/api/auth/login", payload: { code } });
      return reply.json().error.code;
    };
    for (let times = 0; times < 6; times++)
      assert.equal(await codeOf("TWO_FACTOR_REQUIRED"), "TWO_FACTOR_REQUIRED");
    for (let times = 0; times < 5; times++)
      assert.equal(await codeOf("INVALID_CREDENTIALS"), "INVALID_CREDENTIALS");
    assert.equal(await codeOf("INVALID_CREDENTIALS"), "RATE_LIMIT_EXCEEDED");
    await app.close();
  });
});

const nobody = async () => null;

suite("two services on one Redis", { skip: whyNoRedis }, () => {
  test("an account and an address: one limit together", async (t) => {
    holdDeadlines(t);
    const redis = await startRedis();
    const config = { redisUrl: redis.url, environment: "test" as const };
    const [one, other] = [await open({ config }), await open({ config })];
    const here = await one.createUser();
    const there = await other.createUser();
    // The same account on both: the test's services have separate databases.
    await other.query("update api_keys set user_id = $2 where user_id = $1", await twin(other, there, here));
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, at) => (at % 2 ? here : there).get(path)),
    );
    assert.equal(replies.filter(({ status }) => status === 200).length, 4);
    const guesses = await Promise.all(
      Array.from({ length: 20 }, (_, at) => (at % 2 ? one : other).as(mintKey("test").value).get(path)),
    );
    assert.equal(guesses.filter(({ status }) => status === 401).length, 5);
    for (const market of [one, other]) {
      opened.splice(opened.indexOf(market), 1);
      await market.close();
    }
    await redis.stop();
  });
});

/** Creates an account with the same id as one of the other service; returns both ids. */
async function twin(market: Market, local: Client, elsewhere: Client): Promise<[string, string]> {
  await market.query(
    `insert into users (id, email, name, created_at)
     select $2, 'twin@example.com', name, created_at from users where id = $1`,
    [local.userId, elsewhere.userId],
  );
  return [local.userId, elsewhere.userId];
}
