import { readdirSync, readFileSync } from "node:fs";

/** Of Linux: the unit in which /proc counts. */
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

/** Milliseconds that processes have computed so far, by id. */
export const cpuOf = (pids: number[]): Map<number, number> => new Map(pids.map((pid) => [pid, usedBy(pid)]));

/** What they computed in between; what began in between counts from its beginning. */
export const cpuBetween = (before: Map<number, number>, after: Map<number, number>): number =>
  [...after].reduce((sum, [pid, used]) => sum + used - (before.get(pid) ?? 0), 0);

/** The process that began another one. */
export const parentOf = (pid: number): number => fieldsOf(pid)[PARENT] ?? 0;

/** Milliseconds that a process and its children have computed so far, those included which have ended. */
export function cpuOfFamily(pid: number): number {
  const ids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const living = ids.map((id) => fieldsOf(Number(id))).filter((fields) => fields[PARENT] === pid);
  return living.reduce(
    (total, fields) => total + sum(fields, USER, SYSTEM),
    sum(fieldsOf(pid), USER, SYSTEM, USER_OF_ENDED, SYSTEM_OF_ENDED),
  );
}
