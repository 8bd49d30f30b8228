import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createDraft, createProduct } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { picture, sendImage } from "../../../test/uploads.ts";
import { sweepBlobs } from "../files/blob-sweep.ts";

let market: Market;
let admin: Client;
before(async () => {
  market = await openMarket();
  const { userId } = await market.createUser({ role: "admin" });
  admin = await market.createSession(userId, { secondFactor: true });
});
after(() => market.close());

const checksOf = async (productId: string) => {
  const reply = await admin.get(`/v1/admin/products/${productId}/checks`);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
};

const EDITOR = "Act as a careful editor. Read {{text}} and list each mistake with its line and its fix.";
const content = (text: string) => ({ content: text, variables: undefined });

test("duplicates: the same text under another title, and the same title with another text", async () => {
  const original = await createProduct(await market.createUser({ name: "First" }), {
    title: "Careful editor of texts",
    ...content(EDITOR),
  });
  const copy = await createDraft(await market.createUser(), {
    title: "Grammar wizard",
    ...content(EDITOR.toUpperCase().replace("{{TEXT}}", "{{text}}")),
  });
  const namesake = await createDraft(await market.createUser(), {
    title: "Careful editor of texts",
    ...content("Write a haiku about {{topic}}."),
  });
  const [copied] = (await checksOf(copy)).duplicates;
  assert.deepEqual(
    [copied.id, copied.textSimilarity, copied.isSameSeller, copied.seller.name, copied.status],
    [original, 1, false, "First", "published"],
  );
  assert.ok(copied.titleSimilarity < 0.5);
  const [named] = (await checksOf(namesake)).duplicates;
  assert.deepEqual([named.id, named.titleSimilarity], [original, 1]);
  assert.ok(named.textSimilarity < 0.2);
});

test("a changed copy of the seller's own product: found, marked as the same seller's", async () => {
  const seller = await market.createUser();
  const first = await createProduct(seller, { title: "Rain chant", ...content(EDITOR) });
  const second = await createDraft(seller, {
    title: "Unrelated words",
    ...content(EDITOR.replace("careful", "strict")),
  });
  const found = (await checksOf(second)).duplicates.find(({ id }: { id: string }) => id === first);
  assert.equal(found.isSameSeller, true);
  assert.ok(found.textSimilarity > 0.5 && found.textSimilarity < 1);
});

test("under moderation: the version that buyers get, and warnings of the one that waits", async (t) => {
  const moderated = await openMarket({ config: { moderation: true } });
  t.after(() => moderated.close());
  const { userId } = await moderated.createUser({ role: "admin" });
  const moderator = await moderated.createSession(userId, { secondFactor: true });
  const seller = await moderated.createUser();
  const productId = await createDraft(seller, {
    title: "Weather poet",
    ...content("Write about {{topic}}."),
    ...{ category: "writing", tags: ["rain"], price: 5, features: ["Short"] },
  });
  const image = (await sendImage(seller, productId, { bytes: await picture(), fields: { alt: "Rain" } })).body
    .data;
  await seller.post(`/v1/products/${productId}/publish`);
  assert.equal((await moderator.post(`/v1/admin/products/${productId}/approve`)).status, 200);
  // On sale, the price changes without a review.
  assert.equal((await seller.patch(`/v1/products/${productId}`, { price: 6 })).status, 200);
  assert.equal((await seller.post(`/v1/products/${productId}/unpublish`)).status, 200);
  assert.equal((await seller.delete(`/v1/products/${productId}/images/${image.id}`)).status, 200);
  const sample = { input: { topic: "snow" }, output: "Snow.", model: "gpt-5-mini" };
  const change = {
    ...{ content: "Write about\u200b {{topic}}.", changelog: "Better", version: "1.1.0" },
    ...{
      category: "programming",
      tags: ["snow"],
      price: 500,
      features: [],
      license: "MIT",
      samples: [sample],
    },
  };
  const reply = await seller.patch(`/v1/products/${productId}`, change);
  assert.equal(reply.status, 200, reply.text);
  const path = `/v1/admin/products/${productId}/checks`;
  const { approved, warnings } = (await moderator.get(path)).body.data;
  assert.deepEqual([approved.title, approved.content], ["Weather poet", "Write about {{topic}}."]);
  assert.match(warnings[0].reason, /invisible/);
  const { category, tags, price, features, license, samples, gallery } = approved.details;
  assert.deepEqual(
    { category, tags, price, features, license, samples, gallery },
    {
      ...{ category: "writing", tags: ["rain"], price: 5, features: ["Short"], license: null },
      ...{ samples: [], gallery },
    },
  );
  assert.deepEqual([gallery.length, gallery[0].alt], [1, "Rain"]);
  assert.equal((await fetch(image.url)).status, 404, "the public sees it no more");
  moderated.clock.forward(25 * 3_600_000);
  await sweepBlobs(moderated.service.ctx);
  const later = await moderated.createSession(userId, { secondFactor: true });
  const shown = (await later.get(path)).body.data.approved.details.gallery[0];
  for (const url of [shown.url, ...shown.sizes.map((size: { url: string }) => size.url)]) {
    const response = await fetch(url);
    assert.deepEqual([response.status, response.headers.get("cache-control")], [200, "private, no-store"]);
  }
  assert.equal((await fetch(shown.url.replace(/.$/, ""))).status, 404, "by a whole signature only");
  await seller.post(`/v1/products/${productId}/publish`);
  assert.equal((await later.post(`/v1/admin/products/${productId}/approve`)).status, 200);
  const { details } = (await later.get(path)).body.data.approved;
  assert.deepEqual(
    [details.category, details.price, details.samples[0].output],
    ["programming", 500, "Snow."],
  );
  await sweepBlobs(moderated.service.ctx);
  assert.equal((await fetch(shown.url)).status, 404);
});

test("without moderation: each change of a published product is approved with it", async () => {
  const seller = await market.createUser();
  const productId = await createProduct(seller, { title: "Open poet", tags: ["one"] });
  await seller.patch(`/v1/products/${productId}`, { tags: ["two"] });
  assert.deepEqual((await checksOf(productId)).approved.details.tags, ["two"]);
});

test("a product that was never published: no released version", async () => {
  const draft = await createDraft(await market.createUser(), { title: "Never published" });
  assert.equal((await checksOf(draft)).approved, null);
});

test("an unknown product: 404", async () => {
  assertError(await admin.get("/v1/admin/products/prod_nothing/checks"), 404, "PRODUCT_NOT_FOUND");
});
