import assert from "node:assert/strict";
import { after } from "node:test";
import { WorkflowWorker } from "../src/execution/workflow-runs/worker.ts";
import { Evaluator } from "../src/formats/workflow-definition/evaluator.ts";
import { createDraft, haiku } from "./factories.ts";
import { type Client, type Market, openMarket, type Reply } from "./market.ts";
import { startProviderServer } from "./provider-server.ts";
import { createProviderKey, providersAt } from "./runs.ts";
import { becomes } from "./until.ts";

export interface DefinitionInput {
  input?: object;
  steps: object[];
  result?: string;
}

/** A workflow's definition, by default without inputs. */
export const definitionOf = ({ input = { type: "object" }, steps, result = "1" }: DefinitionInput) =>
  JSON.stringify({ format: "workflow/1", input, steps, result });

/** A step that repeats its text in the sandbox. */
export const echoStep = (id: string, content: string, more: object = {}) => ({
  id,
  type: "prompt",
  provider: "sandbox",
  model: "sandbox-echo",
  messages: [{ role: "user", content }],
  ...more,
});

export const promptStep = (id: string, content: string, more: object = {}) =>
  echoStep(id, content, { provider: "openai", model: "gpt-5-mini", ...more });
export const transformStep = (id: string, value: string, more: object = {}) => ({
  ...{ id, type: "transform", value },
  ...more,
});

/** A market that runs workflows, with a provider and an author who has a provider key. */
export async function openWorkflows() {
  const provider = await startProviderServer();
  const market = await openMarket({ providers: providersAt(provider) });
  const author = await market.createUser({ name: "Author" });
  const openai = await createProviderKey(author);
  const worker = startWorker(market);
  after(async () => {
    await worker.stop();
    await market.close();
    await provider.close();
  });
  return { provider, market, author, worker, withOpenai: () => ({ apiKeys: { openai } }) };
}

/** Returns the id of a draft. */
export const createWorkflow = (
  author: Client,
  request: DefinitionInput,
  more: object = {},
): Promise<string> =>
  createDraft(author, {
    ...haiku,
    type: "WORKFLOW",
    content: definitionOf(request),
    compatibility: undefined,
    ...more,
  });

export interface ExecuteInput {
  input?: object;
  apiKeys?: Record<string, string>;
  webhookUrl?: string;
  options?: object;
}

export const postExecution = (
  caller: Client,
  workflowId: string,
  request: ExecuteInput = {},
  headers: Record<string, string> = {},
): Promise<Reply> =>
  caller.post(
    `/v1/ai/workflows/${workflowId}/execute`,
    { apiKeys: { sandbox: "sandbox" }, ...request },
    headers,
  );

/** Runs it to its end and returns the execution. */
export async function executeWorkflow(caller: Client, workflowId: string, request: ExecuteInput = {}) {
  const reply = await postExecution(caller, workflowId, request, { prefer: "wait=30" });
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
}

/** Starts it and returns the execution's id. */
export async function startExecution(
  caller: Client,
  workflowId: string,
  request: ExecuteInput = {},
): Promise<string> {
  const reply = await postExecution(caller, workflowId, request);
  assert.equal(reply.status, 202, reply.text);
  return reply.body.data.executionId;
}

export async function executionOf(caller: Client, id: string) {
  const reply = await caller.get(`/v1/ai/executions/${id}`);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
}

/** In order of start. */
export async function stepsOf(caller: Client, id: string) {
  const reply = await caller.get(`/v1/ai/executions/${id}/steps?limit=100`);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data.reverse();
}

export async function stepOf(caller: Client, id: string, stepId: string, index: number | null = null) {
  const steps = await stepsOf(caller, id);
  return steps.find(
    (step: { stepId: string; index: number | null }) => step.stepId === stepId && step.index === index,
  );
}

export const untilStatus = (caller: Client, id: string, status: string) =>
  becomes(
    () => executionOf(caller, id),
    (execution) => execution.status === status,
  );

/** Cancels it and waits for the end. */
export async function cancelExecution(caller: Client, id: string): Promise<void> {
  const reply = await caller.post(`/v1/ai/executions/${id}/cancel`);
  assert.equal(reply.status, 200, reply.text);
  await untilStatus(caller, id, "canceled");
}

/** A worker in the market's own process, ended with `stop`. */
export function startWorker(
  market: Market,
  { leaseMs, mostHeld }: { leaseMs?: number; mostHeld?: number } = {},
) {
  const evaluator = new Evaluator();
  const worker = new WorkflowWorker(market.service.ctx, evaluator, { leaseMs, maxRuns: mostHeld });
  worker.start();
  return {
    worker,
    async stop() {
      await worker.stop();
      await evaluator.close();
    },
  };
}
