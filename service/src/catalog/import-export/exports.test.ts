import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { buyProduct, createDraft, createProduct, haiku } from "../../../test/factories.ts";
import { exportOf, jsonLines, sendImport } from "../../../test/import-export.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { until } from "../../../test/until.ts";

let market: Market;
before(async () => {
  market = await openMarket({ graceMs: 0 });
});
after(() => market.close());

suite("GET /v1/products/export", () => {
  test("contains the caller's products in every state but deleted, oldest first", async () => {
    const [seller, other] = [await market.createUser(), await market.createUser()];
    const bought = await createProduct(other);
    await buyProduct(seller, bought);
    const [draft, published, unpublished, deleted] = [
      await createDraft(seller),
      await createProduct(seller),
      await createProduct(seller),
      await createDraft(seller),
    ];
    await seller.post(`/v1/products/${unpublished}/unpublish`);
    await seller.delete(`/v1/products/${deleted}`);
    const reply = await seller.get("/v1/products/export");
    assert.match(reply.headers.get("content-type")!, /^application\/jsonl/);
    assert.equal(reply.headers.get("content-disposition"), 'attachment; filename="products.jsonl"');
    assert.equal(reply.headers.get("cache-control"), "no-store");
    assert.deepEqual(
      (await exportOf(seller)).map(({ id, status }) => [id, status]),
      [
        [draft, "draft"],
        [published, "published"],
        [unpublished, "unpublished"],
      ],
    );
  });

  test("productIds: only those of the caller, in both formats", async () => {
    const [seller, other] = [await market.createUser(), await market.createUser()];
    const foreign = await createProduct(other);
    const [first, , third] = [
      await createDraft(seller),
      await createDraft(seller),
      await createDraft(seller),
    ];
    const query = `productIds=${[third, foreign, first, "prod_nothing"].join(",")}`;
    const reply = await seller.get(`/v1/products/export?${query}`);
    const lines = reply.text.trimEnd().split("\n");
    assert.deepEqual(
      lines.map((line) => JSON.parse(line).id),
      [first, third],
    );
    assert.equal((await seller.get("/v1/products/export?productIds=prod_nothing")).text, "");
    assert.equal((await seller.get(`/v1/products/export?format=markdown&${query}`)).status, 200);
  });

  test("has the fields of POST /products, with the newest version's content", async () => {
    const seller = await market.createUser();
    const id = await createProduct(seller);
    await seller.patch(`/v1/products/${id}`, {
      content: "On {{topic}} in {{language=English}}, briefly.",
      changelog: "Shorter",
    });
    const [product] = await exportOf(seller);
    const { category, ...rest } = haiku;
    assert.deepEqual(product, {
      ...{ id, status: "published", ...rest, category, currency: "USD" },
      ...{
        content: "On {{topic}} in {{language=English}}, briefly.",
        contentFormat: "text",
        version: "1.1.0",
        changelog: "Shorter",
      },
      ...{ models: {}, requirements: [], features: [], preview: "" },
    });
  });

  test("contains variables only where the author declared them", async () => {
    const seller = await market.createUser();
    await createDraft(seller);
    const described = [
      { name: "topic", description: "What about", required: true },
      { name: "language", required: false, default: "English" },
    ];
    await createDraft(seller, { variables: described });
    assert.deepEqual(
      (await exportOf(seller)).map(({ variables }) => variables),
      [undefined, described],
    );
  });

  test("no products: an empty file", async () => {
    const nobody = await market.createUser();
    assert.equal((await nobody.get("/v1/products/export")).text, "");
    assert.equal((await nobody.get("/v1/products/export?format=markdown")).status, 200);
  });

  test("two formats; any other is refused", async () => {
    const seller = await market.createUser();
    assertError(await seller.get("/v1/products/export?format=csv"), 400, "INVALID_REQUEST", "format");
    assertError(await seller.get("/v1/products/export?page=2"), 400, "INVALID_REQUEST", "page");
  });

  test("many products: read in batches, none missing", async () => {
    const seller = await market.createUser();
    const inputs = Array.from({ length: 61 }, (_, at) => ({ ...haiku, title: `Haiku ${at}` }));
    assert.equal((await sendImport(seller, jsonLines(...inputs))).status, 200);
    assert.deepEqual(
      (await exportOf(seller)).map(({ title }) => title),
      inputs.map(({ title }) => title),
    );
  });

  /** Too long for the socket buffers of both ends. */
  const hasLongProducts = async (): Promise<Client> => {
    const seller = await market.createUser();
    const inputs = Array.from({ length: 60 }, () => ({ ...haiku, content: "x".repeat(100_000) }));
    assert.equal((await sendImport(seller, jsonLines(...inputs))).status, 200);
    return seller;
  };
  const ofTheLast = "id = (select id from products where author_id = $1 order by id desc limit 1)";

  test("content that breaks a current rule: exported unchanged", async () => {
    const seller = await market.createUser();
    await createDraft(seller);
    await market.query(`update product_versions set content_format = 'messages' where product_${ofTheLast}`, [
      seller.userId,
    ]);
    assert.equal((await exportOf(seller))[0]!["content"], haiku.content);
  });

  test("fails in the middle: the connection breaks, so the file does not look complete", async () => {
    const seller = await hasLongProducts();
    await market.query(`update products set currency = 'XXX' where ${ofTheLast}`, [seller.userId]);
    const headers = { authorization: `Bearer ${seller.key}` };
    for (const format of ["jsonl", "markdown"]) {
      const reply = await fetch(`${market.origin}/v1/products/export?format=${format}`, { headers });
      await assert.rejects(reply.arrayBuffer(), format);
    }
  });

  test("fails before the first byte: an error response", async () => {
    const seller = await market.createUser();
    await createDraft(seller);
    await market.query("alter table product_versions rename column changelog to gone");
    try {
      assertError(await seller.get("/v1/products/export"), 500, "INTERNAL_ERROR");
    } finally {
      await market.query("alter table product_versions rename column gone to changelog");
    }
  });

  test("the client disconnects: ends and releases its connection", async () => {
    const seller = await hasLongProducts();
    const headers = { authorization: `Bearer ${seller.key}` };
    for (const format of ["jsonl", "markdown"]) {
      const gone = new AbortController();
      const reply = await fetch(`${market.origin}/v1/products/export?format=${format}`, {
        headers,
        signal: gone.signal,
      });
      await reply.body!.getReader().read();
      gone.abort();
    }
    const { pool } = market.service.ctx;
    assert.equal((await exportOf(seller)).length, 60);
    await until("no connection is held", () => pool.totalCount === pool.idleCount);
  });
});
