import { readdirSync, readFileSync } from "node:fs";

/** Linux: the unit of /proc. */
const TICK_MS = 10;
const [PARENT, USER, SYSTEM, USER_OF_ENDED, SYSTEM_OF_ENDED] = [1, 11, 12, 13, 14];

function fieldsOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)!.split(" ").map(Number);
  } catch {
    return [];
  }
}

const sum = (fields: number[], ...which: number[]) =>
  which.reduce((ticks, field) => ticks + (fields[field] ?? 0), 0) * TICK_MS;
const usedBy = (pid: number) => sum(fieldsOf(pid), USER, SYSTEM);

/** CPU time in milliseconds, by process. */
export const cpuOf = (pids: number[]): Map<number, number> => new Map(pids.map((pid) => [pid, usedBy(pid)]));

/** The CPU time in between. New processes count from their start. */
export const cpuBetween = (before: Map<number, number>, after: Map<number, number>): number =>
  [...after].reduce((sum, [pid, used]) => sum + used - (before.get(pid) ?? 0), 0);

export const parentOf = (pid: number): number => fieldsOf(pid)[PARENT] ?? 0;

/** CPU time in milliseconds of a process and its children, also of ended ones. */
export function cpuOfFamily(pid: number): number {
  const ids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const living = ids.map((id) => fieldsOf(Number(id))).filter((fields) => fields[PARENT] === pid);
  return living.reduce(
    (total, fields) => total + sum(fields, USER, SYSTEM),
    sum(fieldsOf(pid), USER, SYSTEM, USER_OF_ENDED, SYSTEM_OF_ENDED),
  );
}
