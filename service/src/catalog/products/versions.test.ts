import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { buyProduct, createDraft, createProduct, refundEverything } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { run } from "../../../test/runs.ts";
import { toUuid } from "../../core/ids.ts";

let market: Market;
let author: Client;
let stranger: Client;
let admin: Client;
before(async () => {
  market = await openMarket();
  author = await market.createUser({ name: "Author" });
  stranger = await market.createUser();
  admin = await market.createSession((await market.createUser({ role: "admin" })).userId, {
    secondFactor: true,
  });
});
after(() => market.close());

const contentOf = (version: string) => `Version ${version} about {{topic}}`;
const pathOf = (id: string, version = "") => `/v1/products/${id}/versions${version && `/${version}`}`;

async function releases(id: string, version: string): Promise<void> {
  market.clock.forward(1_000);
  const change = { version, content: contentOf(version), changelog: `Note of ${version}` };
  const reply = await author.patch(`/v1/products/${id}`, change);
  assert.equal(reply.status, 200, reply.text);
}

/** Publishes each version; the buyer buys the first. */
async function hasVersions(first: string, ...later: string[]): Promise<{ id: string; buyer: Client }> {
  const id = await createProduct(author, { version: first, content: contentOf(first) });
  const buyer = await market.createUser({ name: "Buyer" });
  await buyProduct(buyer, id);
  for (const version of later) await releases(id, version);
  return { id, buyer };
}

interface Listed {
  version: string;
  current: boolean;
  readable: boolean;
}
const listFor = async (who: Client, id: string, query = ""): Promise<Listed[]> =>
  (await who.get(`${pathOf(id)}?${query}`)).body.data;
const shown = (list: Listed[]) =>
  list.map(({ version, current, readable }) =>
    [version, current && "current", readable && "readable"].filter(Boolean).join(" "),
  );

suite("GET /products/:id/versions", () => {
  test("newest first by number, with changelogs and pages", async () => {
    const { id } = await hasVersions("1.9.0", "1.10.0", "2.0.0");
    const { data, meta } = (await stranger.get(pathOf(id))).body;
    assert.deepEqual(data[0], {
      version: "2.0.0",
      changelog: "Note of 2.0.0",
      acknowledgesRegression: false,
      createdAt: market.clock.now.toISOString(),
      current: true,
      readable: false,
    });
    assert.deepEqual(shown(data), ["2.0.0 current", "1.10.0", "1.9.0"]);
    assert.equal(meta.total, 3);
    assert.deepEqual(shown(await listFor(stranger, id, "limit=1&page=3")), ["1.9.0"]);
  });

  test("each version has a name that can be requested; the author chooses the one after the last minor", async () => {
    const { id } = await hasVersions("1.0.0", "1.999999999.0");
    const change = (input: object) =>
      author.patch(`/v1/products/${id}`, { content: "On {{topic}}", ...input });
    assertError(await change({}), 422, "VALIDATION_ERROR", "version");
    assert.equal((await change({ version: "2.0.0" })).body.data.version, "2.0.0");
  });

  test("readable by the author, administrators, and buyers of that major line", async () => {
    const { id, buyer } = await hasVersions("1.0.0", "1.1.0", "2.0.0", "2.1.0");
    const late = await market.createUser();
    await buyProduct(late, id);
    const all = ["2.1.0 current readable", "2.0.0 readable", "1.1.0 readable", "1.0.0 readable"];
    assert.deepEqual(shown(await listFor(author, id)), all);
    assert.deepEqual(shown(await listFor(admin, id)), all);
    assert.deepEqual(shown(await listFor(buyer, id)), [
      "2.1.0",
      "2.0.0",
      "1.1.0 current readable",
      "1.0.0 readable",
    ]);
    assert.deepEqual(shown(await listFor(late, id)), [
      "2.1.0 current readable",
      "2.0.0 readable",
      "1.1.0",
      "1.0.0",
    ]);
    for (const who of [author, admin, buyer, late, stranger]) {
      for (const { version, readable } of await listFor(who, id)) {
        const reply = await who.get(pathOf(id, version));
        if (readable) assert.equal(reply.body.data?.content, contentOf(version), reply.text);
        else assert.equal(assertError(reply, 403, "UNAUTHORIZED").required, "purchase");
        const ran = await run(who, { productId: id, options: { version } });
        if (who === buyer || who === late) assert.equal(ran.status, readable ? 200 : 422, ran.text);
      }
    }
  });

  test("one version: content, variables, files and changelog", async () => {
    const { id, buyer } = await hasVersions("1.0.0", "1.1.0");
    assert.deepEqual((await buyer.get(pathOf(id, "1.0.0"))).body.data, {
      version: "1.0.0",
      changelog: "",
      acknowledgesRegression: false,
      createdAt: new Date(market.clock.now.getTime() - 1_000).toISOString(),
      current: false,
      content: contentOf("1.0.0"),
      contentFormat: "text",
      variables: [{ name: "topic", required: true }],
      files: [],
    });
  });

  test("a read counts as use, the list does not", async () => {
    const { id, buyer } = await hasVersions("1.0.0", "1.1.0");
    const usedAt = async () =>
      (await market.query("select used_at from entitlements where buyer_id = $1", [buyer.userId])).rows[0]
        .used_at;
    await listFor(buyer, id);
    assert.equal(await usedAt(), null);
    await buyer.get(pathOf(id, "1.0.0"));
    assert.deepEqual(await usedAt(), market.clock.now);
  });

  test("an unknown version, or a product that the caller cannot see: 404", async () => {
    const { id, buyer } = await hasVersions("1.0.0");
    for (const version of ["1.0.1", "1", "latest", "1.0.0.0", "01.0.0", "%00"])
      for (const who of [author, buyer, stranger])
        assertError(await who.get(pathOf(id, version)), 404, "VERSION_NOT_FOUND");
    const draft = await createDraft(author);
    assertError(await stranger.get(pathOf(draft)), 404, "PRODUCT_NOT_FOUND");
    assertError(await stranger.get(pathOf(draft, "1.0.0")), 404, "PRODUCT_NOT_FOUND");
    assert.deepEqual(shown(await listFor(author, draft)), ["1.0.0 current readable"]);
  });

  test("unpublished or deleted: readable by buyers only", async () => {
    const { id, buyer } = await hasVersions("1.0.0", "1.1.0");
    await author.post(`/v1/products/${id}/unpublish`);
    assertError(await stranger.get(pathOf(id)), 404, "PRODUCT_NOT_FOUND");
    await author.delete(`/v1/products/${id}`);
    assertError(await author.get(pathOf(id)), 404, "PRODUCT_NOT_FOUND");
    assert.equal((await buyer.get(pathOf(id, "1.0.0"))).status, 200);
  });

  test("the entitlement is revoked: not readable; bought again: the major line of that day", async () => {
    const { id, buyer } = await hasVersions("1.0.0", "2.0.0");
    await refundEverything(market, buyer);
    assertError(await buyer.get(pathOf(id, "1.0.0")), 403, "UNAUTHORIZED");
    await buyProduct(buyer, id);
    assertError(await buyer.get(pathOf(id, "1.0.0")), 403, "UNAUTHORIZED");
    assert.deepEqual(shown(await listFor(buyer, id)), ["2.0.0 current readable", "1.0.0"]);
    await releases(id, "2.0.1");
    assert.equal((await buyer.get(`/v1/products/${id}`)).body.data.version, "2.0.1");
  });
});

suite("a published version is immutable in the database", () => {
  for (const [what, statement] of Object.entries({
    rewriting: "update product_versions set content = 'Another' where product_id = $1",
    "rewriting a note": "update product_versions set changelog = 'Another' where product_id = $1",
    removing: "delete from product_versions where product_id = $1",
  })) {
    test(`${what}: refused, also when unpublished`, async () => {
      const { id } = await hasVersions("1.0.0", "1.1.0");
      await author.post(`/v1/products/${id}/unpublish`);
      await assert.rejects(market.query(statement, [toUuid("prod", id)]), /immutable/);
      assert.equal((await author.get(pathOf(id, "1.0.0"))).body.data.content, contentOf("1.0.0"));
    });
  }

  test("a draft's version: can change", async () => {
    const id = await createDraft(author);
    await author.patch(`/v1/products/${id}`, { content: "Another {{x}}" });
    assert.equal((await author.get(pathOf(id, "1.0.0"))).body.data.content, "Another {{x}}");
  });

  test("deleted only with its product", async () => {
    const id = toUuid("prod", await createProduct(author));
    await market.query("delete from listings where product_id = $1", [id]);
    await market.query("delete from product_stats where product_id = $1", [id]);
    await market.query("delete from products where id = $1", [id]);
    const { rows } = await market.query("select from product_versions where product_id = $1", [id]);
    assert.equal(rows.length, 0);
  });
});
