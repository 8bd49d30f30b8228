import { closeSync, openSync } from "node:fs";
import { readFile, rm, rmdir, stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { type Binaries, findBinaries, type RunAs } from "./embedded-binaries.ts";
import {
  type ClusterPaths,
  type Connection,
  cacheSettings,
  clusterPathsOf,
  connectionOf,
  findPostmaster,
  prepareCluster,
  wasShutDown,
} from "./embedded-cluster.ts";
import { acquireSharedLock, type FileLock, tryFileLock, waitForLock, withFileLock } from "./embedded-lock.ts";

export interface EmbeddedDatabase {
  /** For `pg`; `host` is the socket's folder. */
  connection: Connection;
  /** false: this process joined a running PostgreSQL. */
  started: boolean;
  /** Reports in a sentence that PostgreSQL ended without our request. */
  onLost(callback: (why: string) => void): void;
  /** Releases PostgreSQL, and shuts it down when no other process uses it. */
  stop(): Promise<void>;
}

export interface EmbeddedOptions {
  /** Settings of PostgreSQL, such as `{ fsync: "off" }` for a temporary cluster. */
  settings?: Record<string, string>;
  /** How to run PostgreSQL, the best first; detected by default. */
  ways?: RunAs[];
  /** Called whenever only a program of PostgreSQL works: while it creates the cluster, and while it starts. */
  onWaiting?: () => void;
}

const LEFTOVERS_SECONDS = 10;
const POLL_MS = 15;

/** Joins the running PostgreSQL of the data folder, or starts it. */
export async function startEmbedded(
  dataDir: string,
  options: EmbeddedOptions = {},
): Promise<EmbeddedDatabase> {
  const place = await clusterPathsOf(dataDir);
  return withFileLock(place.changeLock, async () => (await join(place)) ?? start(place, options));
}

async function join(place: ClusterPaths): Promise<EmbeddedDatabase | undefined> {
  const running = await findPostmaster(place);
  const client = running && (await connectWhile(() => isRunning(place), running.connection));
  return client && supervise(place, running.connection, client, false);
}

async function start(place: ClusterPaths, options: EmbeddedOptions): Promise<EmbeddedDatabase> {
  const alone = await waitForUsers(place);
  try {
    const binaries = await findBinaries(options.ways);
    const { settings = {}, onWaiting = () => {} } = options;
    await prepareCluster(place, binaries, { fsync: settings.fsync !== "off", onWaiting });
    const client = await launchUntilUp(place, binaries, { settings, onWaiting });
    alone.release();
    return supervise(place, connectionOf(place), client, true);
  } finally {
    alone.release();
  }
}

// Processes release the lock as soon as their PostgreSQL dies. One that does not may run in another container, where its
// PostgreSQL is invisible: a second one would destroy the files.
async function waitForUsers(place: ClusterPaths): Promise<FileLock> {
  const alone = await waitForLock(place.usersLock, LEFTOVERS_SECONDS * 1000);
  if (alone) return alone;
  throw new Error(`Another process holds ${place.usersLock}, but its PostgreSQL cannot be reached.`);
}

// After kill -9, children of the old PostgreSQL need a moment to end; the new one refuses to start until then.
async function launchUntilUp(
  place: ClusterPaths,
  binaries: Binaries,
  { settings, onWaiting }: Required<Pick<EmbeddedOptions, "settings" | "onWaiting">>,
): Promise<Client> {
  const giveUpAt = Date.now() + LEFTOVERS_SECONDS * 1000;
  for (;;) {
    const attempt = await launch(place, binaries, settings);
    onWaiting();
    // No time limit while it runs: recovery after a crash may take long.
    const client = await connectWhile(async () => attempt.lives(), connectionOf(place));
    if (client) return client;
    const output = await attempt.output();
    if (!/shared memory block|lock file/.test(output) || Date.now() > giveUpAt) {
      await rm(place.sockets, { recursive: true, force: true });
      throw new Error(`PostgreSQL does not start (see ${place.log}):\n${output}`);
    }
    await sleep(100);
  }
}

// In its own process group (detached), so that Ctrl-C reaches us and not PostgreSQL.
async function launch(place: ClusterPaths, binaries: Binaries, settings: Record<string, string>) {
  const log = openSync(place.log, "a", 0o600);
  const logged = (await stat(place.log)).size;
  const child = binaries.spawn("postgres", serverArguments(place, settings), ["ignore", log, log]);
  closeSync(log);
  let lives = true;
  child.once("exit", () => (lives = false)).once("error", () => (lives = false));
  child.unref();
  return {
    lives: () => lives,
    output: async () => (await readFile(place.log)).subarray(logged).toString().trim(),
  };
}

function serverArguments(place: ClusterPaths, settings: Record<string, string>): string[] {
  const all = {
    ...cacheSettings(),
    ...settings,
    listen_addresses: "",
    unix_socket_directories: place.sockets,
    unix_socket_permissions: "0700",
    port: String(connectionOf(place).port),
  };
  const flags = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  return ["-D", place.cluster, ...flags];
}

async function isRunning(place: ClusterPaths): Promise<boolean> {
  return (await findPostmaster(place)) !== undefined;
}

/** Retries until connected, or until the server has ended. */
async function connectWhile(
  lives: () => Promise<boolean>,
  connection: Connection,
): Promise<Client | undefined> {
  while (await lives()) {
    const client = await tryConnect(connection);
    if (client) return client;
    await sleep(POLL_MS);
  }
  return undefined;
}

async function tryConnect(connection: Connection): Promise<Client | undefined> {
  const client = new Client({ ...connection, ssl: false, application_name: "stoa supervisor" });
  client.on("error", () => {}); // "end" follows and reports it
  try {
    await client.connect();
    setKeepAlive(client, false);
    return client;
  } catch (error) {
    // An unknown role or database: retrying does not help. Other errors: PostgreSQL is starting, recovering or shutting down.
    if (/^(28|3D)/.test((error as { code?: string }).code ?? "")) throw error;
    return undefined;
  }
}

/** Watching the connection must not keep the process alive, closing it must. pg's types have neither method. */
function setKeepAlive(client: Client, alive: boolean): void {
  const { ref, unref } = client as Client & { ref(): void; unref(): void };
  (alive ? ref : unref).call(client);
}

function supervise(
  place: ClusterPaths,
  connection: Connection,
  client: Client,
  started: boolean,
): EmbeddedDatabase {
  const use = acquireSharedLock(place.usersLock);
  const callbacks: ((why: string) => void)[] = [];
  const watch = watchConnection(place, connection, client);
  let lost: string | undefined;
  let stopping: Promise<void> | undefined;
  void watch.gone.then(async () => {
    if (stopping !== undefined) return;
    lost = await explainLoss(place);
    use.release();
    // After stop(), no caller would stop what a callback starts.
    if (stopping !== undefined) return;
    for (const callback of callbacks) callback(lost);
  });
  const leave = async () => {
    if (!lost) await releasePostgres(place, connection, use);
    await watch.end();
  };
  return {
    connection,
    started,
    onLost: (callback) => void (lost ? callback(lost) : callbacks.push(callback)),
    stop: () => (stopping ??= leave()),
  };
}

/** An idle connection, whose end is the fastest sign that PostgreSQL ended or restarted its children. */
function watchConnection(place: ClusterPaths, connection: Connection, first: Client) {
  let client = first;
  let ending = false;
  const untilGone = async () => {
    for (;;) {
      await new Promise<void>((resolve) => client.once("end", () => resolve()));
      const again = await connectWhile(async () => !ending && (await isRunning(place)), connection);
      if (!again) return;
      client = again;
    }
  };
  const end = async () => {
    ending = true;
    setKeepAlive(client, true);
    await client.end();
  };
  return { gone: untilGone().catch(() => {}), end };
}

async function explainLoss(place: ClusterPaths): Promise<string> {
  if (!(await wasShutDown(place))) return `PostgreSQL ended unexpectedly; see ${place.log}.`;
  return `PostgreSQL was shut down by someone else; see ${place.log}.`;
}

/** The last user shuts PostgreSQL down, under the lock that joining and leaving take. */
async function releasePostgres(place: ClusterPaths, connection: Connection, use: FileLock): Promise<void> {
  await withFileLock(place.changeLock, async () => {
    use.release();
    const last = tryFileLock(place.usersLock);
    if (!last) return;
    interrupt((await findPostmaster(place))?.pid);
    while (await isRunning(place)) await sleep(POLL_MS);
    await rmdir(connection.host).catch(() => {}); // PostgreSQL has emptied it
    last.release();
  });
}

/** SIGINT is PostgreSQL's fast shutdown: it ends sessions, then writes everything. */
function interrupt(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(pid, "SIGINT");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
