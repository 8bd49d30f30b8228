import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { CallToolResult, Client as McpClient } from "@modelcontextprotocol/client";
import { buyProduct } from "../../../test/factories.ts";
import type { Client } from "../../../test/market.ts";
import { connectMcp, revisions, textOf } from "../../../test/mcp.ts";
import { createProviderKey, newestRun } from "../../../test/runs.ts";
import { becomes } from "../../../test/until.ts";
import {
  createWorkflow,
  type DefinitionInput,
  echoStep,
  openWorkflows,
  promptStep,
  transformStep,
  untilStatus,
} from "../../../test/workflows.ts";

const { market, author, provider } = await openWorkflows();

interface ToolResult {
  executionId: string;
  status: string;
  output: unknown;
  error: { code: string } | null;
  usage: { totalTokens: number } | null;
  waitingFor: string[];
}
const resultOf = ({ structuredContent }: CallToolResult) => structuredContent as unknown as ToolResult;

/** A new buyer of a workflow, with an MCP client and a function that calls the tool. */
async function buyerOf(definition: DefinitionInput, revision = revisions[1]) {
  const id = await createWorkflow(author, definition, { compatibility: ["openai"] });
  const published = await author.post(`/v1/products/${id}/publish`);
  assert.equal(published.status, 200, published.text);
  const buyer = await market.createUser();
  await buyProduct(buyer, id);
  const client = await connectMcp(market, buyer, revision);
  const name = (await client.listTools()).tools.at(-1)!.name;
  const call = (args: Record<string, unknown> = {}, options = {}) =>
    client.callTool({ name, arguments: args }, options);
  return { id, buyer, client, call };
}

const callTool = (client: McpClient, tool: string, args: Record<string, unknown>) =>
  client.callTool({ name: tool, arguments: args });

const input = { type: "object", required: ["topic"], properties: { topic: { type: "string" } } };
const echo = echoStep("echo", "{{t}}", { vars: { t: "input.topic" } });
const waitsForApproval = {
  steps: [{ id: "ok", type: "approval", timeoutSeconds: 3_600 }],
  result: "'went on'",
};
const waitsForDelay = { steps: [{ id: "later", type: "delay", seconds: 3_600 }] };

suite("tools/call of a workflow", () => {
  for (const revision of revisions) {
    test(`${revision}: waitsForApproval for the end; the result is text and data`, async () => {
      const steps = [echo, transformStep("both", "{'said': steps.echo.output, 'n': 1}", { needs: ["echo"] })];
      const { buyer, client, call } = await buyerOf({ input, steps, result: "steps.both.output" }, revision);
      const topic = '{{x}} "}] \u0007';
      const messages: (string | undefined)[] = [];
      const result = await call(
        { topic },
        { onprogress: ({ message }: { message?: string }) => messages.push(message) },
      );
      const output = { said: `[sandbox] ${topic}`, n: 1 };
      assert.deepEqual(JSON.parse(textOf(result)), output);
      const { executionId, status, ...rest } = resultOf(result);
      assert.deepEqual([status, rest.output, rest.error, rest.waitingFor], ["completed", output, null, []]);
      assert.ok(rest.usage!.totalTokens > 0);
      assert.equal((await newestRun(buyer)).id, executionId);
      assert.ok(messages.length > 0);
      await client.close();
    });
  }

  test("apiKeys: select keys; without them the newest keys or the sandbox", async () => {
    const { buyer, client, call } = await buyerOf({
      steps: [promptStep("one", "Say")],
      result: "steps.one.output",
    });
    assert.match(textOf(await call()), /^\[sandbox\] /);
    const openai = await createProviderKey(buyer);
    provider.next({ answer: { text: "By the key." } });
    assert.equal(textOf(await call()), "By the key.");
    assert.match(textOf(await call({ apiKeys: { openai: "sandbox" } })), /^\[sandbox\] /);
    provider.next({ answer: { text: "By that key." } });
    assert.equal(textOf(await call({ apiKeys: { openai } })), "By that key.");
    for (const apiKeys of [{ openai: "pkey_nope" }, { openai: 5 }, { nobody: openai }, 5, [openai]]) {
      const refused = await call({ apiKeys });
      assert.deepEqual([refused.isError, /- apiKeys/.test(textOf(refused))], [true, true], textOf(refused));
    }
    await client.close();
  });

  test("input named apiKeys: gets the argument", async () => {
    const mine = { type: "object", properties: { apiKeys: { type: "string" } } };
    const { client, call } = await buyerOf({
      input: mine,
      steps: [transformStep("a", "1")],
      result: "input.apiKeys",
    });
    assert.equal(textOf(await call({ apiKeys: "mine" })), "mine");
    await client.close();
  });

  test("invalid input: is an error result", async () => {
    const { client, call } = await buyerOf({ input, steps: [echo] });
    assert.match(textOf(await call({})), /^VALIDATION_ERROR: .*\n- (topic|input)/);
    assert.match(textOf(await call({ topic: 5 })), /- topic: must be/);
    await client.close();
  });

  test("failed run: is an error result with the reason", async () => {
    const { client, call } = await buyerOf({ steps: [transformStep("bad", "int('x')")] });
    const result = await call();
    assert.equal(result.isError, true);
    assert.match(textOf(result), /^[A-Z_]+: .*\nIt was execution exec_/s);
    assert.equal(resultOf(result).status, "failed");
    await client.close();
  });
});

suite("tools/call of a long workflow", () => {
  test("approval: returns `waiting`, and get_execution returns the end", async () => {
    const { buyer, client, call } = await buyerOf(waitsForApproval);
    const result = await call();
    const { executionId, status, waitingFor } = resultOf(result);
    assert.deepEqual([result.isError, status, waitingFor], [undefined, "waiting", ["ok"]]);
    assert.match(textOf(result), new RegExp(`${executionId}.*/steps/ok/approve.*get_execution`));
    const again = await callTool(client, "get_execution", { executionId });
    assert.deepEqual(resultOf(again).waitingFor, ["ok"]);
    const decided = await buyer.post(`/v1/ai/executions/${executionId}/steps/ok/approve`);
    assert.equal(decided.status, 200, decided.text);
    const ended = await callTool(client, "get_execution", { executionId });
    assert.deepEqual([resultOf(ended).status, textOf(ended)], ["completed", "went on"]);
    await client.close();
  });

  test("get_execution with waitSeconds 0 returns at once; cancel_execution cancels", async () => {
    const { buyer, client, call } = await buyerOf(waitsForDelay);
    const stop = new AbortController();
    const calling = call({}, { signal: stop.signal }).catch(String);
    const { id: executionId } = await becomes(
      () => newestRun(buyer),
      (run) => run?.status === "waiting",
    );
    const current = await callTool(client, "get_execution", { executionId, waitSeconds: 0 });
    assert.deepEqual([current.isError, resultOf(current).status], [undefined, "waiting"]);
    const canceled = await callTool(client, "cancel_execution", { executionId });
    assert.deepEqual([canceled.isError, resultOf(canceled).status], [undefined, "canceled"]);
    assert.equal(((await calling) as CallToolResult).isError, true);
    for (const args of [{}, { executionId: 5 }, { executionId, waitSeconds: 46 }, { executionId, more: 1 }])
      assert.match(textOf(await callTool(client, "get_execution", args)), /^INVALID_REQUEST: /);
    await client.close();
  });

  for (const revision of revisions) {
    test(`${revision}: a canceled call cancels the run`, async () => {
      const { buyer, client, call } = await buyerOf(waitsForDelay, revision);
      const stop = new AbortController();
      const calling = call({}, { signal: stop.signal }).catch(String);
      const { id } = await becomes(
        () => newestRun(buyer),
        (run) => run?.status === "waiting",
      );
      stop.abort();
      await untilStatus(buyer, id, "canceled");
      await calling;
      await client.close();
    });
  }

  test("stranger: can neither read nor cancel it", async () => {
    const { client, call, buyer } = await buyerOf(waitsForApproval);
    const { executionId } = resultOf(await call());
    const stranger = await connectMcp(market, await market.createUser());
    for (const tool of ["get_execution", "cancel_execution"])
      assert.match(textOf(await callTool(stranger, tool, { executionId })), /^EXECUTION_NOT_FOUND: /);
    assert.equal((await newestRun(buyer as Client)).status, "waiting");
    await Promise.all([client.close(), stranger.close()]);
  });
});
