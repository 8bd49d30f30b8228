import { access, constants, mkdtemp, rm, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import type { Connection } from "@stoa/service/platform/db/database.ts";
import { start } from "./processes.ts";
import type { Replay } from "./replay.ts";

export const WITHOUT_PGBENCH =
  "pgbench is not installed (Debian: postgresql-contrib), so nothing is compared with the statements alone.";

export interface PgbenchRun extends Replay {
  connection: Connection;
  connections: number;
  seconds: number;
}

const NAME = "pgbench";

export const hasPgbench = async (): Promise<boolean> => {
  const tries = (process.env["PATH"] ?? "")
    .split(":")
    .map((folder) => access(join(folder, NAME), constants.X_OK));
  return (await Promise.allSettled(tries)).some(({ status }) => status === "fulfilled");
};

/** Returns transactions per second with all connections. */
export async function pgbench({ script, constants: defined, ...run }: PgbenchRun): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "stoa-bench-pgbench-"));
  try {
    const file = join(folder, "turn.sql");
    await writeFile(file, script);
    const output = await start(
      NAME,
      [
        ...["--no-vacuum", "--protocol=extended", `--file=${file}`, `--time=${run.seconds}`],
        ...[`--client=${run.connections}`, `--jobs=${Math.min(run.connections, availableParallelism())}`],
        ...Object.entries(defined).map(([name, value]) => `--define=${name}=${value}`),
        ...connectionFlags(run.connection),
      ],
      {},
    ).output();
    return perSecondIn(output);
  } finally {
    await rm(folder, { recursive: true });
  }
}

function perSecondIn(output: string): number {
  const failed = Number(/^number of failed transactions: (\d+)/m.exec(output)?.[1] ?? 0);
  if (failed > 0) throw new Error(`${failed} turns of pgbench failed`);
  return Number(/^tps = ([\d.]+)/m.exec(output)![1]);
}

function connectionFlags({ target }: Connection): string[] {
  if (typeof target === "string") return [target];
  const { host, port, user, database } = target;
  return [`--host=${host}`, `--port=${port}`, `--username=${user}`, database];
}
