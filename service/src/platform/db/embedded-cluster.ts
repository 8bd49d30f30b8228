import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmod,
  lchown,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Binaries } from "./embedded-binaries.ts";

/** The paths of one data folder's embedded PostgreSQL. */
export interface ClusterPaths {
  dataDir: string;
  cluster: string;
  log: string;
  sockets: string;
  /** Locked while PostgreSQL starts or stops. */
  changeLock: string;
  /** A shared lock of each process that uses PostgreSQL. The last one stops it. */
  usersLock: string;
}

export interface Connection {
  host: string;
  port: number;
  user: string;
  database: string;
}

export interface Postmaster {
  pid: number;
  connection: Connection;
}

const INCOMPLETE_PREFIX = "postgres.new-";
const PORT = 5432;
const SOCKET_PATH_BYTES = 103;

export async function clusterPathsOf(dataDir: string): Promise<ClusterPaths> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const absolute = await realpath(dataDir);
  return {
    dataDir: absolute,
    cluster: join(absolute, "postgres"),
    log: join(absolute, "postgres.log"),
    sockets: socketFolder(absolute),
    changeLock: join(absolute, "postgres.change.lock"),
    usersLock: join(absolute, "postgres.users.lock"),
  };
}

// A socket path has at most 107 bytes (103 on macOS), and data folders may be deep.
function socketFolder(dataDir: string): string {
  const name = `stoa-${createHash("sha256").update(dataDir).digest("hex").slice(0, 16)}`;
  const socket = join(tmpdir(), name, `.s.PGSQL.${PORT}`);
  return join(Buffer.byteLength(socket) > SOCKET_PATH_BYTES ? "/tmp" : tmpdir(), name);
}

/**
 * PostgreSQL's page cache: a sixteenth of the available memory, 128 MB to 1 GB. A page outside of it costs a copy from
 * the operating system, about ten times as much. The memory is allocated when it is used.
 */
export function cacheSettings(): Record<string, string> {
  const limit = process.constrainedMemory();
  const bytes = limit > 0 ? Math.min(limit, totalmem()) : totalmem();
  const megabytes = Math.round(bytes / 16 / 2 ** 20);
  return { shared_buffers: `${Math.min(1_024, Math.max(128, megabytes))}MB` };
}

export function connectionOf(place: ClusterPaths): Connection {
  return { host: place.sockets, port: PORT, user: "postgres", database: "postgres" };
}

interface ClusterOptions {
  fsync: boolean;
  /** Called while initdb runs. */
  onWaiting?(): void;
}

/** Creates or checks the cluster, its version and owner, and creates an empty socket folder. */
export async function prepareCluster(
  place: ClusterPaths,
  binaries: Binaries,
  options: ClusterOptions,
): Promise<void> {
  await removeIncompleteClusters(place);
  await allowTraversal(place, binaries);
  const major = await readFile(join(place.cluster, "PG_VERSION"), "utf8").catch(ignoreMissing);
  if (major === undefined) await makeCluster(place, binaries, options);
  else mustHaveSameVersion(place, binaries, major.trim());
  await changeOwner(place.cluster, binaries);
  await resetStalePid(place);
  await makeSocketFolder(place, binaries);
}

async function removeIncompleteClusters(place: ClusterPaths): Promise<void> {
  for (const name of await readdir(place.dataDir)) {
    if (!name.startsWith(INCOMPLETE_PREFIX)) continue;
    // Retried: an initdb whose parent was killed may still be writing.
    await rm(join(place.dataDir, name), { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  }
}

/** When PostgreSQL runs as another user, it must be able to traverse the data folder, but not list it. */
async function allowTraversal(place: ClusterPaths, binaries: Binaries): Promise<void> {
  if (binaries.uid !== process.getuid?.()) await chmod(place.dataDir, 0o711);
}

// A temporary name until initdb is complete, so that a cluster named `postgres` is never incomplete. The name is unique,
// so that an initdb of a killed start cannot write into ours. initdb's fsync stays: it takes 0.1 s of 0.7–1.5 s (median of
// 8 runs; --sync-method=syncfs is no faster). Without it, a power cut soon after the first start could lose files.
async function makeCluster(
  place: ClusterPaths,
  binaries: Binaries,
  { fsync, onWaiting }: ClusterOptions,
): Promise<void> {
  const draft = await mkdtemp(join(place.dataDir, INCOMPLETE_PREFIX));
  await changeOwner(draft, binaries);
  const options = [
    ...["--pgdata", draft, "--username=postgres", "--auth=trust", "--encoding=UTF8"],
    ...["--locale-provider=builtin", "--builtin-locale=C.UTF-8", `--locale=${systemLocale()}`],
    ...(fsync ? [] : ["--no-sync"]),
  ];
  const running = binaries.run("initdb", options);
  onWaiting?.();
  await running.catch((error: { stderr?: string }) => {
    throw new Error(`PostgreSQL cannot set up ${place.cluster}; set DATABASE_URL.\n${error.stderr}`);
  });
  await rename(draft, place.cluster);
  await syncFolder(place.dataDir);
}

// Without a UTF-8 locale, pg_trgm finds no trigrams in `żółć`. macOS names the locale differently.
function systemLocale(): string {
  return process.platform === "darwin" ? "en_US.UTF-8" : "C.UTF-8";
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path);
  await folder.sync().finally(() => folder.close());
}

function mustHaveSameVersion(place: ClusterPaths, binaries: Binaries, major: string): void {
  if (major === binaries.major) return;
  throw new Error(
    `${place.cluster} was made by PostgreSQL ${major}, and this Stoa brings PostgreSQL ${binaries.major}. ` +
      "Run `stoa-server backup` with the Stoa that made it, then `stoa-server restore` with this one " +
      "into an empty data folder.",
  );
}

/** The folder itself comes last, so that an interrupted change of owner is detected and repeated. */
async function changeOwner(folder: string, { uid, gid }: Binaries): Promise<void> {
  if (process.getuid?.() !== 0 || (await stat(folder)).uid === uid) return;
  for (const entry of await readdir(folder, { recursive: true })) await lchown(join(folder, entry), uid, gid);
  await lchown(folder, uid, gid);
}

// After a crash, another process may have the pid of the file, and PostgreSQL would never start. PostgreSQL ignores the
// pid of its own parent. Removing the file would also remove the check for old children that still write.
async function resetStalePid(place: ClusterPaths): Promise<void> {
  const file = join(place.cluster, "postmaster.pid");
  const text = await readFile(file, "utf8").catch(ignoreMissing);
  if (text !== undefined) await writeFile(file, text.replace(/^\d+/, String(process.pid)));
}

// Always a new folder: if another user created it first, one of these two steps fails.
async function makeSocketFolder(place: ClusterPaths, { uid, gid }: Binaries): Promise<void> {
  await rm(place.sockets, { recursive: true, force: true });
  await mkdir(place.sockets, { mode: 0o700 });
  await lchown(place.sockets, uid, gid);
}

/** Found by its own pid file, so that another TMPDIR does not matter. */
export async function findPostmaster(place: ClusterPaths): Promise<Postmaster | undefined> {
  const file = await readFile(join(place.cluster, "postmaster.pid"), "utf8").catch(ignoreMissing);
  const [pid, , , port, host] = file?.split("\n") ?? [];
  if (!pid || !(await isPostmaster(Number(pid), place.cluster))) return undefined;
  const own = connectionOf(place);
  return { pid: Number(pid), connection: { ...own, host: host || own.host, port: Number(port) || own.port } };
}

/** A clean shutdown removes the pid file, a crash leaves it. */
export async function wasShutDown(place: ClusterPaths): Promise<boolean> {
  return (await readdir(place.cluster).catch(ignoreMissing))?.includes("postmaster.pid") === false;
}

async function isPostmaster(pid: number, cluster: string): Promise<boolean> {
  if (process.platform !== "linux") return isPostgresByPs(pid);
  const status = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  if (!/^\d+ \(postgres\) [^ZX]/.test(status)) return false;
  // PostgreSQL's working directory is its cluster. In a container, root may not be allowed to read the link of another user's process.
  const home = await readlink(`/proc/${pid}/cwd`).catch(() => cluster);
  return home === cluster;
}

async function isPostgresByPs(pid: number): Promise<boolean> {
  const line = await promisify(execFile)("ps", ["-o", "stat=,comm=", "-p", String(pid)]).catch(
    () => undefined,
  );
  return /^[^Z].*postgres\s*$/.test(line?.stdout ?? "");
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}
