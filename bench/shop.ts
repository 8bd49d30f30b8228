import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Base, openBase } from "@stoa/service/base.ts";
import { readConfig } from "@stoa/service/core/config/config.ts";
import { type Connection, openPool } from "@stoa/service/platform/db/database.ts";
import { startEmbedded } from "@stoa/service/platform/db/embedded.ts";
import { filledDataFolder } from "./data-folder.ts";
import type { Options } from "./options.ts";
import { argumentsOfStart, atEnd, ROOT, start } from "./processes.ts";
import { type Seeded, seed, signInAll } from "./seed.ts";

const PRODUCTS = 10_000;
const AMPLE = [{ requests: 1_000_000_000, seconds: 86_400 }];
/** The rate limiter runs and refuses nothing. */
export const WITHOUT_LIMITS = {
  plans: { enterprise: { quotas: AMPLE, concurrentRuns: 10_000 } },
  sessions: AMPLE,
  guests: AMPLE,
};
const CURRENCIES = "USD,EUR,GBP,INR,JPY,BRL";
/** For a new database, which is thrown away after a crash. */
export const LOADING = {
  fsync: "off",
  full_page_writes: "off",
  shared_buffers: "1GB",
  max_wal_size: "4GB",
  checkpoint_timeout: "30min",
};

/** The service in its own process. */
export interface Node {
  origin: string;
  pid: number;
  end(): Promise<void>;
}

/** A filled shop and its service. */
export interface Shop extends Seeded, Node {
  connection: Connection;
  dataDir: string;
  /** PostgreSQL's current backend processes. */
  backends(): Promise<number[]>;
  /** Another service on the same database. */
  startNode(settings?: Record<string, string>): Promise<Node>;
}

const shops = new Map<number, Promise<Shop>>();

/** Created by the first scenario that needs this size; shared until a scenario ends it. */
export function openShop(options: Options, count = PRODUCTS): Promise<Shop> {
  const shop = shops.get(count) ?? makeShop(options, count);
  shops.set(count, shop);
  return shop;
}

/** We start the database first and the service joins it, so that it finds a filled shop. */
async function makeShop(options: Options, count: number): Promise<Shop> {
  const { dataDir } = await filledDataFolder(options, String(count), makersOf(options), async (dataDir) => {
    await fillProducts(dataDir, options.prompts, count);
    return "";
  });
  const database = await startEmbedded(dataDir);
  atEnd(() => database.stop());
  const plansFile = join(dataDir, "plans.json");
  await writeFile(plansFile, JSON.stringify(WITHOUT_LIMITS));
  const connection = { target: database.connection };
  const seeded = await withBase(dataDir, connection, ({ ctx }) => signInAll(ctx));
  const startNode = (settings: Record<string, string> = {}) =>
    startService(options.profile, { STOA_DATA_DIR: dataDir, STOA_PLANS_FILE: plansFile, ...settings });
  const node = await startNode();
  const pool = openPool({ ...connection, maxConnections: 1 });
  const end = async () => {
    if (!shops.delete(count)) return;
    await node.end();
    await pool.end();
    await database.stop();
  };
  atEnd(end);
  return {
    ...{ ...seeded, ...node, connection, dataDir, startNode, end },
    async backends() {
      const { rows } = await pool.query<{ pid: number }>(
        "select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()",
      );
      return rows.map(({ pid }) => pid);
    },
  };
}

/** Files that decide the content of a shop. */
export const makersOf = ({ prompts }: Options) => [
  prompts,
  ...["texts.ts", "products.ts", "loading.ts"].map((name) => new URL(name, import.meta.url)),
];

export async function fillProducts(dataDir: string, prompts: string, count: number): Promise<void> {
  const database = await startEmbedded(dataDir, { settings: LOADING });
  try {
    const connection = { target: database.connection };
    await withBase(dataDir, connection, ({ ctx }) => seed(ctx, connection, { prompts, count }));
  } finally {
    await database.stop();
  }
}

/** The rooms in this process, without a server. */
export async function withBase<T>(dataDir: string, connection: Connection, work: (base: Base) => Promise<T>) {
  const config = readConfig({ STOA_DATA_DIR: dataDir, STOA_LOG_LEVEL: "warn" });
  const base = await openBase(config, connection);
  try {
    return await work(base);
  } finally {
    await base.close();
  }
}

/** Of this work tree, or of the one at `root`. */
export async function startService(
  profile: string | undefined,
  settings: Record<string, string>,
  root = ROOT,
): Promise<Node> {
  const profiling = profile ? ["--cpu-prof", `--cpu-prof-dir=${profile}`] : [];
  const service = start(process.execPath, [...profiling, ...argumentsOfStart(root)], {
    cwd: root,
    env: {
      PORT: "0",
      DATABASE_URL: "",
      STOA_ENVIRONMENT: "test",
      STOA_CURRENCIES: CURRENCIES,
      ...settings,
    },
    errors: "discard",
  });
  const [, origin] = await service.waitForLine(/API\s+(http:\/\/\S+)\/v1 /);
  return { origin: origin!, pid: service.pid, end: service.end };
}
