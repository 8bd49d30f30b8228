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

/** Longer than the pause between two columns of an evaluation. The start of a process takes as long as the grading of hundreds of outputs. */
const IDLE_MS = 5_000;

/** A grading process has some 80 MB. */
const oneAtOnce = limitConcurrency({ atOnce: 1, waiting: Number.POSITIVE_INFINITY });

/** The process of the last call, until IDLE_MS have passed. */
let idle: { grader: GradingProcess; timer: NodeJS.Timeout } | null = null;

/**
 * Calls `work` with a function that grades one output at a time in a process of its own: fifty costly assertions may take a
 * minute, in which the service must answer others, and the memory of the parsers goes back to the machine. A thread would
 * leave most of it with the service.
 */
export const gradeInProcess = <Result>(work: (grade: Grade) => Promise<Result>): Promise<Result> =>
  oneAtOnce(async () => {
    const grader = reuseIdle() ?? new GradingProcess();
    try {
      return await work((testCase, run) => grader.grade(testCase, run));
    } finally {
      release(grader);
    }
  });

function reuseIdle(): GradingProcess | null {
  if (!idle) return null;
  const { grader, timer } = idle;
  clearTimeout(timer);
  idle = null;
  return grader.isReady ? grader : null;
}

function release(grader: GradingProcess): void {
  if (!grader.isReady) {
    grader.end();
    return;
  }
  const timer = setTimeout(() => {
    idle = null;
    grader.end();
  }, IDLE_MS);
  idle = { grader, timer: timer.unref() };
}

class GradingProcess {
  readonly #child = fork(new URL("./grade.process.ts", import.meta.url), {
    serialization: "advanced",
    execArgv: [`--max-old-space-size=${MAX_HEAP_MB}`],
    env: compileCacheEnvironment(),
  });
  readonly #failure = Promise.race([
    once(this.#child, "error").then(([error]) => Promise.reject(error)),
    once(this.#child, "exit").then(([code, signal]) =>
      Promise.reject(new Error(`the process that grades outputs ended: ${signal ?? code}`)),
    ),
  ]);
  #isGrading = false;

  constructor() {
    // An end between two outputs is reported by the next.
    this.#failure.catch(() => {});
    // It ends with its parent, which need not wait for it.
    this.#child.unref();
    this.#child.channel?.unref();
  }

  /** It runs, and no output waits for its verdict. */
  get isReady(): boolean {
    return this.#child.connected && !this.#isGrading;
  }

  async grade(testCase: TestCase, run: GradedRun): Promise<CaseVerdict> {
    const response = once(this.#child, "message");
    this.#isGrading = true;
    this.#child.send({ testCase, run } satisfies GradingRequest);
    const [verdict] = await Promise.race([response, this.#failure]);
    this.#isGrading = false;
    return verdict as CaseVerdict;
  }

  end(): void {
    this.#child.kill("SIGKILL");
  }
}
