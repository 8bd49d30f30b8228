import { type Bindings, Evaluator } from "@stoa/service/formats/workflow-definition/evaluator.ts";
import type { Options } from "../options.ts";
import { quantilesOf } from "../quantile.ts";
import type { Report } from "../report.ts";

const TIMES = 3_000;
const WARM_UP = 300;

const parts = Array.from({ length: 200 }, (_, index) => `Part ${index}`);
const bindings: Bindings = {
  input: { topic: "autumn", parts: 5, long: "word ".repeat(20_000) },
  steps: { outline: { output: { parts } } },
};

const kinds: [what: string, expression: string][] = [
  ["a condition", "size(steps.outline.output.parts) > 3 && input.parts == 5"],
  ["an object", "{'title': input.topic + '!', 'parts': input.parts + 1}"],
  ["200 items, mapped and joined", "steps.outline.output.parts.map(p, p + '.').join('\\n')"],
  ["100 KB of text, split and counted", "size(input.long.split(' '))"],
];
/** Only ending its thread stops it. */
const hostile = "[1, 2, 3, 4, 5, 6].exists(x, input.matches('(a+)+$'))";

/** The cost of a workflow's expression, alone and beside a hostile one. */
export async function measureExpressions(_options: Options): Promise<Report> {
  const evaluator = new Evaluator();
  const beginning = performance.now();
  await evaluator.evaluate("1", bindings, "first");
  const firstMs = performance.now() - beginning;
  const rows: string[][] = [];
  for (const [what, expression] of kinds) rows.push([what, ...(await timesOf(evaluator, expression))]);
  rows.push(["a condition, beside a flood that has to be stopped", ...(await besideFlood(evaluator))]);
  await evaluator.close();
  return {
    columns: ["an expression", "p50 ms", "p95 ms", "p99 ms"],
    rows,
    notes: [
      `${TIMES} of each, one after the other, after ${WARM_UP} that are not counted. The first of a process waits for its thread: ${firstMs.toFixed(0)} ms.`,
    ],
  };
}

async function timesOf(evaluator: Evaluator, expression: string): Promise<string[]> {
  const times: number[] = [];
  for (let turn = 0; turn < WARM_UP + TIMES; turn++) {
    const begun = performance.now();
    await evaluator.evaluate(expression, bindings, "somebody");
    times.push(performance.now() - begun);
  }
  const { p50, p95, p99 } = quantilesOf(times.slice(WARM_UP));
  return [p50, p95, p99].map((ms) => ms.toFixed(3));
}

async function besideFlood(evaluator: Evaluator): Promise<string[]> {
  const input = `${"a".repeat(1_500_000)}b`;
  let isOver = false;
  const flood = async () => {
    while (!isOver) await evaluator.evaluate(hostile, { input, steps: {} }, "neighbour").catch(() => {});
  };
  const flooding = flood();
  const times = await timesOf(evaluator, kinds[0]![1]);
  isOver = true;
  await flooding;
  return times;
}
