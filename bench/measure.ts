import { cpuBetween, cpuOf } from "./cpu.ts";
import { type Job, type Outcome, putUnderLoad } from "./load.ts";
import type { Shop } from "./shop.ts";

/** A server under load; what its requests cost is read off its own process and the database's. */
export type Target = Pick<Shop, "origin" | "pid" | "backends">;

/** With the computing that a request took, which other work on the machine hardly moves. */
export interface Measured extends Outcome {
  nodeMs: number;
  databaseMs: number;
}

export type Load = Omit<Job, "origin">;

export async function measure({ origin, pid, backends }: Target, load: Load): Promise<Measured> {
  const before = { node: cpuOf([pid]), database: cpuOf(await backends()) };
  const outcome = await putUnderLoad({ origin, ...load });
  const after = { node: cpuOf([pid]), database: cpuOf(await backends()) };
  return {
    ...outcome,
    nodeMs: cpuBetween(before.node, after.node) / outcome.requests,
    databaseMs: cpuBetween(before.database, after.database) / outcome.requests,
  };
}
