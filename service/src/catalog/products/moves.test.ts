import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { buyProduct, createDraft, createProduct, haiku, workflow } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { askedDuring, costOf } from "../../../test/statements.ts";
import { toUserId } from "../../accounts/people/users.ts";
import { toUuid } from "../../core/ids.ts";

let market: Market;
let author: Client;

before(async () => {
  market = await openMarket();
  author = await market.createUser({ name: "Author" });
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

/** The stored events of a product in order of creation, each with its endpoints. */
async function storedEvents(id: string): Promise<{ body: string; to: string[] }[]> {
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
  const events = await storedEvents(id);
  assert.deepEqual(
    events.map(({ body }) => nameOf(body)),
    expected,
  );
  for (const { to } of events) assert.deepEqual(to, [author.userId], "only the author gets it");
  const bodies = events.map(({ body }) => body).reverse();
  const { text } = await author.get(`/v1/events?limit=${Math.max(1, bodies.length)}`);
  if (bodies.length > 0)
    assert.ok(text.includes(`"data":[${bodies.join(",")}]`), "byte for byte, newest first");
}

test("publish: reports everything that is missing", async () => {
  const { title, type, price } = haiku;
  const created = await author.post("/v1/products", { title, type, price, content: "  " });
  const reply = await author.post(`/v1/products/${created.body.data.id}/publish`);
  const { errors } = assertError(reply, 422, "VALIDATION_ERROR", "description");
  assert.deepEqual(
    errors.map(({ field }: { field: string }) => field),
    ["description", "category", "content", "compatibility"],
  );
});

test("publish, incomplete: stays a draft, no event", async () => {
  const id = await createDraft(author, { description: "" });
  assertError(await author.post(`/v1/products/${id}/publish`), 422, "VALIDATION_ERROR", "description");
  assert.equal((await author.get(`/v1/products/${id}`)).body.data.status, "draft");
  await assertEvents(id, []);
});

test("a workflow: sold like a prompt, found by its type, not run by POST /ai/execute", async () => {
  const seller = await market.createUser();
  const id = await createProduct(seller, { type: "WORKFLOW", content: JSON.stringify(workflow) });
  const { body } = await seller.get("/v1/products?type=workflow");
  assert.deepEqual(
    body.data.map((product: { id: string }) => product.id),
    [id],
  );
  const buyer = await market.createUser();
  await buyProduct(buyer, id);
  assert.equal((await buyer.get(`/v1/products/${id}`)).body.data.content, JSON.stringify(workflow));
  const run = await buyer.post("/v1/ai/execute", { productId: id, apiKeyId: "sandbox" });
  assertError(run, 422, "VALIDATION_ERROR", "productId");
});

test("publish, a workflow without the providers of its steps: refused", async () => {
  const fields = { type: "WORKFLOW", compatibility: ["openai"] };
  const id = await createDraft(author, { ...fields, content: JSON.stringify(workflow) });
  const { errors } = assertError(await author.post(`/v1/products/${id}/publish`), 422, "VALIDATION_ERROR");
  assert.deepEqual(errors, [
    { field: "compatibility", reason: "lacks anthropic, which a step of the workflow uses" },
  ]);
  const elsewhere = JSON.stringify(workflow).replace("anthropic", "sandbox");
  await createProduct(author, { ...fields, content: elsewhere });
});

test("a workflow stored under older rules: can be fixed, and not published before", async () => {
  const id = await createDraft(author, { type: "WORKFLOW", content: JSON.stringify(workflow) });
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

test("publish: returns the product with publishedAt, at the first and at later times", async () => {
  const id = await createDraft(author);
  const publish = async () => (await act(author, "publish", id)).body.data;
  const first = await publish();
  assert.equal(first.publishedAt, market.clock.now.toISOString());
  assert.equal(first.updatedAt, first.publishedAt);
  assert.equal(first.content, haiku.content);
  const unpublished = (await act(author, "unpublish", id)).body.data;
  assert.deepEqual([unpublished.status, unpublished.publishedAt], ["unpublished", first.publishedAt]);
  assert.equal((await publish()).publishedAt, market.clock.now.toISOString());
});

test("POST /products/{id}/publish: statements, round trips and transactions", async () => {
  const [first, counted] = [await createDraft(author), await createDraft(author)];
  await author.post(`/v1/products/${first}/publish`);
  await market.waitForNotifications();
  let reply: Reply | undefined;
  const asked = await askedDuring(async () => {
    reply = await author.post(`/v1/products/${counted}/publish`);
  });
  assert.deepEqual(costOf(asked), { statements: 15, roundTrips: 4, transactions: 1 });
  assert.deepEqual(reply?.body.data, (await author.get(`/v1/products/${counted}`)).body.data);
});

test("the events of moves: the fields of the specification", async () => {
  const id = await createProduct(author, { title: "Told", price: 7 });
  await act(author, "unpublish", id);
  await act(author, "delete", id);
  const at = market.clock.now;
  const [published, unpublished, deleted] = (await storedEvents(id)).map(({ body }) => JSON.parse(body));
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

test("DELETE: returns deletedAt once; the row stays for buyers", async () => {
  const id = await createProduct(author);
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

test("a buyer's move: 403 in every state that the buyer can read", async () => {
  const id = await createProduct(author);
  const buyer = await market.createUser();
  await buyProduct(buyer, id);
  for (const move of ["unpublish", "publish", "unpublish", "delete"] as const) {
    assert.equal((await act(author, move, id)).status, 200);
    for (const action of actions) assertError(await act(buyer, action, id), 403, "UNAUTHORIZED");
  }
});

test("parallel moves: one wins, one event", async () => {
  const id = await createDraft(author);
  const replies = await Promise.all(Array.from({ length: 10 }, () => act(author, "publish", id)));
  assert.deepEqual(replies.map(answerOf).sort(), ["200", ...Array(9).fill("409 INVALID_STATE")]);
  await assertEvents(id, ["product.published"]);
});

test("a move repeated with its Idempotency-Key: the same answer, one event", async () => {
  const id = await createDraft(author);
  const publish = () =>
    author.post(`/v1/products/${id}/publish`, undefined, { "idempotency-key": `publish ${id}` });
  const [first, second] = [await publish(), await publish()];
  assert.deepEqual([second.status, second.text], [200, first.text]);
  await assertEvents(id, ["product.published"]);
});

suite("A workflow that runs other products", () => {
  const calling = (...steps: { productId: string; version?: string }[]) => ({
    type: "WORKFLOW",
    compatibility: ["sandbox"],
    content: JSON.stringify({
      format: "workflow/1",
      input: { type: "object" },
      steps: steps.map((step, at) => ({ id: `call${at}`, type: "product", ...step })),
      result: "steps.call0.output",
    }),
  });
  const nameless = "prod_00000000000000000000000000";
  const publish = (id: string) => author.post(`/v1/products/${id}/publish`);

  test("publish: an unknown product, a draft and another version line are each named by their step", async () => {
    const draft = await createDraft(author);
    const sold = await createProduct(author, { content: "One" });
    await author.patch(`/v1/products/${sold}`, { content: "Two", version: "2.0.0" });
    const steps = [
      { productId: nameless },
      { productId: draft },
      { productId: sold, version: "1.0.0" },
      { productId: sold, version: "2.0.0" },
      { productId: sold },
    ];
    const details = assertError(
      await publish(await createDraft(author, calling(...steps))),
      422,
      "VALIDATION_ERROR",
      "content.steps[0].productId",
    );
    assert.deepEqual(
      details.errors.map(({ field }: { field: string }) => field),
      [0, 1, 2].map((step) => `content.steps[${step}].productId`),
    );
  });

  test("publish: a workflow that calls itself, at once or through another, is refused", async () => {
    const outer = await createProduct(author, calling({ productId: await createProduct(author) }));
    const inner = await createProduct(author, calling({ productId: outer }));
    for (const productId of [outer, inner]) {
      const reply = await author.patch(`/v1/products/${outer}`, calling({ productId }));
      assertError(reply, 422, "VALIDATION_ERROR", "content.steps[0].productId");
      assert.match(reply.body.error.message, /call itself/);
    }
  });

  test("publish: workflows in workflows are refused deeper than three", async () => {
    let productId = await createProduct(author);
    for (const _ of [1, 2, 3]) productId = await createProduct(author, calling({ productId }));
    const reply = await publish(await createDraft(author, calling({ productId })));
    assertError(reply, 422, "VALIDATION_ERROR", "content.steps[0].productId");
  });

  test("a product that is unpublished later: the price may change, the content may not", async () => {
    const productId = await createProduct(author);
    const id = await createProduct(author, calling({ productId }));
    await author.post(`/v1/products/${productId}/unpublish`);
    assert.equal((await author.patch(`/v1/products/${id}`, { price: 9 })).status, 200);
    const { content } = calling({ productId }, { productId });
    assertError(await author.patch(`/v1/products/${id}`, { content }), 422, "VALIDATION_ERROR");
  });

  test("detail: dependencies and the total price are those that the reader still has to buy", async () => {
    const [prompt, other] = [
      await createProduct(author, { price: 2 }),
      await createProduct(author, { price: 3, title: "Other" }),
    ];
    const inner = await createProduct(author, { ...calling({ productId: prompt }), price: 5 });
    const id = await createProduct(author, {
      ...calling({ productId: inner }, { productId: prompt }, { productId: other }),
      price: 10,
    });
    const buyer = await market.createUser();
    const read = async () => {
      const { body, headers } = await buyer.get(`/v1/products/${id}`);
      const { dependencies, totalPrice } = body.data;
      return { dependencies, totalPrice, etag: headers.get("etag") };
    };
    const first = await read();
    assert.equal(first.totalPrice, 20);
    const shown = { type: "PROMPT", currency: "USD", owned: false, onSale: true };
    assert.deepEqual(first.dependencies, [
      { ...shown, productId: inner, title: haiku.title, type: "WORKFLOW", price: 5 },
      { ...shown, productId: prompt, title: haiku.title, price: 2 },
      { ...shown, productId: other, title: "Other", price: 3 },
    ]);
    await buyProduct(buyer, prompt);
    const second = await read();
    assert.equal(second.totalPrice, 18);
    assert.notEqual(second.etag, first.etag);
    await author.post(`/v1/products/${other}/unpublish`);
    const third = await read();
    const hidden = { title: null, type: null, price: null, currency: null };
    assert.deepEqual(third.dependencies[2], { ...hidden, productId: other, owned: false, onSale: false });
    assert.equal(third.totalPrice, null);
    const { body } = await author.get(`/v1/products/${prompt}`);
    assert.deepEqual([body.data.dependencies, body.data.totalPrice], [[], 2]);
  });

  test("detail: an If-Match from an answer with dependencies still holds for a change", async () => {
    const id = await createProduct(author, calling({ productId: await createProduct(author) }));
    const etag = (await author.get(`/v1/products/${id}`)).headers.get("etag")!;
    const reply = await author.patch(`/v1/products/${id}`, { price: 8 }, { "if-match": etag });
    assert.equal(reply.status, 200, reply.text);
  });
});
