import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { permissions } from "@stoa/contract";
import { untilEvaluated } from "../../../test/evaluations.ts";
import { createProduct } from "../../../test/factories.ts";
import { sampleOf } from "../../../test/full-size.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { startWorker } from "../../../test/workflows.ts";
import { createKeyAsOperator } from "../../accounts/api-keys/keys.ts";
import { createUser } from "../../accounts/people/users.ts";
import type { Member } from "../../core/context.ts";
import { removeDemo } from "./demo.ts";
import { startDemoEvaluations } from "./evaluations.ts";

const readJson = async (file: string) => JSON.parse(await readFile(new URL(file, import.meta.url), "utf8"));

let market: Market;
let seller: Client;
let worker: ReturnType<typeof startWorker>;
const ids = new Map<string, string>();
before(async () => {
  market = await openMarket();
  worker = startWorker(market);
  const { ctx } = market.service;
  const userId = await createUser(ctx, { email: "seller@example.com", name: "Seller", demo: true });
  const { key } = await createKeyAsOperator(ctx, { userId, name: "demo", permissions: [...permissions] });
  seller = market.as(key);
  const prompts = new Map(
    (await readJson("./prompts.json")).map((prompt: { title: string }) => [prompt.title, prompt]),
  );
  for (const { title } of sampleOf<{ title: string }>(await readJson("./test-sets.json"))) {
    const prompt = prompts.get(title) as Record<string, unknown> | undefined;
    assert.ok(prompt, `a test set of no demo prompt: ${title}`);
    const { priceMinor: _price, views: _views, weight: _weight, ...fields } = prompt;
    ids.set(title, await createProduct(seller, fields));
  }
});
after(async () => {
  await worker.stop();
  await market.close();
});

const toCaller = (userId: string): Member => ({
  ...{ kind: "key", keyId: "demo", userId, role: "user", plan: "free", quota: null },
  permissions: new Set(permissions),
});

test("demo evaluations: the same scores everywhere, labeled as practice; a second start repeats none", async () => {
  const { ctx } = market.service;
  assert.equal(await startDemoEvaluations(ctx, toCaller), ids.size);
  assert.equal(await startDemoEvaluations(ctx, toCaller), ids.size);
  const scores: Record<string, unknown> = {};
  for (const [title, productId] of ids) {
    const { body } = await seller.get(`/v1/products/${productId}/evaluations`);
    assert.equal(body.data.length, 1, title);
    await untilEvaluated(market, seller, body.data[0].id);
    const { scoreCard } = (await seller.get(`/v1/products/${productId}/score-card`)).body.data;
    const [{ isSandbox, passed, n, baseline }] = scoreCard.models;
    scores[title] = [isSandbox, passed, n, baseline.passed];
  }
  const expected: Record<string, unknown> = {
    "RegEx Generator": [true, 12, 16, 0],
    "Smart Rewriter & Clarity Booster": [true, 12, 14, 2],
    "English Pronunciation Helper": [true, 10, 12, 2],
    "Interview Preparation Coach": [true, 16, 16, 0],
    "FAQ Generator": [true, 12, 16, 4],
    "Developer Daily Report Generator": [true, 12, 12, 0],
  };
  assert.deepEqual(scores, Object.fromEntries([...ids.keys()].map((title) => [title, expected[title]])));
});

test("demo remove: no evaluation, test set or score of it is left", async () => {
  await removeDemo(market.service.ctx);
  for (const table of ["evaluations", "test_sets", "product_scores", "executions", "notifications"]) {
    const { rows } = await market.query(`select count(*) from ${table}`);
    assert.deepEqual(rows, [{ count: 0 }], table);
  }
});
