import assert from "node:assert/strict";
import { get as httpGet } from "node:http";
import { after, before, suite, test } from "node:test";
import { createProduct } from "../../../test/factories.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { builtInPlans } from "../../core/config/plan-config.ts";
import { createLog } from "../../core/log.ts";
import { SESSION_COOKIE } from "../../platform/http/authenticate.ts";
import { WebBuilds } from "../builds/web-builds.ts";

let market: Market;
let seller: Client;
let poet: string;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ role: "seller", name: "Ada" });
  poet = await createProduct(seller, { title: "Poet" });
});
after(() => market.close());

const AS_BROWSER = { accept: "text/html" };

async function visit(path: string, headers: Record<string, string> = {}, origin = market.origin) {
  const response = await fetch(origin + path, { redirect: "manual", headers: { ...AS_BROWSER, ...headers } });
  const header = (name: string) => response.headers.get(name);
  return { status: response.status, text: await response.text(), header, caching: header("cache-control") };
}

/** fetch() resolves dot segments before it sends them. */
const statusOfRaw = (path: string) =>
  new Promise<number | undefined>((done, fail) => {
    const { hostname, port } = new URL(market.origin);
    const request = httpGet({ hostname, port, path, headers: AS_BROWSER }, (response) => {
      response.resume();
      done(response.statusCode);
    });
    request.on("error", fail);
  });

test("dot segments for a name: 404, not another address of the API", async () => {
  for (const area of ["p", "u", "shared"])
    for (const name of [".", "..", "%2e", "%2E%2e", ".%2e"])
      assert.equal(await statusOfRaw(`/${area}/${name}`), 404, `/${area}/${name}`);
});

test("a title whose slug would end within a character: its page, the feed and the sitemap work", async () => {
  const title = `a${"𐌀".repeat(40)}`;
  const id = await createProduct(seller, { title });
  const { status, header } = await visit(`/p/${id}`);
  assert.equal(status, 301);
  const location = String(header("location"));
  assert.equal(decodeURIComponent(location), `/p/a${"𐌀".repeat(29)}-${id}`);
  assert.equal((await visit(location)).status, 200);
  assert.ok((await visit("/feed.xml")).text.includes(location));
  const [, part] = /<loc>([^<]+)/.exec((await visit("/sitemap.xml")).text) ?? [];
  assert.ok((await visit(new URL(String(part)).pathname)).text.includes(location));
});

test("a text of the address that is cut within a character: 200", async () => {
  const cut = (length: number) => `${"a".repeat(length - 1)}%F0%9F%98%80`;
  for (const path of [`/feed.xml?author=${cut(100)}`, `/feed.xml?q=${cut(200)}`, `/search?q=${cut(200)}`]) {
    const { status, text } = await visit(path);
    assert.equal(status, 200, path);
    assert.ok(!text.includes("\ufffd"), path);
  }
});

test("a redirect to the present address: keeps the query, and is not cached, because a title may change back", async () => {
  const old = await visit(`/p/old-${poet}?from=letter`);
  assert.deepEqual([old.status, old.header("location")], [301, `/p/poet-${poet}?from=letter`]);
  assert.equal(old.caching, "private, no-cache");
  const { author } = (await seller.get(`/v1/products/${poet}`)).body.data;
  const session = await market.createSession(seller.userId);
  assert.equal((await session.patch("/v1/account", { handle: "ada-l" })).status, 200);
  const byId = await visit(`/u/${author.id}?page=2`);
  assert.deepEqual([byId.status, byId.header("location")], [301, "/u/ada-l?page=2"]);
  assert.equal(byId.caching, "private, no-cache");
});

test("a page of a member: no cache keeps it, and none shows it after the sign-out", async () => {
  assert.equal((await visit("/")).caching, "private, no-cache");
  const { key } = await market.createSession(seller.userId);
  for (const path of ["/", "/search", `/p/poet-${poet}`, "/account"]) {
    const { status, caching } = await visit(path, { cookie: `${SESSION_COOKIE}=${key}` });
    assert.deepEqual([status, caching], [200, "no-store"], path);
  }
});

const carriedBy = (
  text: string,
): Record<string, { status: number; uses?: number; body: { data: unknown } }> => {
  const [, data = "{}"] = /id="initial-data">(.*?)<\/script>/s.exec(text) ?? [];
  return JSON.parse(data).responses;
};

test("a page of a member: carries the responses of its first view, and those of the header", async () => {
  const { key } = await market.createSession(seller.userId);
  const headers = { cookie: `${SESSION_COOKIE}=${key}` };
  const header = ["/account", "/notifications?limit=1&page=1&unread=true"];
  for (const [path, requests] of [
    ["/library", ["/purchases?limit=100&page=1", "/ai/executions?limit=100&page=1"]],
    ["/settings/api?page=2", ["/api-keys?limit=50&page=2", "/account/callback-secret"]],
    ["/orders?status=failed", []],
    ["/account/data", []],
  ] as const) {
    const responses = carriedBy((await visit(path, headers)).text);
    assert.deepEqual(Object.keys(responses).sort(), [...header, ...requests].sort(), path);
    for (const [request, { status }] of Object.entries(responses)) assert.equal(status, 200, request);
  }
  // The header and the form.
  assert.equal(carriedBy((await visit("/account", headers)).text)["/account"]?.uses, 2);
});

test("an id with dots or slashes in the address of a member's page: no request by it", async () => {
  const { key } = await market.createSession(seller.userId);
  for (const id of ["%2e%2e", "a%2Fb", "a%3Fb"]) {
    const { text } = await visit(`/orders/${id}`, { cookie: `${SESSION_COOKIE}=${key}` });
    assert.ok(!Object.keys(carriedBy(text)).some((path) => path.startsWith("/purchases")), id);
  }
});

test("without a build: the page has its content and reloads; after a failed build it says what to do", async (t) => {
  const { ctx } = market.service;
  const builds = ctx.webBuilds;
  t.after(() => {
    ctx.webBuilds = builds;
  });
  ctx.webBuilds = new WebBuilds("/nowhere", () => Promise.resolve());
  const path = `/p/poet-${poet}`;
  const waiting = await visit(path);
  assert.equal(waiting.status, 200);
  for (const part of ["<h1", "is being built", 'http-equiv="refresh" content="2"'])
    assert.ok(waiting.text.includes(part), part);
  await ctx.webBuilds.ensureCurrent(createLog("silent"));
  const failed = await visit(path);
  for (const part of ["<h1", "npm run build", 'http-equiv="refresh" content="60"'])
    assert.ok(failed.text.includes(part), part);
});

suite("a visitor past the quota", () => {
  const QUOTA = 3;
  let limited: Market;
  let product: string;
  before(async () => {
    const guests = [{ requests: QUOTA, seconds: 60 }];
    limited = await openMarket({ config: { planConfig: { ...builtInPlans, guests } } });
    product = await createProduct(await limited.createUser({ role: "seller" }), { title: "Poet" });
    const paths = ["/", "/", "/"];
    for (const path of paths)
      assert.equal((await visit(path, {}, limited.origin)).status, 200, "a page counts as one request");
  });
  after(() => limited.close());

  test("each page: 429 with Retry-After, and never 404, by which engines would forget it", async () => {
    for (const path of ["/", "/search", `/p/poet-${product}`, "/u/ada", "/shared/x"]) {
      const { status, header, text } = await visit(path, {}, limited.origin);
      assert.equal(status, 429, path);
      assert.match(String(header("retry-after")), /^\d+$/, path);
      assert.ok(text.includes("Too many requests"), path);
      assert.ok(!text.includes("noindex"), path);
    }
  });

  test("the feed and the sitemap's parts: 429", async () => {
    const [, part] = /<loc>([^<]+)/.exec((await visit("/sitemap.xml", {}, limited.origin)).text) ?? [];
    for (const path of ["/feed.xml", new URL(String(part)).pathname]) {
      const { status, header } = await visit(path, {}, limited.origin);
      assert.equal(status, 429, path);
      assert.match(String(header("retry-after")), /^\d+$/, path);
    }
  });
});
