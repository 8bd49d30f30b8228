import { fork } from "node:child_process";
import { once } from "node:events";
import type { CaseVerdict, GradedRun, TestCase } from "@stoa/evaluation";
import { limitConcurrency } from "../../accounts/people/concurrency-limit.ts";
import { compileCacheEnvironment } from "../../core/compile-cache.ts";

/** Far more than the parsers of one output take. */
const MAX_HEAP_MB = 512;

export interface GradingRequest {
  testCase: TestCase;
  run: GradedRun;
}

export type Grade = (testCase: TestCase, run: GradedRun) => Promise<CaseVerdict>;

/** A grading process has some 80 MB. */
const oneAtOnce = limitConcurrency({ atOnce: 1, waiting: Number.POSITIVE_INFINITY });

/**
 * Calls `work` with a function that grades one output at a time in a process of its own: fifty costly assertions may take a
 * minute, in which the service must answer others, and the memory of the parsers goes back to the machine. A thread would
 * leave most of it with the service.
 */
export const gradeInProcess = <Result>(work: (grade: Grade) => Promise<Result>): Promise<Result> =>
  oneAtOnce(async () => {
    const child = fork(new URL("./grade.process.ts", import.meta.url), {
      serialization: "advanced",
      execArgv: [`--max-old-space-size=${MAX_HEAP_MB}`],
      env: compileCacheEnvironment(),
    });
    const failure = Promise.race([
      once(child, "error").then(([error]) => Promise.reject(error)),
      once(child, "exit").then(([code, signal]) =>
        Promise.reject(new Error(`the process that grades outputs ended: ${signal ?? code}`)),
      ),
    ]);
    // An end between two outputs is reported by the next.
    failure.catch(() => {});
    try {
      return await work(async (testCase, run) => {
        const response = once(child, "message");
        child.send({ testCase, run } satisfies GradingRequest);
        const [verdict] = await Promise.race([response, failure]);
        return verdict as CaseVerdict;
      });
    } finally {
      child.kill("SIGKILL");
    }
  });
