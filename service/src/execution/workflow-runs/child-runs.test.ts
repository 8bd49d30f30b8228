import assert from "node:assert/strict";
import { test } from "node:test";
import pg from "pg";
import { createWorkflow, echoStep, executeWorkflow, openWorkflows } from "../../../test/workflows.ts";

const { author } = await openWorkflows();

/**
 * Delays the response to the commit that starts a child run until the parent has read that run's end. A busy machine can delay it
 * as long.
 */
function delayCommits(): Disposable {
  const { promise: endRead, resolve: onEndRead } = Promise.withResolvers<void>();
  const calling = new WeakSet<pg.Client>();
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
    const [first] = args as [string | { text: string }];
    const text = typeof first === "string" ? first : first.text;
    const result = (query as (...args: unknown[]) => unknown).apply(this, args);
    if (text === "begin") calling.delete(this);
    if (text.startsWith("-- prepared: insert_workflow_run")) calling.add(this);
    if (text === "commit" && calling.has(this))
      return (result as Promise<unknown>).then(async (answer) => {
        await endRead;
        return answer;
      });
    if (text.startsWith("-- prepared: read_run_signals"))
      void (result as Promise<pg.QueryResult>).then(({ rows }) => rows[0]?.ends.length > 0 && onEndRead());
    return result;
  } as typeof query;
  return {
    [Symbol.dispose]() {
      pg.Client.prototype.query = query;
      onEndRead();
    },
  };
}

test("child run that ends before its parent reads its id: ends the step", async () => {
  const productId = await createWorkflow(author, { steps: [echoStep("a", "x")], result: "steps.a.output" });
  const workflowId = await createWorkflow(author, {
    steps: [{ id: "other", type: "product", productId }],
    result: "steps.other.output",
  });
  using _late = delayCommits();
  assert.equal((await executeWorkflow(author, workflowId)).output, "[sandbox] x");
});
