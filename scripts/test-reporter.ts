import { readFileSync } from "node:fs";
import type { TestEvent } from "node:test/reporters";
import { inspect } from "node:util";

/** The result of a finished test or suite. */
export interface TestResult {
  type: "pass" | "fail";
  name: string;
  nesting: number;
  suite: boolean;
  /** The reason; null: not skipped. */
  skip: string | null;
  ms: number;
  /** CPU time so far of the process and its ended children, in milliseconds; without that of the shared PostgreSQL. */
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
    cpuMs: cpuMs(),
    error: type === "test:fail" ? errorOf(data.details.error) : null,
  };
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000 + endedChildrenCpuMs();
}

/** Linux counts in hundredths of a second. Elsewhere, the children are left out. */
const MS_PER_TICK = 10;

/** The fields cutime and cstime of proc(5), behind the name of the program, which may contain spaces. */
function endedChildrenCpuMs(): number {
  try {
    const fields = readFileSync("/proc/self/stat", "utf8").split(") ").at(-1)?.split(" ") ?? [];
    return (Number(fields[13]) + Number(fields[14])) * MS_PER_TICK;
  } catch {
    return 0;
  }
}

function errorOf(error: Error & { failureType?: string }): string | null {
  return error.failureType === "subtestsFailed" ? null : inspect(error.cause ?? error);
}
