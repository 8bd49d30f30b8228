/** Runs in a worker thread, which evaluation-thread.ts stops from outside. */

import { parentPort, workerData } from "node:worker_threads";
import { required } from "../../core/required.ts";
import { EvaluationError } from "./evaluation-error.ts";
import {
  type EvaluationRequest,
  type EvaluationResponse,
  type ThreadData,
  toMs,
  wallClockMs,
} from "./evaluation-thread.ts";
import { createExpressionRunner } from "./expression-runner.ts";

const { clock, isCpuTime } = workerData as ThreadData;
const run = await createExpressionRunner();
warmUp();

const port = required(parentPort, "the port of the thread that started this one");
port.on("message", (question: EvaluationRequest) => port.postMessage(evaluate(question)));
port.postMessage("ready");

function evaluate({ expression, bindings }: EvaluationRequest): EvaluationResponse {
  try {
    const values = JSON.parse(bindings);
    // The time for parsing the input does not count.
    clock[0] = isCpuTime ? toMs(process.threadCpuUsage()) : wallClockMs();
    return { value: run(expression, values) };
  } catch (error) {
    // Messages of the library may quote what the expression read.
    return { reason: error instanceof EvaluationError ? error.reason : "cannot be evaluated" };
  }
}

/** A first run takes ten times as long, and the first user must not pay for it. */
function warmUp(): void {
  for (let round = 0; round < 20; round++) {
    run(
      "{'a': input.list.map(x, x + 1).filter(x, x > 1), 'b': input.text.split(' ').join('-').contains('b')}",
      {
        input: { list: [1, 2.5, 3], text: "a b c" },
      },
    );
  }
}
