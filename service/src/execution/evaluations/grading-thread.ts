import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { CaseVerdict, GradedRun, TestCase } from "@stoa/evaluation";

/** Far more than the parsers of one output take. */
const MAX_HEAP_MB = 512;

export interface GradingRequest {
  testCase: TestCase;
  run: GradedRun;
}

export type Grade = (testCase: TestCase, run: GradedRun) => Promise<CaseVerdict>;

/**
 * Calls `work` with a function that grades one output at a time in a thread: fifty costly assertions may take a minute, in
 * which the process must serve others. The thread also keeps the parsers out of the memory of a process at rest.
 */
export async function gradeInThread<Result>(work: (grade: Grade) => Promise<Result>): Promise<Result> {
  const worker = new Worker(new URL("./grade.worker.ts", import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    // The thread needs no settings and must not see secrets.
    env: {},
    execArgv: [],
  });
  const failure = new Promise<never>((_resolve, reject) => worker.once("error", reject));
  // An error between two outputs is reported by the next.
  failure.catch(() => {});
  try {
    return await work(async (testCase, run) => {
      const response = once(worker, "message");
      worker.postMessage({ testCase, run } satisfies GradingRequest);
      const [verdict] = await Promise.race([response, failure]);
      return verdict as CaseVerdict;
    });
  } finally {
    await worker.terminate();
  }
}
