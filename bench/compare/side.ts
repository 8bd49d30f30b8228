import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openPool } from "@stoa/service/platform/db/database.ts";
import { cpuOfFamily } from "../cpu.ts";
import { childrenOf, memoryOf } from "../memory.ts";
import { atEnd, start } from "../processes.ts";
import { startService, WITHOUT_LIMITS } from "../shop.ts";
import type { Prepared, Reply, Request } from "./preparer.ts";
import type { Tree } from "./reference.ts";

const PREPARER = fileURLToPath(new URL("preparer.ts", import.meta.url));

/** One of the two compared: its service on its own database. */
export interface Side extends Prepared {
  name: string;
  origin: string;
  prepare(request: Request): Promise<Reply>;
  /** What the side has used until now. */
  usage(): Promise<Usage>;
  /** Of the service's processes, without PostgreSQL. */
  memoryBytes(): Promise<number>;
}

export interface Usage {
  /** CPU milliseconds of the service's processes. */
  nodeMs: number;
  /** CPU milliseconds of all processes of its PostgreSQL. */
  databaseMs: number;
  statements: number;
}

export async function openSide(
  { root, name }: Tree,
  dataDir: string,
  settings: Record<string, string>,
): Promise<Side> {
  await mkdir(dataDir, { recursive: true });
  // By the service it would compete with the first measurements.
  const build = start(process.execPath, ["scripts/build-web.ts"], { cwd: root });
  await build.output();
  const { prepared, prepare } = await startPreparer(root, dataDir);
  const plansFile = join(dataDir, "plans.json");
  await writeFile(plansFile, JSON.stringify(WITHOUT_LIMITS));
  const startIt = () =>
    startService(undefined, { STOA_DATA_DIR: dataDir, STOA_PLANS_FILE: plansFile, ...settings }, root);
  // Its end writes Node's compile cache. Without one a process needs other memory, and more CPU for its first requests.
  await (await startIt()).end();
  const service = await startIt();
  const statements = await countStatements(prepared);
  const postmaster = Number(
    (await readFile(join(dataDir, "postgres/postmaster.pid"), "utf8")).split("\n")[0],
  );
  return {
    ...{ ...prepared, name, origin: service.origin, prepare },
    usage: async () => ({
      statements: await statements(),
      nodeMs: cpuOfFamily(service.pid),
      databaseMs: cpuOfFamily(postmaster),
    }),
    async memoryBytes() {
      const pids = [service.pid, ...(await childrenOf(service.pid))];
      const memories = await Promise.all(pids.map(memoryOf));
      return memories.reduce((sum, { rssBytes }) => sum + rssBytes, 0);
    },
  };
}

async function startPreparer(root: string, dataDir: string) {
  const preparer = fork(PREPARER, [root, dataDir], { cwd: root });
  atEnd(async () => {
    if (preparer.exitCode !== null || preparer.signalCode !== null) return;
    const ended = once(preparer, "exit");
    preparer.disconnect();
    await ended;
  });
  const prepared = await nextMessage<Prepared>(preparer);
  return {
    prepared,
    prepare(request: Request): Promise<Reply> {
      const reply = nextMessage<Reply>(preparer);
      preparer.send(request);
      return reply;
    },
  };
}

function nextMessage<Message>(child: ChildProcess): Promise<Message> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null) =>
      reject(new Error(`The database of ${child.spawnargs[2]} was not prepared: exit status ${code}.`));
    child.once("exit", onExit);
    child.once("message", (message: Message & { error?: string }) => {
      child.off("exit", onExit);
      if (message.error) reject(new Error(message.error));
      else resolve(message);
    });
  });
}

/** Returns a function that counts the cluster's statements since its start, transaction control included. */
async function countStatements({ connection }: Prepared): Promise<() => Promise<number>> {
  const pool = openPool({ target: { ...connection, database: "postgres" }, maxConnections: 1 });
  atEnd(() => pool.end());
  await pool.query("create extension pg_stat_statements");
  return async () => {
    const { rows } = await pool.query<{ calls: string }>(
      "select sum(calls)::bigint::text as calls from pg_stat_statements",
    );
    return Number(rows[0]!.calls);
  };
}
