import type { TestEvent } from "node:test/reporters";
import { inspect } from "node:util";
import { failureNotes } from "../service/test/failure-notes.ts";
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
    if (event.type === "test:pass" || event.type === "test:fail") process.send!(await resultOf(event));
  }
  yield "";
}

async function resultOf({
  type,
  data,
}: Extract<TestEvent, { type: "test:pass" | "test:fail" }>): Promise<TestResult> {
  const { name, nesting, details, skip } = data;
  return {
    type: type === "test:pass" ? "pass" : "fail",
    name,
    nesting,
    suite: details.type === "suite",
    skip: skip === undefined ? null : String(skip),
    ms: details.duration_ms,
    cpuMs: nesting === 0 ? cpuMs() : 0,
    error: type === "test:fail" ? await errorOf(data.details.error) : null,
  };
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000 + descendantsCpuMs(process.pid);
}

async function errorOf(error: Error & { failureType?: string }): Promise<string | null> {
  if (error.failureType === "subtestsFailed") return null;
  const notes = await Promise.all([...failureNotes].map((describe) => describe()));
  return [inspect(error.cause ?? error), ...notes].join("\n");
}
