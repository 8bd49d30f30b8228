/** Runs in a worker thread; evaluation-thread.ts enforces the time limit. */

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
port.on("message", (request: EvaluationRequest) => port.postMessage(evaluate(request)));
port.postMessage("ready");

function evaluate({ expression, bindings }: EvaluationRequest): EvaluationResponse {
  try {
    const values = JSON.parse(bindings);
    // Parsing the input does not count.
    clock[0] = isCpuTime ? toMs(process.threadCpuUsage()) : wallClockMs();
    return { value: run(expression, values) };
  } catch (error) {
    // Messages of the library may quote values.
    return { reason: error instanceof EvaluationError ? error.reason : "cannot be evaluated" };
  }
}

/** The first runs take ten times as long as later ones. */
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
