import assert from "node:assert/strict";
import { test } from "node:test";
import { buyProduct, createDraft, createProduct } from "../../../test/factories.ts";
import { assertError, openMarket } from "../../../test/market.ts";
import { run, runToCompletion } from "../../../test/runs.ts";

const DAY_MS = 86_400_000;

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
  const reply = await author.get(path);
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
