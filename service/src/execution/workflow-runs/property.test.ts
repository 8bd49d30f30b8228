import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { runs } from "../../../test/full-size.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { createWorkflow, echoStep, executeWorkflow, startWorker } from "../../../test/workflows.ts";

let market: Market;
let author: Client;
let worker: ReturnType<typeof startWorker>;
before(async () => {
  market = await openMarket();
  author = await market.createUser();
  worker = startWorker(market);
});
after(async () => {
  await worker.stop();
  await market.close();
});

type Kind = "sum" | "broken" | "call" | "refused" | "items" | "broken items";

interface StepSpec {
  kind: Kind;
  /** Indexes of earlier steps. */
  needs: number[];
  isSkipped: boolean;
  mayFail: boolean;
}

const idOf = (n: number) => `s${n}`;
/** An expression that adds 1 to the sum of the needed outputs; null counts as 0. */
const sumOf = (needs: string[]) =>
  ["1", ...needs.map((id) => `(steps.${id}.output == null ? 0 : int(steps.${id}.output))`)].join(" + ");

function toStep({ kind, isSkipped, mayFail }: StepSpec, n: number, needs: string[]): object {
  const common = {
    id: idOf(n),
    needs,
    when: isSkipped ? "1 > 2" : "1 < 2",
    onError: mayFail ? "continue" : "fail",
  };
  const sum = sumOf(needs);
  switch (kind) {
    case "sum":
      return { ...common, type: "transform", value: sum };
    case "broken":
      return { ...common, type: "transform", value: `${sum} + 1 / 0` };
    case "call":
      return echoStep("", "{{n}}", { ...common, vars: { n: `string(${sum})` }, output: { type: "integer" } });
    case "refused":
      return echoStep("", "x", { ...common, model: "sandbox-context" });
    case "items":
      return {
        ...common,
        type: "map",
        maxConcurrency: 2,
        items: "[1, 2, 3]",
        do: { type: "transform", value: "item" },
      };
    case "broken items":
      return { ...common, type: "map", items: "[1, 0, 2]", do: { type: "transform", value: "4 / item" } };
  }
}

type Predicted = { output: unknown } | { codes: string[] };

const CODES: Partial<Record<Kind, string>> = {
  broken: "EXPRESSION_FAILED",
  refused: "CONTEXT_LENGTH_EXCEEDED",
  "broken items": "EXPRESSION_FAILED",
};

/** Runs the steps one after the other, in their order. */
function predict(specs: StepSpec[], needs: string[][]): Predicted {
  const outputs = new Map<string, unknown>();
  const codes: string[] = [];
  specs.forEach(({ kind, isSkipped, mayFail }, n) => {
    if (!needs[n]!.every((id) => outputs.has(id))) return;
    const code = isSkipped ? undefined : CODES[kind];
    if (code && !mayFail) codes.push(code);
    else if (isSkipped || code) outputs.set(idOf(n), null);
    else if (kind === "items") outputs.set(idOf(n), [1, 2, 3]);
    else
      outputs.set(
        idOf(n),
        needs[n]!.reduce((sum, id) => sum + ((outputs.get(id) as number | null) ?? 0), 1),
      );
  });
  return codes.length > 0 ? { codes } : { output: specs.map((_, n) => outputs.get(idOf(n))) };
}

const kinds = fc.constantFrom<Kind>(
  "sum",
  "sum",
  "call",
  "call",
  "items",
  "broken",
  "refused",
  "broken items",
);
const stepSpec = fc.record({
  kind: kinds,
  needs: fc.array(fc.nat({ max: 20 }), { maxLength: 3 }),
  isSkipped: fc.integer({ min: 0, max: 3 }).map((n) => n === 0),
  mayFail: fc.boolean(),
});

test("random workflow of needs, skips and failures: ends as a sequential model predicts", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(stepSpec, { minLength: 1, maxLength: 9 }), async (specs) => {
      // The output of a map is a list, not a number: no step needs it.
      const needs = specs.map(({ needs: indexes }, n) => [
        ...new Set(
          indexes
            .map((index) => index % Math.max(1, n))
            .filter((index) => index < n && !specs[index]!.kind.includes("items"))
            .map(idOf),
        ),
      ]);
      const steps = specs.map((one, n) => toStep(one, n, needs[n]!));
      const result = `[${specs.map((_, n) => `steps.${idOf(n)}.output`).join(", ")}]`;
      const workflowId = await createWorkflow(author, { steps, result });
      const predicted = predict(specs, needs);
      // The first run reads its workflow, and the second one remembers it.
      for (let n = 0; n < 2; n++) {
        const run = await executeWorkflow(author, workflowId);
        if ("output" in predicted)
          assert.deepEqual([run.status, run.output], ["completed", predicted.output]);
        else
          assert.ok(run.status === "failed" && predicted.codes.includes(run.error.code), JSON.stringify(run));
      }
    }),
    { numRuns: runs(60) },
  );
});
