import { cpuBetween, cpuOf } from "./cpu.ts";
import { type Job, type LoadResult, runLoad } from "./load.ts";
import type { Shop } from "./shop.ts";

/** A server under load, with the processes whose CPU time is measured. */
export type Target = Pick<Shop, "origin" | "pid" | "backends">;

/** With the CPU time per request, which other programs hardly affect. */
export interface Measured extends Omit<LoadResult, "cpuMs"> {
  nodeMs: number;
  databaseMs: number;
}

export type Load = Omit<Job, "origin">;

export async function measure({ origin, pid, backends }: Target, load: Load): Promise<Measured> {
  const before = { node: cpuOf([pid]), database: cpuOf(await backends()) };
  const result = await runLoad({ origin, ...load });
  const after = { node: cpuOf([pid]), database: cpuOf(await backends()) };
  return {
    ...result,
    nodeMs: cpuBetween(before.node, after.node) / result.requests,
    databaseMs: cpuBetween(before.database, after.database) / result.requests,
  };
}
