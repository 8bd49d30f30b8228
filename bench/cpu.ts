import { readFileSync } from "node:fs";

/** Of Linux: the unit in which /proc counts. */
const TICK_MS = 10;
const [USER, SYSTEM] = [11, 12];

function usedBy(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)!.split(" ");
    return (Number(fields[USER]) + Number(fields[SYSTEM])) * TICK_MS;
  } catch {
    return 0;
  }
}

/** Milliseconds that processes have computed so far, by id. */
export const cpuOf = (pids: number[]): Map<number, number> => new Map(pids.map((pid) => [pid, usedBy(pid)]));

/** What they computed in between; what began in between counts from its beginning. */
export const cpuBetween = (before: Map<number, number>, after: Map<number, number>): number =>
  [...after].reduce((sum, [pid, used]) => sum + used - (before.get(pid) ?? 0), 0);
