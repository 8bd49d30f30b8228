import { readdirSync, readFileSync } from "node:fs";
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
  return (user + system) / 1_000 + descendantsCpuMs();
}

/** Linux counts in hundredths of a second. Elsewhere, the descendants are left out. */
const MS_PER_TICK = 10;

interface Usage {
  parent: number;
  own: number;
  endedChildren: number;
}

/** The browser runs on after a file. The time of an ended process is in its parent's figures. */
function descendantsCpuMs(): number {
  try {
    const usages = readUsages();
    const isDescendant = (pid: number): boolean => {
      const parent = usages.get(pid)?.parent;
      return parent === process.pid || (parent !== undefined && isDescendant(parent));
    };
    let ticks = usages.get(process.pid)?.endedChildren ?? 0;
    for (const [pid, { own, endedChildren }] of usages) if (isDescendant(pid)) ticks += own + endedChildren;
    return ticks * MS_PER_TICK;
  } catch {
    return 0;
  }
}

function readUsages(): Map<number, Usage> {
  const usages = new Map<number, Usage>();
  for (const pid of readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number))
    usages.set(pid, readUsage(pid));
  return usages;
}

/** The fields ppid, utime, stime, cutime and cstime of proc(5), behind the name of the program, which may contain spaces. */
function readUsage(pid: number): Usage {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ").map(Number) ?? [];
    const [parent = 0, own = 0, endedChildren = 0] = [
      fields[1],
      fields[11]! + fields[12]!,
      fields[13]! + fields[14]!,
    ];
    return { parent, own, endedChildren };
  } catch {
    // It has ended meanwhile.
    return { parent: 0, own: 0, endedChildren: 0 };
  }
}

function errorOf(error: Error & { failureType?: string }): string | null {
  return error.failureType === "subtestsFailed" ? null : inspect(error.cause ?? error);
}
