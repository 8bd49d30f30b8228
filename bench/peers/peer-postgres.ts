import { closeSync, openSync } from "node:fs";
import { rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@stoa/service/platform/db/database.ts";
import { findBinaries } from "@stoa/service/platform/db/embedded-binaries.ts";
import {
  type ClusterPaths,
  cacheSettings,
  clusterPathsOf,
  findPostmaster,
  prepareCluster,
} from "@stoa/service/platform/db/embedded-cluster.ts";
import { atEnd } from "../processes.ts";
import { freePort } from "./ports.ts";

export type Client = ReturnType<typeof createClient>;

const HOST = "127.0.0.1";
const LOOK_AGAIN_MS = 50;

/** The peers' PostgreSQL: our binaries and settings, plus TCP, which Medusa requires. */
export class PeerPostgres {
  readonly pid: number;
  readonly #port: number;

  constructor(pid: number, port: number) {
    this.pid = pid;
    this.#port = port;
  }

  urlOf(database: string): string {
    return `postgres://postgres:none@${HOST}:${this.#port}/${database}`;
  }

  /** Runs `work` on a database without timeouts. */
  async in<T>(database: string, work: (client: Client) => Promise<T>): Promise<T> {
    const client = createClient({ target: this.urlOf(database) }, { application_name: "stoa bench" });
    await client.connect();
    try {
      await client.query("set statement_timeout = 0");
      return await work(client);
    } finally {
      await client.end();
    }
  }

  async has(database: string): Promise<boolean> {
    const query = "select from pg_database where datname = $1";
    const { rowCount } = await this.in("postgres", (client) => client.query(query, [database]));
    return rowCount === 1;
  }

  /** Creates a database, empty or as a copy, and fills it. It gets its name when it is complete. */
  async make(
    database: string,
    from: string | null,
    fill: (draft: string) => Promise<unknown>,
  ): Promise<void> {
    const draft = `${database}_draft`;
    await this.in("postgres", async (client) => {
      await client.query(`drop database if exists ${draft}`);
      await client.query(`create database ${draft}${from ? ` template ${from}` : ""}`);
    });
    await fill(draft);
    await this.in(draft, (client) => client.query("vacuum analyze"));
    await this.in("postgres", (client) => client.query(`alter database ${draft} rename to ${database}`));
  }

  /** Creates a copy for one run, so that its orders do not stay. Replaces the copy of a killed run. */
  async copy(database: string): Promise<{ database: string; drop(): Promise<void> }> {
    const copy = `${database}_run`;
    const drop = () =>
      this.in("postgres", (client) => client.query(`drop database if exists ${copy}`)).then(() => {});
    await drop();
    await this.in("postgres", (client) =>
      client.query(`create database ${copy} template ${database} strategy file_copy`),
    );
    return { database: copy, drop };
  }
}

/** Joins the PostgreSQL of a killed run or starts one; it ends with this run. */
export async function startPeerPostgres(folder: string): Promise<PeerPostgres> {
  const place = await clusterPathsOf(folder);
  const left = await findPostmaster(place);
  const server = left ? { port: left.connection.port, lives: () => true } : await launch(place);
  atEnd(() => shutDown(place));
  while (server.lives()) {
    const postmaster = await findPostmaster(place);
    const postgres = new PeerPostgres(postmaster?.pid ?? 0, server.port);
    if (postmaster && (await postgres.has("postgres").catch(() => false))) return postgres;
    await sleep(LOOK_AGAIN_MS);
  }
  throw new Error(`PostgreSQL does not start: see ${place.log}`);
}

async function launch(place: ClusterPaths) {
  const binaries = await findBinaries();
  await prepareCluster(place, binaries, { fsync: true });
  const port = await freePort();
  const settings = {
    ...cacheSettings(),
    listen_addresses: HOST,
    port: String(port),
    unix_socket_directories: place.sockets,
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const log = openSync(place.log, "a");
  const child = binaries.spawn("postgres", ["-D", place.cluster, ...flags], ["ignore", log, log]);
  closeSync(log);
  let lives = true;
  child.once("exit", () => (lives = false));
  child.unref();
  return { port, lives: () => lives };
}

async function shutDown(place: ClusterPaths): Promise<void> {
  const running = await findPostmaster(place);
  if (running) process.kill(running.pid, "SIGINT");
  while (await findPostmaster(place)) await sleep(LOOK_AGAIN_MS);
  await rm(place.sockets, { recursive: true, force: true });
}
