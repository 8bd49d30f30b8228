import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { haiku, hasBought, hasDraft, hasProduct, workflow } from "../../test/factories.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../test/market.ts";
import { toUuid } from "../ids.ts";
import { toUserId } from "../people/users.ts";

let market: Market;
let author: Client;

before(async () => {
  market = await openMarket();
  author = await market.hasUser({ name: "Author" });
});
after(() => market.close());

const actions = ["publish", "unpublish", "delete", "patch"] as const;
type Action = (typeof actions)[number];
let titles = 0;
function act(who: Client, action: Action, id: string): Promise<Reply> {
  market.clock.forward(1_000);
  if (action === "delete") return who.delete(`/v1/products/${id}`);
  if (action === "patch") return who.patch(`/v1/products/${id}`, { title: `Title ${++titles}` });
  return who.post(`/v1/products/${id}/${action}`);
}

const answerOf = ({ status, body }: Reply) => [status, body.error?.code].filter(Boolean).join(" ");

/** The bodies of all events of a product as they are kept, in the order of their making, each with its receivers. */
async function keptEvents(id: string): Promise<{ body: string; to: string[] }[]> {
  const { rows } = await market.query(
    `select e.body, array_agg(r.user_id::text) as to from events e left join event_recipients r on r.event_id = e.id
      where strpos(e.body, $1) > 0 group by e.id order by e.id`,
    [id],
  );
  return rows;
}

const nameOf = (body: string) => {
  const { type, data } = JSON.parse(body);
  return [type, data.product.reason].filter(Boolean).join(" ");
};

async function assertEvents(id: string, expected: string[]): Promise<void> {
  const kept = await keptEvents(id);
  assert.deepEqual(
    kept.map(({ body }) => nameOf(body)),
    expected,
  );
  for (const { to } of kept) assert.deepEqual(to, [author.userId], "the author alone is told");
  const bodies = kept.map(({ body }) => body).reverse();
  const { text } = await author.get(`/v1/events?limit=${Math.max(1, bodies.length)}`);
  if (bodies.length > 0)
    assert.ok(text.includes(`"data":[${bodies.join(",")}]`), "byte for byte, newest first");
}

test("publishing tells everything that a buyer would miss", async () => {
  const { title, type, price } = haiku;
  const created = await author.post("/v1/products", { title, type, price, content: "  " });
  const reply = await author.post(`/v1/products/${created.body.data.id}/publish`);
  const { errors } = assertError(reply, 422, "VALIDATION_ERROR", "description");
  assert.deepEqual(
    errors.map(({ field }: { field: string }) => field),
    ["description", "category", "content", "compatibility"],
  );
});

test("an incomplete product stays a draft without an event", async () => {
  const id = await hasDraft(author, { description: "" });
  assertError(await author.post(`/v1/products/${id}/publish`), 422, "VALIDATION_ERROR", "description");
  assert.equal((await author.get(`/v1/products/${id}`)).body.data.status, "draft");
  await assertEvents(id, []);
});

test("a workflow is sold like a prompt, found by its type, and run elsewhere", async () => {
  const seller = await market.hasUser();
  const id = await hasProduct(seller, { type: "WORKFLOW", content: JSON.stringify(workflow) });
  const { body } = await seller.get("/v1/products?type=workflow");
  assert.deepEqual(
    body.data.map((product: { id: string }) => product.id),
    [id],
  );
  const buyer = await market.hasUser();
  await hasBought(buyer, id);
  assert.equal((await buyer.get(`/v1/products/${id}`)).body.data.content, JSON.stringify(workflow));
  const run = await buyer.post("/v1/ai/execute", { productId: id, apiKeyId: "sandbox" });
  assertError(run, 422, "VALIDATION_ERROR", "productId");
});

test("a workflow is not published without the providers that its steps use", async () => {
  const wish = { type: "WORKFLOW", compatibility: ["openai"] };
  const id = await hasDraft(author, { ...wish, content: JSON.stringify(workflow) });
  const { errors } = assertError(await author.post(`/v1/products/${id}/publish`), 422, "VALIDATION_ERROR");
  assert.deepEqual(errors, [
    { field: "compatibility", reason: "lacks anthropic, which a step of the workflow uses" },
  ]);
  const elsewhere = JSON.stringify(workflow).replace("anthropic", "sandbox");
  await hasProduct(author, { ...wish, content: elsewhere });
});

test("a workflow that was kept when less was checked can be mended, and not be published before", async () => {
  const id = await hasDraft(author, { type: "WORKFLOW", content: JSON.stringify(workflow) });
  const broken = JSON.stringify({ ...workflow, result: "steps.nowhere.output" });
  await market.query("update product_versions set content = $2 where product_id = $1", [
    toUuid("prod", id),
    broken,
  ]);
  const publish = () => author.post(`/v1/products/${id}/publish`);
  assertError(await publish(), 422, "VALIDATION_ERROR", "content.result");
  assert.equal((await author.patch(`/v1/products/${id}`, { title: "Still a draft" })).status, 200);
  const mended = await author.patch(`/v1/products/${id}`, { content: JSON.stringify(workflow) });
  assert.equal(mended.status, 200, mended.text);
  assert.equal((await publish()).status, 200);
});

test("publishing answers the product and moves publishedAt, first and again", async () => {
  const id = await hasDraft(author);
  const publish = async () => (await act(author, "publish", id)).body.data;
  const first = await publish();
  assert.equal(first.publishedAt, market.clock.now.toISOString());
  assert.equal(first.updatedAt, first.publishedAt);
  assert.equal(first.content, haiku.content);
  const taken = (await act(author, "unpublish", id)).body.data;
  assert.deepEqual([taken.status, taken.publishedAt], ["unpublished", first.publishedAt]);
  assert.equal((await publish()).publishedAt, market.clock.now.toISOString());
});

test("the events of the moves carry what the specification says", async () => {
  const id = await hasProduct(author, { title: "Told", price: 7 });
  await act(author, "unpublish", id);
  await act(author, "delete", id);
  const at = market.clock.now;
  const [published, unpublished, deleted] = (await keptEvents(id)).map(({ body }) => JSON.parse(body));
  const product = { id, title: "Told", type: "PROMPT", authorId: toUserId(author.userId) };
  assert.deepEqual(published.data, { product: { ...product, price: 7 } });
  assert.deepEqual(unpublished.data, {
    product: {
      ...product,
      reason: "unpublished",
      unpublishedAt: new Date(at.getTime() - 1_000).toISOString(),
    },
  });
  assert.deepEqual(deleted.data, {
    product: { ...product, reason: "deleted", unpublishedAt: at.toISOString() },
  });
  assert.equal(deleted.created, at.toISOString());
});

test("deleting answers when it happened, once, and the row stays for the buyers", async () => {
  const id = await hasProduct(author);
  const reply = await act(author, "delete", id);
  const deletedAt = market.clock.now;
  const { message, ...data } = reply.body.data;
  assert.deepEqual(data, { id, status: "deleted", deletedAt: deletedAt.toISOString() });
  assert.ok(message);
  assertError(await act(author, "delete", id), 404, "PRODUCT_NOT_FOUND");
  const { rows } = await market.query("select status, deleted_at from products where id = $1", [
    toUuid("prod", id),
  ]);
  assert.deepEqual(rows, [{ status: "deleted", deleted_at: deletedAt }]);
});

test("a buyer is no author: 403 in every state, because buyers keep seeing what they bought", async () => {
  const id = await hasProduct(author);
  const buyer = await market.hasUser();
  await hasBought(buyer, id);
  for (const move of ["unpublish", "publish", "unpublish", "delete"] as const) {
    assert.equal((await act(author, move, id)).status, 200);
    for (const action of actions) assertError(await act(buyer, action, id), 403, "UNAUTHORIZED");
  }
});

test("of parallel moves one wins and is told once", async () => {
  const id = await hasDraft(author);
  const replies = await Promise.all(Array.from({ length: 10 }, () => act(author, "publish", id)));
  assert.deepEqual(replies.map(answerOf).sort(), ["200", ...Array(9).fill("409 INVALID_STATE")]);
  await assertEvents(id, ["product.published"]);
});

test("a move that is repeated under its Idempotency-Key is answered alike and told once", async () => {
  const id = await hasDraft(author);
  const publish = () =>
    author.post(`/v1/products/${id}/publish`, undefined, { "idempotency-key": `publish ${id}` });
  const [first, second] = [await publish(), await publish()];
  assert.deepEqual([second.status, second.text], [200, first.text]);
  await assertEvents(id, ["product.published"]);
});
