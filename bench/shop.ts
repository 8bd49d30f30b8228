import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openBase } from "@stoa/service/base.ts";
import { readConfig } from "@stoa/service/config.ts";
import { openPool } from "@stoa/service/db/database.ts";
import { startEmbedded } from "@stoa/service/db/embedded.ts";
import type { Options } from "./options.ts";
import { atEnd, ROOT, start } from "./processes.ts";
import { readPrompts, type Seeded, seed } from "./seed.ts";

const PRODUCTS = 10_000;
const AMPLE = [{ requests: 1_000_000_000, seconds: 86_400 }];
/** The limiter works as ever, and refuses nothing. */
const WITHOUT_LIMITS = { plans: { enterprise: { quotas: AMPLE } }, sessions: AMPLE, guests: AMPLE };

/** A filled shop, and the service on it in a process of its own. */
export interface Shop extends Seeded {
  origin: string;
  pid: number;
  /** The processes of PostgreSQL that serve it now. */
  backends(): Promise<number[]>;
}

let shop: Promise<Shop> | undefined;

/** Made by the first scenario that asks for it, shared by the others. */
export function openShop(options: Options): Promise<Shop> {
  shop ??= makeShop(options);
  return shop;
}

/** The database is started by us and joined by the service: that is how it finds a shop which is filled already. */
async function makeShop({ prompts, profile }: Options): Promise<Shop> {
  const dataDir = await mkdtemp(join(tmpdir(), "stoa-bench-"));
  atEnd(() => rm(dataDir, { recursive: true, force: true }));
  const database = await startEmbedded(dataDir);
  atEnd(() => database.stop());
  const plansFile = join(dataDir, "plans.json");
  await writeFile(plansFile, JSON.stringify(WITHOUT_LIMITS));
  const seeded = await fill(dataDir, database.connection, prompts);
  const profiling = profile ? ["--cpu-prof", `--cpu-prof-dir=${profile}`] : [];
  const service = start(
    process.execPath,
    [...profiling, join(ROOT, "service/bin/stoa-server.mjs"), "start"],
    {
      env: {
        STOA_DATA_DIR: dataDir,
        PORT: "0",
        DATABASE_URL: "",
        STOA_ENVIRONMENT: "test",
        STOA_PLANS_FILE: plansFile,
      },
      errors: "discard",
    },
  );
  const [, origin] = await service.says(/API\s+(http:\/\/\S+)\/v1 /);
  const pool = openPool({ target: database.connection, maxConnections: 1 });
  atEnd(() => pool.end());
  return {
    ...seeded,
    origin: origin!,
    pid: service.pid,
    async backends() {
      const { rows } = await pool.query<{ pid: number }>(
        "select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()",
      );
      return rows.map(({ pid }) => pid);
    },
  };
}

async function fill(
  dataDir: string,
  target: { host: string; port: number; user: string; database: string },
  prompts: string,
) {
  const config = readConfig({ STOA_DATA_DIR: dataDir, STOA_LOG_LEVEL: "warn" });
  const base = await openBase(config, { target });
  try {
    return await seed(base.ctx, await readPrompts(prompts), PRODUCTS);
  } finally {
    await base.close();
  }
}
