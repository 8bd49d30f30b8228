import assert from "node:assert/strict";
import { test } from "node:test";
import { buyProduct, createDraft, createProduct } from "../../../test/factories.ts";
import { assertError, openMarket } from "../../../test/market.ts";
import { run, runToCompletion } from "../../../test/runs.ts";
import { DAY_MS } from "../../core/dates.ts";
import { foldRuns } from "./run-sums.ts";

test("GET /v1/products/:id/runs: the author sees counts of buyers' runs and nothing else", async (t) => {
  const market = await openMarket();
  t.after(() => market.close());
  const [author, one, other] = [
    await market.createUser(),
    await market.createUser(),
    await market.createUser(),
  ];
  const productId = await createProduct(author);
  const path = `/v1/products/${productId}/runs`;
  const none = { total: 0, completed: 0, failed: 0, canceled: 0, buyers: 0, last30Days: 0 };
  await runToCompletion(author, { productId });
  assert.deepEqual((await author.get(path)).body.data, none, "the author's own runs are not counted");
  for (const buyer of [one, other]) await buyProduct(buyer, productId);
  const variables = { topic: "a-buyers-secret" };
  const { executionId } = await runToCompletion(one, { productId, variables });
  market.clock.forward(31 * DAY_MS);
  await runToCompletion(one, { productId, variables });
  await run(other, { productId, options: { model: "sandbox-500" } });
  assert.equal((await one.delete(`/v1/ai/executions/${executionId}`)).status, 200);
  const { data } = (await author.get(path)).body;
  await foldRuns(market.service.ctx);
  const reply = await author.get(path);
  assert.deepEqual(reply.body.data, data);
  assert.deepEqual(reply.body.data, {
    total: 3,
    completed: 2,
    failed: 1,
    canceled: 0,
    buyers: 2,
    last30Days: 2,
  });
  assert.ok(!reply.text.includes("secret"));
  assertError(await one.get(path), 403, "UNAUTHORIZED");
  assertError(await one.get(`/v1/products/${await createDraft(author)}/runs`), 404, "PRODUCT_NOT_FOUND");
});

test("GET /v1/products/runs and /v1/sales/:id/runs: counts by product and by sale, with the reasons of failures", async (t) => {
  const market = await openMarket();
  t.after(() => market.close());
  const [author, buyer] = [await market.createUser(), await market.createUser()];
  const [good, bad] = [await createProduct(author, { title: "Good" }), await createProduct(author)];
  const order = await buyProduct(buyer, bad);
  await buyProduct(buyer, good);
  await runToCompletion(buyer, { productId: good });
  await runToCompletion(buyer, { productId: good });
  await run(buyer, { productId: bad, options: { model: "sandbox-500" } });
  await runToCompletion(author, { productId: bad });
  const list = async (query: string) => (await author.get(`/v1/products/runs?${query}`)).body;
  const { data, meta } = await list("sort=failures");
  assert.equal(meta.total, 2);
  assert.partialDeepStrictEqual(data[0], {
    ...{ product: { id: bad, type: "PROMPT" }, total: 1, failed: 1, failed30Days: 1, buyers: 1 },
    failures30Days: [{ runs: 1 }],
  });
  assert.deepEqual(
    (await list("limit=1")).data.map(({ product }: { product: { title: string } }) => product.title),
    ["Good"],
  );
  assert.equal((await list(`productIds=${bad},prod_unknown`)).data.length, 1);
  const runs = (await author.get(`/v1/sales/${order}/runs`)).body.data;
  assert.partialDeepStrictEqual(runs, { total: 1, completed: 0, failed: 1, canceled: 0 });
  assert.equal(runs.failures[0].code, data[0].failures30Days[0].code);
  assertError(await buyer.get(`/v1/sales/${order}/runs`), 403, "UNAUTHORIZED");
});
