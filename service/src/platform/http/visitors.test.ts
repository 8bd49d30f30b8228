import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, suite, test } from "node:test";
import { endpoints } from "@stoa/contract";
import fc from "fast-check";
import { v7 } from "uuid";
import { buyProduct, createDraft, createProduct } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
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
  test("sees the list, the categories, a product and its reviews", async () => {
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

  test("sees of a product what a stranger sees: no content, no file, nothing that is not for sale", async () => {
    const { data } = (await visit(`/v1/products/${productId}`)).body;
    assert.deepEqual([data.content, data.files, data.access.reason], [null, null, "none"]);
    assertError(await visit(`/v1/products/${await createDraft(seller)}`), 404, "PRODUCT_NOT_FOUND");
  });

  test("has no shelf of their own", async () => {
    assert.deepEqual((await visit("/v1/products?author=me")).body.data, []);
    assertError(await visit("/v1/products?author=me&status=draft"), 400, "INVALID_REQUEST", "status");
  });

  test("does nothing else: 403 on every other endpoint, whatever proof comes along", async () => {
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

  test("of a path that does not exist hears 404, as everybody whom the API knows", async () => {
    assertError(await visit("/v1/nothing"), 404, "NOT_FOUND");
  });

  test("counts as one viewer, whatever the cookie's age, and another browser as another", async () => {
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

suite("without any credential /v1 stays 401", () => {
  test("on every endpoint, also with cookies of another name", async () => {
    for (const { method, path, access } of endpoints) {
      if (access.who === "public") continue;
      const headers = { cookie: `guest=${guestCookie().value}; theme=dark; session=x` };
      assertStranger(await market.as(null).request(method, `/v1${path}`, { headers }));
      assertStranger(await market.as(null).request(method, `/v1${path}`));
    }
  });
});

suite("a guest cookie", () => {
  test("is one that only our own server reads and sends", () => {
    const { name, maxAgeSeconds } = guestCookie();
    assert.equal(name, "__Host-guest");
    assert.equal(maxAgeSeconds, 30 * 86_400);
  });

  test("is refused when anything of it is changed, at any place", async () => {
    const { value } = guestCookie();
    const changed = fc.oneof(
      fc
        .tuple(fc.nat(value.length - 1), fc.constantFrom(..."0aZ9f_-.b"))
        .map(([at, letter]) => value.slice(0, at) + letter + value.slice(at + 1)),
      fc.nat(value.length - 1).map((length) => value.slice(0, length)),
      fc.constantFrom("x", ".", "=").map((more) => value + more),
    );
    const property = fc.asyncProperty(changed, async (forged) => {
      // The last of 43 letters holds two bits that say nothing; we take it as we wrote it and in no other way.
      if (forged !== value) assertStranger(await visit("/v1/products", forged));
    });
    await fc.assert(property, { numRuns: runs(200) });
  });

  test("is refused when it is made up: unsigned, signed by nobody, or with another's signature", async () => {
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

  test("of another environment, which has other session keys, is refused", async () => {
    const other = await openMarket({ config: { environment: "production", mail: "off" } });
    try {
      assertStranger(await visit("/v1/products", other.service.ctx.guests.cookie().value));
    } finally {
      await other.close();
    }
  });

  test("is good as long as its key is in the ring", async () => {
    const [old, now] = [randomBytes(32), randomBytes(32)];
    const { value } = createGuests([old]).cookie();
    assert.equal(createGuests([now, old]).identify(value)?.kind, "guest");
    assert.equal(createGuests([now]).identify(value), null);
  });

  test("rescues no credential that is worth nothing: header, query and session cookie come first", async () => {
    const { cookie } = asGuest(guestCookie().value);
    const nobody = market.as(null);
    for (const authorization of ["Bearer stoa_test_x", "Bearer x.y.z", "Basic eDp5", "", "Bearer"])
      assertStranger(await nobody.get("/v1/products", { cookie, authorization }));
    assertStranger(await nobody.get("/v1/products?api_key=stoa_test_x", { cookie }));
    assertStranger(await nobody.get("/v1/products", { cookie: `${cookie}; ${SESSION_COOKIE}=x.y.z` }));
  });

  test("gives way to whoever is known: the buyer beside the cookie is the buyer", async () => {
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
