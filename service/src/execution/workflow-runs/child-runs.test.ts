import assert from "node:assert/strict";
import { test } from "node:test";
import pg from "pg";
import { createWorkflow, echoStep, executeWorkflow, openWorkflows } from "../../../test/workflows.ts";

const { author } = await openWorkflows();

/**
 * Until it is disposed of: whoever has begun a run for a step learns so only when it has heard how that run ended. A busy machine
 * may keep the answer to a commit back for so long.
 */
function answersLate(): Disposable {
  const { promise: heard, resolve: hear } = Promise.withResolvers<void>();
  const calling = new WeakSet<pg.Client>();
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function (this: pg.Client, ...given: unknown[]) {
    const [first] = given as [string | { text: string }];
    const text = typeof first === "string" ? first : first.text;
    const asked = (query as (...given: unknown[]) => unknown).apply(this, given);
    if (text === "begin") calling.delete(this);
    if (text.startsWith("-- prepared: insert_workflow_run")) calling.add(this);
    if (text === "commit" && calling.has(this))
      return (asked as Promise<unknown>).then(async (answer) => {
        await heard;
        return answer;
      });
    if (text.startsWith("-- prepared: hear_workflow_run"))
      void (asked as Promise<pg.QueryResult>).then(({ rows }) => rows[0]?.ends.length > 0 && hear());
    return asked;
  } as typeof query;
  return {
    [Symbol.dispose]() {
      pg.Client.prototype.query = query;
      hear();
    },
  };
}

test("a run that ends before the step that called it knows that it began ends its step", async () => {
  const productId = await createWorkflow(author, { steps: [echoStep("a", "x")], result: "steps.a.output" });
  const workflowId = await createWorkflow(author, {
    steps: [{ id: "other", type: "product", productId }],
    result: "steps.other.output",
  });
  using _late = answersLate();
  assert.equal((await executeWorkflow(author, workflowId)).output, "[sandbox] x");
});
