import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import type { CallToolResult, Client as McpClient } from "@modelcontextprotocol/client";
import { storeTestSet, untilEvaluated } from "../../../test/evaluations.ts";
import { buyProduct, createProduct, workflow } from "../../../test/factories.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { connectMcp, textOf, toolFor } from "../../../test/mcp.ts";
import { becomes } from "../../../test/until.ts";
import { startWorker } from "../../../test/workflows.ts";
import { advanceEvaluations } from "../evaluations/advance.ts";

let market: Market;
let author: Client;
let client: McpClient;
let worker: ReturnType<typeof startWorker>;
before(async () => {
  market = await openMarket();
  author = await market.createUser({ name: "Ada" });
  client = await connectMcp(market, author);
  worker = startWorker(market);
});
after(async () => {
  await client.close();
  await worker.stop();
  await market.close();
});

type Arguments = Record<string, unknown>;

const call = (name: string, args: Arguments): Promise<CallToolResult> =>
  client.callTool({ name, arguments: args });
const dataOf = ({ structuredContent }: CallToolResult) => structuredContent as Record<string, unknown>;

async function createTested(title: string): Promise<{ productId: string; tool: string }> {
  const productId = await createProduct(author, { title });
  await storeTestSet(author, productId);
  return { productId, tool: await toolFor(client, title) };
}

const evaluationsOf = async (productId: string) =>
  (await author.get(`/v1/products/${productId}/evaluations`)).body.data;

const echo = { models: [{ model: "sandbox-echo" }] };

suite("evaluate", () => {
  test("without maxCost: the estimate, and nothing starts", async () => {
    const { productId, tool } = await createTested("Estimated");
    const result = await call("evaluate", { product: tool, ...echo });
    assert.equal(result.isError, undefined, textOf(result));
    assert.match(
      textOf(result),
      /^The evaluation has 18 runs, and they are expected to cost 0 USD\. Nothing was started\./,
    );
    const { status, runs, cost, evaluationId } = dataOf(result);
    assert.deepEqual([status, runs, cost, evaluationId], ["estimated", 18, 0, null]);
    assert.deepEqual(await evaluationsOf(productId), []);
  });

  test("with maxCost: starts; get_evaluation returns passed runs with intervals", async () => {
    const { productId, tool } = await createTested("Started");
    const started = await call("evaluate", {
      product: tool,
      ...echo,
      repeats: 2,
      maxCost: 0.5,
      waitSeconds: 0,
    });
    const { evaluationId, status } = dataOf(started) as { evaluationId: string; status: string };
    assert.equal(status, "running", textOf(started));
    assert.equal((await evaluationsOf(productId))[0].maxCost, 0.5);
    await untilEvaluated(market, author, evaluationId);
    // A poll reads no test set, which may be large.
    await market.query("alter table test_sets rename column cases to unread_cases");
    const ended = await call("get_evaluation", { evaluationId }).finally(() =>
      market.query("alter table test_sets rename column unread_cases to cases"),
    );
    const { models, ...others } = dataOf(ended);
    assert.deepEqual(others, {
      evaluationId,
      status: "completed",
      version: "1.0.0",
      runs: 12,
      cost: 0,
      error: null,
    });
    const { scoreCard } = (await author.get(`/v1/products/${productId}/score-card`)).body.data;
    assert.deepEqual(models, scoreCard.models);
    assert.match(
      textOf(ended),
      /\n- sandbox sandbox-echo \(practice provider, no model\): 4 of 6 runs passed, 67 % \(95 % interval 21 % to 94 %\); without the product \d of 6/,
    );
  });

  test("a judged card: its judge is the default and its figures stay apart; another judge and null replace it", async () => {
    const { productId, tool } = await createTested("Judged");
    await storeTestSet(author, productId, [
      {
        title: "Is a haiku",
        input: { topic: "rain" },
        assert: [
          { type: "contains", value: "rain" },
          { type: "llm-rubric", value: 'Asks for a "haiku"' },
          { type: "similar", value: "Write a haiku about {{topic}} in English" },
        ],
      },
    ]);
    const args = { product: tool, ...echo, repeats: 2 };
    const plain = await call("evaluate", args);
    assert.match(textOf(plain), /^The evaluation has 4 runs, and/);
    const judge = { apiKeyId: "sandbox", model: "sandbox", embedding: { apiKeyId: "sandbox" } };
    const judged = { ...args, judge, maxCost: 1, waitSeconds: 0 };
    const { evaluationId } = dataOf(await call("evaluate", judged)) as { evaluationId: string };
    await untilEvaluated(market, author, evaluationId);
    const ended = await call("get_evaluation", { evaluationId });
    assert.deepEqual([dataOf(ended)["status"], dataOf(ended)["runs"]], ["completed", 4], textOf(ended));
    assert.match(
      textOf(ended),
      /: 2 of 2 runs passed, .*; without the product 2 of 2 runs.*\. By the judge: 2 of 2 runs passed, 100 % .*; without the product 0 of 2 runs/,
    );

    const again = await call("evaluate", args);
    assert.match(textOf(again), /^The evaluation has 4 runs and 8 calls of the judge sandbox sandbox, and/);
    assert.equal(dataOf(again)["runs"], 4);
    const named = await call("evaluate", { ...args, judge: { apiKeyId: "pkey_x" } });
    assert.match(textOf(named), /^PROVIDER_KEY_NOT_FOUND/);
    assert.match(textOf(await call("evaluate", { ...args, judge: null })), /^The evaluation has 4 runs, and/);
    await storeTestSet(author, productId);
    const unjudged = await call("evaluate", args);
    assert.equal(unjudged.isError, undefined, textOf(unjudged));
    assert.match(textOf(unjudged), /^The evaluation has 12 runs, and/);
  });

  test("a call that waits: its result when the evaluation ends", async () => {
    const { tool } = await createTested("Awaited");
    const waiting = call("evaluate", { product: tool, ...echo, repeats: 1, maxCost: 1 });
    let isDone = false;
    void waiting.finally(() => (isDone = true));
    await becomes(
      async () => {
        await advanceEvaluations(market.service.ctx);
        return isDone;
      },
      (done) => done,
    );
    assert.equal(dataOf(await waiting)["status"], "completed");
  });

  test("a workflow by its id, with default keys", async () => {
    const flow = { type: "WORKFLOW", content: JSON.stringify(workflow), compatibility: undefined };
    const productId = await createProduct(author, { title: "Flow", ...flow });
    await storeTestSet(author, productId, [
      { title: "Answers", input: { topic: "rain" }, assert: [{ type: "contains", value: "sandbox" }] },
    ]);
    const estimate = await call("evaluate", { product: productId });
    const [withWorkflow, bare] = [3, 3];
    assert.equal(dataOf(estimate)["runs"], withWorkflow + bare, textOf(estimate));
  });

  test("a second one of the product, an unknown product, one of another seller, wrong arguments: the API's errors", async () => {
    const { productId, tool } = await createTested("Refused");
    const args = { product: tool, ...echo, maxCost: 1, waitSeconds: 0 };
    const { evaluationId } = dataOf(await call("evaluate", args));
    const second = await call("evaluate", args);
    assert.equal(second.isError, true);
    assert.match(textOf(second), /^INVALID_STATE: An evaluation of this product runs/);
    const canceled = await call("cancel_evaluation", { evaluationId });
    assert.deepEqual([dataOf(canceled)["status"], canceled.isError], ["canceled", true]);
    assert.equal((await evaluationsOf(productId))[0].status, "canceled");

    assert.match(
      textOf(await call("evaluate", { product: "run_nothing_000000000000" })),
      /^PRODUCT_NOT_FOUND/,
    );
    assert.match(
      textOf(await call("evaluate", { product: tool, maxCost: -1 })),
      /arguments are invalid\.\n- maxCost/,
    );
    assert.match(textOf(await call("evaluate", {})), /- product/);
    assert.match(textOf(await call("get_evaluation", { evaluationId: "eval_x" })), /^EVALUATION_NOT_FOUND/);

    const buyer = await market.createUser();
    await buyProduct(buyer, productId);
    const theirs = await connectMcp(market, buyer);
    const refused = await theirs.callTool({ name: "evaluate", arguments: { product: tool, maxCost: 1 } });
    assert.match(textOf(refused), /^UNAUTHORIZED: Only its author may evaluate/);
    const read = await theirs.callTool({ name: "get_evaluation", arguments: { evaluationId } });
    assert.match(textOf(read), /^EVALUATION_NOT_FOUND/);
    await theirs.close();
  });

  test("tools/list: for those who wrote a product", async () => {
    const namesOf = async (mcp: McpClient) => (await mcp.listTools()).tools.map(({ name }) => name);
    const buyer = await connectMcp(market, await market.createUser());
    assert.deepEqual(await namesOf(buyer), ["get_execution", "cancel_execution"]);
    await buyer.close();
    assert.deepEqual((await namesOf(client)).slice(0, 5), [
      ...["get_execution", "cancel_execution"],
      ...["evaluate", "get_evaluation", "cancel_evaluation"],
    ]);
  });
});
