import assert from "node:assert/strict";
import { requireUuid } from "../src/core/ids.ts";
import { advanceEvaluation } from "../src/execution/evaluations/advance.ts";
import type { Client, Market } from "./market.ts";
import { until } from "./until.ts";

/** Case 0 passes with the haiku and its language, case 1 only where the topic is repeated, case 2 never; case 1 is hidden. */
export const haikuCases = [
  {
    title: "Asks for a haiku",
    input: { topic: "rain" },
    assert: [{ type: "contains", value: "haiku about {{topic}}" }],
  },
  {
    title: "Names the topic",
    isHidden: true,
    input: { topic: "snow" },
    assert: [{ type: "icontains", value: "SNOW" }],
  },
  {
    title: "Is in Greek",
    input: { topic: "sun", language: "Greek" },
    assert: [
      { type: "starts-with", value: "Ήλιος" },
      { type: "not-contains", value: "rain" },
    ],
  },
];

export async function storeTestSet(author: Client, productId: string, cases: object[] = haikuCases) {
  const reply = await author.put(`/v1/products/${productId}/test-set`, { cases });
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
}

export const sandboxRequest = {
  models: [{ apiKeyId: "sandbox", model: "sandbox-echo" }],
  repeats: 2,
  maxCost: 1,
};

export const postEvaluation = (
  author: Client,
  productId: string,
  request: object = sandboxRequest,
  headers: Record<string, string> = {},
) => author.post(`/v1/products/${productId}/evaluations`, request, headers);

/** Returns the id of a new evaluation. */
export async function startEvaluation(
  author: Client,
  productId: string,
  request: object = sandboxRequest,
): Promise<string> {
  const reply = await postEvaluation(author, productId, request);
  assert.equal(reply.status, 202, reply.text);
  return reply.body.data.id;
}

export async function evaluationOf(author: Client, id: string) {
  const reply = await author.get(`/v1/evaluations/${id}`);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
}

/**
 * Does what the jobs do until the evaluation ends and all its columns are graded, and throws what they throw. A workflow worker
 * must run.
 */
export async function untilEvaluated({ service: { ctx } }: Market, author: Client, id: string) {
  const evaluationId = requireUuid("eval", id);
  await until("the evaluation has ended", async () => {
    await advanceEvaluation(ctx, evaluationId);
    // Reading it over HTTP each time would take half of the CPU time of these tests.
    const { rows } = await ctx.pool.query(RUNNING, [evaluationId]);
    return rows.length === 0;
  });
  return evaluationOf(author, id);
}

const RUNNING = `select from evaluations where id = $1 and status = 'running'
  union all select from evaluation_columns where evaluation_id = $1 and status = 'running'`;
