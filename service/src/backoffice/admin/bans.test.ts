import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { buyProduct, createDraft, createProduct } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { toId } from "../../core/ids.ts";

let market: Market;
let admin: Client;
before(async () => {
  market = await openMarket();
  const { userId } = await market.createUser({ role: "admin" });
  admin = await market.createSession(userId, { secondFactor: true });
});
after(() => market.close());

async function judge({ userId }: Client, verdict: "ban" | "unban"): Promise<void> {
  const body = verdict === "ban" ? { reason: "Fraud" } : undefined;
  const reply = await admin.post(`/v1/admin/users/${toId("usr", userId)}/${verdict}`, body);
  assert.equal(reply.status, 200, reply.text);
}

const buy = (buyer: Client, productId: string) => buyer.post("/v1/purchases", { productId });

suite("a banned seller's products", () => {
  interface Sold {
    seller: Client;
    buyer: Client;
    productId: string;
    downloadUrl: string;
  }

  async function hasSold(title: string): Promise<Sold> {
    const [seller, buyer] = [await market.createUser(), await market.createUser()];
    const productId = await createProduct(seller, { title, tags: [`tag-${title}`] });
    const orderId = await buyProduct(buyer, productId);
    const { downloadUrl } = (await buyer.get(`/v1/purchases/${orderId}`)).body.data;
    return { seller, buyer, productId, downloadUrl };
  }

  /** The number of results of each list below, and the count in the tag's facet. */
  async function found({ seller, productId }: Sold, title: string): Promise<number[]> {
    const stranger = await market.createUser();
    const lists = [
      "",
      `search=${title}`,
      `author=${toId("usr", seller.userId)}`,
      `tag=tag-${title}`,
      `search=${title}&sort=title`,
    ];
    const counts = [];
    for (const query of lists) {
      const { body, text } = await stranger.get(`/v1/products?limit=100&${query}`);
      assert.ok(body.data, text);
      counts.push(body.data.filter(({ id }: { id: string }) => id === productId).length);
    }
    const { body } = await stranger.get(`/v1/products/facets?search=${title}`);
    const tags: { value: string; count: number }[] = body.data.tag;
    return [...counts, tags.find(({ value }) => value === `tag-${title}`)?.count ?? 0];
  }

  test("neither sold nor listed; both again after an unban", async () => {
    const sold = await hasSold("zephyr");
    assert.deepEqual(await found(sold, "zephyr"), [1, 1, 1, 1, 1, 1]);
    await judge(sold.seller, "ban");
    assert.deepEqual(await found(sold, "zephyr"), [0, 0, 0, 0, 0, 0]);
    const stranger = await market.createUser();
    assertError(await stranger.get(`/v1/products/${sold.productId}`), 404, "PRODUCT_NOT_FOUND");
    assertError(await stranger.get(`/v1/products/${sold.productId}/reviews`), 404, "PRODUCT_NOT_FOUND");
    assertError(await buy(stranger, sold.productId), 409, "PRODUCT_UNAVAILABLE");
    assert.equal((await stranger.get("/v1/purchases")).body.meta.total, 0);
    await judge(sold.seller, "unban");
    assert.deepEqual(await found(sold, "zephyr"), [1, 1, 1, 1, 1, 1]);
    assert.equal((await buy(stranger, sold.productId)).status, 201);
  });

  test("buyers keep access", async () => {
    const { seller, buyer, productId, downloadUrl } = await hasSold("mistral");
    await judge(seller, "ban");
    const reply = await buyer.get(`/v1/products/${productId}`);
    assert.equal(reply.body.data?.access.owned, true, reply.text);
    assert.ok(reply.body.data.content);
    assert.equal((await fetch(downloadUrl)).status, 200);
    const run = await buyer.post("/v1/ai/execute", {
      productId,
      apiKeyId: "sandbox",
      variables: { topic: "rain" },
    });
    assert.equal(run.status, 200, run.text);
  });

  test("strangers: still 404; a draft stays a draft", async () => {
    const seller = await market.createUser();
    const draft = await createDraft(seller);
    await judge(seller, "ban");
    assertError(await buy(await market.createUser(), draft), 404, "PRODUCT_NOT_FOUND");
    await judge(seller, "unban");
    assert.equal((await seller.get(`/v1/products/${draft}`)).body.data.status, "draft");
  });

  test("a change or moderation by an administrator: not listed", async () => {
    const sold = await hasSold("bora");
    await judge(sold.seller, "ban");
    const session = await market.createSession(admin.userId, { secondFactor: true });
    const changed = await session.patch(`/v1/products/${sold.productId}`, { title: "Bora anew" });
    assert.equal(changed.status, 200, changed.text);
    assert.deepEqual(await found(sold, "bora"), [0, 0, 0, 0, 0, 0]);
    assert.equal((await session.post(`/v1/products/${sold.productId}/unpublish`)).status, 200);
    assert.equal((await session.post(`/v1/products/${sold.productId}/publish`)).status, 200);
    assert.deepEqual(await found(sold, "bora"), [0, 0, 0, 0, 0, 0]);
    await judge(sold.seller, "unban");
    assert.deepEqual(await found(sold, "bora"), [1, 1, 1, 1, 1, 1]);
  });

  test("parallel purchases: none succeeds after the ban's answer", async () => {
    const seller = await market.createUser();
    const productId = await createProduct(seller);
    const buyers = await Promise.all(Array.from({ length: 30 }, () => market.createUser()));
    const [, replies] = await Promise.all([
      judge(seller, "ban"),
      Promise.all(buyers.map((buyer) => buy(buyer, productId))),
    ]);
    for (const { status, text } of replies) assert.ok([201, 409].includes(status), text);
    const late = await Promise.all(buyers.map((buyer) => buy(buyer, productId)));
    for (const [index, { status, body, text }] of late.entries()) {
      const owns = replies[index]!.status === 201;
      assert.equal(status, 409, text);
      assert.equal(body.error.code, owns ? body.error.code : "PRODUCT_UNAVAILABLE");
    }
  });

  test("published during a ban and an unban: listed as the last one says", async () => {
    const seller = await market.createUser();
    const productId = await createDraft(seller, { title: "tramontana", tags: ["tag-tramontana"] });
    const session = await market.createSession(admin.userId, { secondFactor: true });
    for (const verdict of ["ban", "unban", "ban"] as const) {
      await Promise.all([
        judge(seller, verdict),
        session.post(`/v1/products/${productId}/publish`),
        session.patch(`/v1/products/${productId}`, { description: `Beside a ${verdict}.` }),
      ]);
      const { rows } = await market.query("select status from listings where author_id = $1", [
        seller.userId,
      ]);
      assert.equal(rows[0].status === "published", verdict === "unban", verdict);
    }
  });
});

suite("a banned buyer", () => {
  test("file links: refused until an unban", async () => {
    const [seller, buyer] = [await market.createUser(), await market.createUser()];
    const orderId = await buyProduct(buyer, await createProduct(seller));
    const { downloadUrl, receipt } = (await buyer.get(`/v1/purchases/${orderId}`)).body.data;
    assert.equal((await fetch(downloadUrl)).status, 200);
    await judge(buyer, "ban");
    for (const format of ["md", "json"]) {
      const reply = await fetch(`${downloadUrl}&format=${format}`);
      assert.equal(reply.status, 403);
      assert.doesNotMatch(await reply.text(), /ban/i);
    }
    assert.equal((await fetch(receipt.url)).status, 200, "the receipt stays available");
    await judge(buyer, "unban");
    assert.equal((await fetch(downloadUrl)).status, 200);
  });

  test("an order being created: none", async () => {
    const [seller, buyer] = [await market.createUser(), await market.createUser()];
    const productIds = await Promise.all(
      Array.from({ length: 10 }, (_, n) => createProduct(seller, { title: `Haiku ${n}` })),
    );
    const [replies] = await Promise.all([
      Promise.all(productIds.map((productId) => buy(buyer, productId))),
      judge(buyer, "ban"),
    ]);
    for (const { status, text } of replies) assert.ok([201, 401].includes(status), text);
  });
});
