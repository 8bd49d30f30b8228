import { readFileSync } from "node:fs";

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
