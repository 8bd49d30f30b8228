import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { createProduct } from "../../../test/factories.ts";
import { type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";

let market: Market;
let member: Client;
let productId: string;
before(async () => {
  market = await openMarket();
  member = await market.createUser();
  productId = await createProduct(member);
});
after(() => market.close());

const origin = "https://app.example";
const preflight = (path: string, method: string, headers = "authorization, content-type, idempotency-key") =>
  market.as(null).request("OPTIONS", path, {
    headers: { origin, "access-control-request-method": method, "access-control-request-headers": headers },
  });
const corsHeadersOf = (reply: Reply) =>
  [...reply.headers.keys()].filter((name) => name.startsWith("access-control-"));

suite("CORS", () => {
  test("/v1: readable from any origin, errors too, without credentials", async () => {
    for (const [client, path] of [
      [member, "/v1/products"],
      [member, `/v1/products/${productId}`],
      [member, "/v1/nothing"],
      [member, "/v1/products?page=0"],
      [member, "/v1/products/%zz"],
      [market.as(null), "/v1/products"],
      [market.as(null), "/v1/openapi.json"],
      [market.as(null), "/v1/purchases/x/download"],
    ] as const) {
      const reply = await client.get(path, { origin });
      assert.equal(reply.headers.get("access-control-allow-origin"), "*", path);
      assert.equal(reply.headers.get("access-control-allow-credentials"), null);
      assert.match(
        reply.headers.get("access-control-expose-headers")!,
        /ETag.*Link.*Retry-After.*WWW-Authenticate.*X-Request-Id/,
      );
    }
  });

  for (const method of ["GET", "POST", "PATCH", "PUT", "DELETE"]) {
    test(`a preflight without a key: ${method} is allowed`, async () => {
      const reply = await preflight(`/v1/products/${productId}`, method);
      assert.equal(reply.status, 204, reply.text);
      assert.equal(reply.text, "");
      assert.equal(reply.headers.get("access-control-allow-origin"), "*");
      assert.equal(reply.headers.get("access-control-allow-credentials"), null);
      assert.ok(reply.headers.get("access-control-allow-methods")!.split(", ").includes(method));
      const allowed = reply.headers.get("access-control-allow-headers")!;
      for (const name of ["authorization", "content-type", "idempotency-key"])
        assert.ok(allowed.includes(name));
      assert.equal(reply.headers.get("access-control-max-age"), "86400");
    });
  }

  test("outside /v1: not readable, no preflight", async () => {
    for (const path of [
      "/healthz",
      "/readyz",
      "/metrics",
      "/docs",
      "/docs/errors",
      "/docs/docs.js",
      "/",
      "/v1x",
      "/nothing",
    ]) {
      assert.deepEqual(corsHeadersOf(await market.as(null).get(path, { origin })), [], path);
      const reply = await preflight(path, "GET");
      assert.equal(reply.status, 404, path);
      assert.deepEqual(corsHeadersOf(reply), [], path);
    }
  });
});

test("OPTIONS without an origin: answered, no effect", async () => {
  const reply = await market.as(null).request("OPTIONS", "/v1/products");
  assert.equal(reply.status, 204);
  assert.equal(reply.text, "");
});

test("HEAD of the API: GET without the body; without a key 401", async () => {
  const reply = await member.request("HEAD", "/v1/products");
  assert.deepEqual([reply.status, reply.text], [200, ""]);
  assert.equal((await market.as(null).request("HEAD", "/v1/products")).status, 401);
});

test("HEAD of a page: GET without the body", async () => {
  for (const path of ["/healthz", "/docs", "/docs/errors", "/docs/docs.css"]) {
    const [head, get] = [await member.request("HEAD", path), await member.get(path)];
    assert.deepEqual([head.status, head.text], [200, ""], path);
    assert.equal(head.headers.get("content-type"), get.headers.get("content-type"));
    assert.equal(head.headers.get("content-length"), get.headers.get("content-length"));
  }
});

test("every answer: has the security headers", async () => {
  const nobody = market.as(null);
  const etag = (await member.get(`/v1/products/${productId}`)).headers.get("etag")!;
  const answers: [status: number, Reply][] = [
    [200, await member.get("/v1/products")],
    [304, await member.get(`/v1/products/${productId}`, { "if-none-match": etag })],
    [400, await member.post("/v1/products", {})],
    [401, await nobody.get("/v1/products")],
    [403, await nobody.get("/v1/purchases/x/receipt")],
    [404, await member.get("/v1/nothing")],
    [404, await nobody.get("/nothing")],
    [404, await member.get("/v1/products/%zz")],
    [405, await member.delete("/v1/products")],
    [413, await member.request("POST", "/v1/products", { body: "x".repeat(1024 * 1024 + 1) })],
    [
      415,
      await member.request("POST", "/v1/products", { body: "x", headers: { "content-type": "text/plain" } }),
    ],
    [204, await preflight("/v1/products", "POST")],
    [200, await nobody.get("/v1/openapi.json")],
    [200, await nobody.get("/healthz")],
    [200, await nobody.get("/docs")],
    [200, await nobody.get("/docs/swagger-ui.js")],
    [200, await nobody.get("/")],
    [302, await nobody.get("/wishlist")],
  ];
  for (const [status, { headers, ...reply }] of answers) {
    assert.equal(reply.status, status, reply.text.slice(0, 200));
    assert.equal(headers.get("x-content-type-options"), "nosniff");
    assert.equal(headers.get("x-frame-options"), "DENY");
    assert.equal(headers.get("referrer-policy"), "no-referrer");
    assert.equal(headers.get("cross-origin-opener-policy"), "same-origin");
    assert.match(headers.get("content-security-policy")!, /^default-src 'none'.*frame-ancestors 'none'/);
    assert.ok(headers.get("x-request-id"));
    assert.equal(headers.get("server"), null);
    assert.equal(headers.get("x-powered-by"), null);
  }
});
