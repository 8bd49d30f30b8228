import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, suite, test } from "node:test";
import { endpoints } from "@stoa/contract";
import fc from "fast-check";
import { v7 } from "uuid";
import { buyProduct, createDraft, createProduct } from "../../../test/factories.ts";
import { runs, sampleOf } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { GUEST_COOKIE, SESSION_COOKIE } from "./authenticate.ts";
import { createGuests } from "./guests.ts";

let market: Market;
let seller: Client;
let productId: string;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ name: "Seller" });
  productId = await createProduct(seller);
});
after(() => market.close());

const guestCookie = () => market.service.ctx.guests.cookie();
const asGuest = (value: string) => ({ cookie: `${GUEST_COOKIE}=${value}` });
const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const visit = (path: string, value = guestCookie().value) =>
  market.as(null).get(path, { ...asGuest(value), "user-agent": FIREFOX });
const assertStranger = (reply: Reply) => assertError(reply, 401, "INVALID_API_KEY");

suite("a visitor", () => {
  test("reads lists, categories, a product and its reviews", async () => {
    for (const path of [
      "/v1/products",
      "/v1/products?search=haiku&sort=price",
      "/v1/categories",
      `/v1/products/${productId}`,
      `/v1/products/${productId}/reviews`,
    ]) {
      const reply = await visit(path);
      assert.equal(reply.status, 200, `${path} ${reply.text}`);
    }
  });

  test("sees what a stranger sees of a product: no content, no files, published products only", async () => {
    const { data } = (await visit(`/v1/products/${productId}`)).body;
    assert.deepEqual([data.content, data.files, data.access.reason], [null, null, "none"]);
    assertError(await visit(`/v1/products/${await createDraft(seller)}`), 404, "PRODUCT_NOT_FOUND");
  });

  test("has no list of own products", async () => {
    assert.deepEqual((await visit("/v1/products?author=me")).body.data, []);
    assertError(await visit("/v1/products?author=me&status=draft"), 400, "INVALID_REQUEST", "status");
  });

  test("every other endpoint: 403, with any further credential-like header", async () => {
    const proof = { "sec-fetch-site": "same-origin", "x-requested-with": "fetch", origin: market.origin };
    const headers = { ...asGuest(guestCookie().value), ...proof };
    for (const { name, method, base, path, access } of endpoints) {
      if (base !== "/v1" || access.who === "visitor" || access.who === "public") continue;
      const reply = await market
        .as(null)
        .request(method, base + path.replace(/:\w+/g, productId), { headers });
      assert.equal(`${reply.status} ${reply.body.error?.code}`, "403 UNAUTHORIZED", name);
    }
  });

  test("an unknown path: 404", async () => {
    assertError(await visit("/v1/nothing"), 404, "NOT_FOUND");
  });

  test("counts as one viewer for any age of the cookie; another browser is another viewer", async () => {
    const product = await createProduct(seller);
    const views = async () => {
      await market.service.ctx.views.flush(market.service.ctx);
      return (await seller.get(`/v1/products/${product}`)).body.data.stats.views;
    };
    const { value } = guestCookie();
    for (let times = 0; times < 3; times++) await visit(`/v1/products/${product}`, value);
    assert.equal(await views(), 1);
    await visit(`/v1/products/${product}`);
    assert.equal(await views(), 2);
  });
});

suite("/v1 without any credential: 401", () => {
  test("on every endpoint, also with unrelated cookies", async () => {
    const headers = { cookie: `guest=${guestCookie().value}; theme=dark; session=x` };
    const closed = endpoints.filter(({ access }) => access.who !== "public");
    for (const { method, path } of closed)
      assertStranger(await market.as(null).request(method, `/v1${path}`));
    for (const { method, path } of sampleOf(closed))
      assertStranger(await market.as(null).request(method, `/v1${path}`, { headers }));
  });
});

suite("a guest cookie", () => {
  test("HttpOnly, Secure and bound to our host", () => {
    const { name, maxAgeSeconds } = guestCookie();
    assert.equal(name, "__Host-guest");
    assert.equal(maxAgeSeconds, 30 * 86_400);
  });

  test("changed at any place: refused", async () => {
    const { value } = guestCookie();
    const changed = fc.oneof(
      fc
        .tuple(fc.nat(value.length - 1), fc.constantFrom(..."0aZ9f_-.b"))
        .map(([at, letter]) => value.slice(0, at) + letter + value.slice(at + 1)),
      fc.nat(value.length - 1).map((length) => value.slice(0, length)),
      fc.constantFrom("x", ".", "=").map((more) => value + more),
    );
    const property = fc.asyncProperty(changed, async (forged) => {
      // The last of 43 base64url characters has two unused bits; only our own spelling is accepted.
      if (forged !== value) assertStranger(await visit("/v1/products", forged));
    });
    await fc.assert(property, { numRuns: runs(200, 10) });
  });

  test("unsigned, or with another signature: refused", async () => {
    const id = v7();
    const [, signature] = guestCookie().value.split(".");
    for (const forged of [
      "",
      id,
      `${id}.`,
      `.${signature}`,
      `${id}.${signature}`,
      `${id}.${signature}.${signature}`,
      `${id}.${randomBytes(32).toString("base64url")}`,
      `usr_x.${signature}`,
    ])
      assertStranger(await visit("/v1/products", forged));
  });

  test("of another environment with other session keys: refused", async () => {
    const other = await openMarket({ config: { environment: "production", mail: "off" } });
    try {
      assertStranger(await visit("/v1/products", other.service.ctx.guests.cookie().value));
    } finally {
      await other.close();
    }
  });

  test("valid while its key is in the ring", async () => {
    const [old, now] = [randomBytes(32), randomBytes(32)];
    const { value } = createGuests([old]).cookie();
    assert.equal(createGuests([now, old]).identify(value)?.kind, "guest");
    assert.equal(createGuests([now]).identify(value), null);
  });

  test("beside an invalid header, query key or session cookie: 401", async () => {
    const { cookie } = asGuest(guestCookie().value);
    const nobody = market.as(null);
    for (const authorization of ["Bearer stoa_test_x", "Bearer x.y.z", "Basic eDp5", "", "Bearer"])
      assertStranger(await nobody.get("/v1/products", { cookie, authorization }));
    assertStranger(await nobody.get("/v1/products?api_key=stoa_test_x", { cookie }));
    assertStranger(await nobody.get("/v1/products", { cookie: `${cookie}; ${SESSION_COOKIE}=x.y.z` }));
  });

  test("beside a valid session: the session counts", async () => {
    const buyer = await market.createUser();
    await buyProduct(buyer, productId);
    const { cookie } = asGuest(guestCookie().value);
    const reply = await buyer.get(`/v1/products/${productId}`, { cookie });
    assert.equal(reply.body.data.access.reason, "purchased");
    const { key } = await market.createSession(buyer.userId);
    const both = { cookie: `${cookie}; ${SESSION_COOKIE}=${key}` };
    assert.equal((await market.as(null).get("/v1/account", both)).status, 200);
  });
});
