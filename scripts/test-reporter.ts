import type { TestEvent } from "node:test/reporters";
import { inspect } from "node:util";
import { descendantsCpuMs } from "./child-processes.ts";

/** The result of a finished test or suite. */
export interface TestResult {
  type: "pass" | "fail";
  name: string;
  nesting: number;
  suite: boolean;
  /** The reason; null: not skipped. */
  skip: string | null;
  ms: number;
  /** Of a file: CPU time so far of the process and its descendants, in milliseconds; without that of the shared PostgreSQL. */
  cpuMs: number;
  /** null for a pass, and for a suite that failed only because of its tests. */
  error: string | null;
}

/** Sends each result to the parent. */
export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of events) {
    if (event.type === "test:pass" || event.type === "test:fail") process.send!(resultOf(event));
  }
  yield "";
}

function resultOf({ type, data }: Extract<TestEvent, { type: "test:pass" | "test:fail" }>): TestResult {
  const { name, nesting, details, skip } = data;
  return {
    type: type === "test:pass" ? "pass" : "fail",
    name,
    nesting,
    suite: details.type === "suite",
    skip: skip === undefined ? null : String(skip),
    ms: details.duration_ms,
    cpuMs: nesting === 0 ? cpuMs() : 0,
    error: type === "test:fail" ? errorOf(data.details.error) : null,
  };
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000 + descendantsCpuMs(process.pid);
}

function errorOf(error: Error & { failureType?: string }): string | null {
  return error.failureType === "subtestsFailed" ? null : inspect(error.cause ?? error);
}
