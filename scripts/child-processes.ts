import { readdirSync, readFileSync } from "node:fs";

export interface ChildProcessInfo {
  pid: number;
  command: string;
}

/** The direct children of a process, from Linux's /proc; empty on other systems. */
export function childProcesses(pid: number): ChildProcessInfo[] {
  const pids = readProc(`${pid}/task/${pid}/children`).split(/\s+/).filter(Boolean);
  return pids.map((child) => ({
    pid: Number(child),
    command: readProc(`${child}/cmdline`).replaceAll("\0", " ").trim(),
  }));
}

function readProc(path: string): string {
  try {
    return readFileSync(`/proc/${path}`, "utf8");
  } catch {
    return "";
  }
}

/** Ends a process and all descendants, parents before their children, so that none is restarted. */
export function killTree(pid: number): void {
  const children = childProcesses(pid);
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has ended meanwhile.
  }
  for (const child of children) killTree(child.pid);
}

/** Linux counts in hundredths of a second. */
const MS_PER_TICK = 10;

interface Usage {
  parent: number;
  own: number;
  endedChildren: number;
}

/**
 * The CPU time of all processes below this one, running and ended, in milliseconds; 0 on systems without /proc. The time of
 * an ended process is in its parent's figures.
 */
export function descendantsCpuMs(ancestor: number): number {
  try {
    const usages = readUsages();
    const isDescendant = (pid: number): boolean => {
      const parent = usages.get(pid)?.parent;
      return parent === ancestor || (parent !== undefined && isDescendant(parent));
    };
    let ticks = usages.get(ancestor)?.endedChildren ?? 0;
    for (const [pid, { own, endedChildren }] of usages) if (isDescendant(pid)) ticks += own + endedChildren;
    return ticks * MS_PER_TICK;
  } catch {
    return 0;
  }
}

function readUsages(): Map<number, Usage> {
  const usages = new Map<number, Usage>();
  for (const name of readdirSync("/proc")) if (/^\d+$/.test(name)) usages.set(Number(name), readUsage(name));
  return usages;
}

/** The fields ppid, utime, stime, cutime and cstime of proc(5), behind the name of the program, which may contain spaces. */
function readUsage(pid: string): Usage {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ").map(Number) ?? [];
    const field = (index: number) => fields[index] ?? 0;
    return { parent: field(1), own: field(11) + field(12), endedChildren: field(13) + field(14) };
  } catch {
    // It has ended meanwhile.
    return { parent: 0, own: 0, endedChildren: 0 };
  }
}
