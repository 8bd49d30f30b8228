import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { buyProduct, createProduct, refundEverything } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { HOUR_MS } from "../../core/dates.ts";
import { newUuid, toId } from "../../core/ids.ts";

const QUARTER_MS = 15 * 60_000;

let market: Market;
let seller: Client;
let visitor: Client;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ name: "Seller" });
  visitor = market.as(null);
});
after(() => market.close());

interface Links {
  buyer: Client;
  orderId: string;
  urls: string[];
}

async function createLinks(): Promise<Links> {
  const buyer = await market.createUser({ name: "Buyer" });
  const orderId = await buyProduct(buyer, await createProduct(seller));
  return { buyer, orderId, urls: await linksOf(buyer, orderId) };
}

async function linksOf(buyer: Client, orderId: string): Promise<string[]> {
  const { downloadUrl, receipt } = (await buyer.get(`/v1/purchases/${orderId}`)).body.data;
  return [downloadUrl, receipt.url, receipt.pdf];
}

async function assertDead(url: string): Promise<void> {
  assertError(await visitor.get(url), 403, "UNAUTHORIZED");
}

/** Returns the URL with one parameter replaced. */
function withParameter(url: string, name: string, change: (value: string) => string): string {
  const changed = new URL(url);
  changed.searchParams.set(name, change(changed.searchParams.get(name)!));
  return changed.href;
}

test("every link: works in a plain browser, and no cache stores it", async () => {
  const { urls } = await createLinks();
  const types = ["text/markdown; charset=utf-8", "text/html; charset=utf-8", "application/pdf"];
  for (const [at, url] of urls.entries()) {
    const reply = await fetch(url);
    assert.equal(reply.status, 200);
    assert.equal(reply.headers.get("content-type"), types[at]);
    assert.equal(reply.headers.get("cache-control"), "private, no-store");
    assert.equal(reply.headers.get("referrer-policy"), "no-referrer");
    assert.ok((await reply.text()).length > 0);
  }
});

test("a link without its signature, or with half of it: refused", async () => {
  const { urls } = await createLinks();
  for (const url of urls) {
    const bare = url.split("?")[0]!;
    await assertDead(bare);
    await assertDead(`${bare}?expires=${new URL(url).searchParams.get("expires")}`);
    await assertDead(`${bare}?signature=${new URL(url).searchParams.get("signature")}`);
    await assertDead(withParameter(url, "signature", (signature) => signature.slice(0, -2)));
    await assertDead(withParameter(url, "signature", () => ""));
    await assertDead(`${url}&signature=x`);
  }
});

test("a signature with one changed character: refused", async () => {
  const { urls } = await createLinks();
  const other = (character: string) => (character === "A" ? "B" : "A");
  for (let at = 0; at < 42; at += 5) {
    await assertDead(
      withParameter(
        urls[0]!,
        "signature",
        (text) => text.slice(0, at) + other(text[at]!) + text.slice(at + 1),
      ),
    );
  }
});

test("a changed expiry: refused", async () => {
  const { urls } = await createLinks();
  for (const url of urls) {
    await assertDead(withParameter(url, "expires", (seconds) => String(Number(seconds) + 1)));
    await assertDead(withParameter(url, "expires", (seconds) => `${seconds}0`));
    await assertDead(withParameter(url, "expires", () => "never"));
  }
});

test("a signature: valid for its own order and page only", async () => {
  const [mine, theirs] = [await createLinks(), await createLinks()];
  const queryOf = (url: string) => url.split("?")[1]!;
  for (const [at, url] of mine.urls.entries()) {
    const path = url.split("?")[0]!;
    await assertDead(`${path}?${queryOf(theirs.urls[at]!)}`);
    await assertDead(`${path}?${queryOf(mine.urls[(at + 1) % 3]!)}`);
  }
});

test("an expired link: a page for a browser, JSON for a program", async () => {
  const { urls } = await createLinks();
  for (const url of urls) {
    const dead = withParameter(url, "expires", () => "1");
    const reply = await visitor.get(dead, { accept: "text/html,application/xhtml+xml,*/*;q=0.8" });
    assert.equal(reply.status, 403);
    assert.match(reply.headers.get("content-type")!, /^text\/html/);
    assert.match(
      reply.text,
      /This link has expired or was changed\. Open your purchase again for a new one\./,
    );
    await assertDead(dead);
  }
  const elsewhere = await visitor.get("/v1/purchases/nonsense", { accept: "text/html" });
  assertError(elsewhere, 401, "INVALID_API_KEY");
});

test("a link to an order that does not exist: refused like an expired one", async () => {
  for (const orderId of [toId("ord", newUuid(new Date())), "nonsense"]) {
    await assertDead(`/v1/purchases/${orderId}/download?expires=9999999999&signature=${"A".repeat(43)}`);
  }
});

test("a link: valid for an hour and at most a quarter more; each read of the purchase signs a new one", async () => {
  const { buyer, orderId, urls } = await createLinks();
  market.clock.forward(HOUR_MS - 1);
  for (const url of urls) assert.equal((await visitor.get(url)).status, 200);
  market.clock.forward(QUARTER_MS + 1);
  for (const url of urls) await assertDead(url);
  for (const url of await linksOf(buyer, orderId)) assert.equal((await visitor.get(url)).status, 200);
});

test("a purchase read again within a quarter of an hour: the same ETag", async () => {
  market.clock.forward(QUARTER_MS - (market.clock.now.getTime() % QUARTER_MS) + 1);
  const { buyer, orderId } = await createLinks();
  const etag = (await buyer.get(`/v1/purchases/${orderId}`)).headers.get("etag")!;
  const again = () => buyer.get(`/v1/purchases/${orderId}`, { "if-none-match": etag });
  market.clock.forward(QUARTER_MS - 1);
  assert.equal((await again()).status, 304);
  market.clock.forward(1);
  assert.equal((await again()).status, 200);
});

test("a revoked entitlement: ends the download at once, and keeps the receipt", async () => {
  const { buyer, orderId, urls } = await createLinks();
  const [download, receipt, pdf] = urls as [string, string, string];
  await refundEverything(market, buyer);
  await assertDead(download);
  assert.equal((await visitor.get(receipt)).status, 200);
  assert.equal((await visitor.get(pdf)).status, 200);
  assert.equal((await linksOf(buyer, orderId))[0], null);
});

test("a deleted product: its buyers can still download it", async () => {
  const buyer = await market.createUser();
  const productId = await createProduct(seller);
  const orderId = await buyProduct(buyer, productId);
  await seller.delete(`/v1/products/${productId}`);
  const [download] = await linksOf(buyer, orderId);
  assert.equal((await visitor.get(download!)).status, 200);
});

test("the signature of a link: in no log line", async () => {
  const { urls } = await createLinks();
  for (const url of urls) {
    await visitor.get(url);
    const signature = new URL(url).searchParams.get("signature")!;
    assert.ok(market.logs.every((line) => !line.includes(signature)));
  }
});
