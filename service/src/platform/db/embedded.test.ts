import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, afterEach, test } from "node:test";
import { Client } from "pg";
import { inFullRun } from "../../../test/full-size.ts";
import { until } from "../../../test/until.ts";
import { type EmbeddedDatabase, type EmbeddedOptions, startEmbedded } from "./embedded.ts";
import { findBinaries, type RunAs, rootRunAs } from "./embedded-binaries.ts";

const throwAway = { settings: { fsync: "off" } };
const root = await mkdtemp(join(tmpdir(), "stoa-embedded-test-"));
const cleanUps: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});
after(() => rm(root, { recursive: true, force: true }));

/** A data folder. After the test, a PostgreSQL that still runs in it is killed by its pid. */
async function freshFolder(): Promise<string> {
  const folder = await mkdtemp(join(root, "data-"));
  cleanUps.push(async () => {
    const pid = await postmasterPid(folder);
    if (pid !== undefined) await (await startEmbedded(folder, throwAway)).stop();
  });
  return folder;
}

async function start(folder: string): Promise<EmbeddedDatabase> {
  const database = await startEmbedded(folder, throwAway);
  cleanUps.push(() => database.stop());
  return database;
}

async function query(connection: EmbeddedDatabase["connection"], text: string) {
  const client = new Client(connection);
  client.on("error", () => {}); // The query reports it.
  await client.connect();
  return (await client.query(text).finally(() => client.end())).rows;
}

const writeNote = (database: EmbeddedDatabase) =>
  query(database.connection, "CREATE TABLE note AS SELECT 'żółć' AS text");
const readNote = (database: EmbeddedDatabase) => query(database.connection, "SELECT text FROM note");
const written = [{ text: "żółć" }];

async function postmasterPid(folder: string): Promise<number | undefined> {
  const file = await readFile(join(folder, "postgres", "postmaster.pid"), "utf8").catch(() => "");
  return file ? Number.parseInt(file, 10) : undefined;
}

async function childOf(pid: number): Promise<number> {
  return Number.parseInt(await readFile(`/proc/${pid}/task/${pid}/children`, "utf8"), 10);
}

function endIfAlive(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has ended by itself.
  }
}

const nextLoss = (database: EmbeddedDatabase) =>
  new Promise<string>((resolve) => database.onLost((why) => resolve(why)));

const ended = (child: ChildProcess) => new Promise<void>((resolve) => child.once("exit", () => resolve()));

/** Another Stoa process on the folder: prints its connection, and stops on a line of input. */
const OTHER_PROCESS = `
  const { startEmbedded } = await import(${JSON.stringify(new URL("./embedded.ts", import.meta.url).href)});
  const database = await startEmbedded(process.argv[1], JSON.parse(process.argv[2]));
  database.onLost((why) => console.log(JSON.stringify({ why })));
  console.log(JSON.stringify({ started: database.started, connection: database.connection }));
  process.stdin.once("data", async () => {
    process.stdin.destroy();
    await database.stop();
    console.log(JSON.stringify({ stopped: true }));
  });
`;

function otherProcess(folder: string, options: EmbeddedOptions = throwAway) {
  const script = ["--input-type=module", "-e", OTHER_PROCESS, folder, JSON.stringify(options)];
  const child = spawn(process.execPath, script, { stdio: ["pipe", "pipe", "inherit"] });
  const gone = ended(child);
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const kill = async () => {
    if (child.exitCode === null) child.kill("SIGKILL");
    await gone;
  };
  cleanUps.push(kill);
  return {
    kill,
    pid: child.pid!,
    says: async () => JSON.parse((await lines.next()).value ?? "null"),
    stop: async () => {
      child.stdin.write("stop\n");
      await gone;
      return child.exitCode;
    },
  };
}

test("the first start creates the cluster, a later start finds its data", async () => {
  const folder = await freshFolder();
  const first = await start(folder);
  assert.equal(first.started, true);
  await writeNote(first);
  await first.stop();
  assert.equal(await postmasterPid(folder), undefined);
  await assert.rejects(stat(first.connection.host), { code: "ENOENT" });

  assert.deepEqual(await readNote(await start(folder)), written);
});

test("fsync: on unless disabled", inFullRun, async () => {
  const database = await startEmbedded(await freshFolder());
  cleanUps.push(() => database.stop());
  assert.deepEqual(await query(database.connection, "SHOW fsync"), [{ fsync: "on" }]);
});

test("the server: reachable by this user only, over a socket in a short folder", async () => {
  const folder = join(await freshFolder(), "a-deep-folder".repeat(15));
  const database = await start(folder);
  assert.equal((await stat(database.connection.host)).mode & 0o777, 0o700);
  assert.deepEqual(await query(database.connection, "SHOW listen_addresses"), [{ listen_addresses: "" }]);
});

test("trigrams: letters of every script", inFullRun, async () => {
  const { connection } = await start(await freshFolder());
  await query(connection, "CREATE EXTENSION pg_trgm");
  const [row] = await query(connection, "SELECT cardinality(show_trgm('żół提示词')) AS trigrams");
  assert.equal(row.trigrams, 7);
});

test("root: runs PostgreSQL in a user namespace or as nobody, on the same files", {
  skip: process.getuid?.() !== 0,
}, async () => {
  const folder = await freshFolder();
  await chmod(root, 0o711);
  for (const way of [rootRunAs.nobody, rootRunAs.mapped, rootRunAs.nobody]) {
    const database = await startEmbedded(folder, { ...throwAway, ways: [way] });
    cleanUps.push(() => database.stop());
    await query(database.connection, "CREATE TABLE IF NOT EXISTS note AS SELECT 1");
    assert.equal((await stat(join(folder, "postgres"))).uid, way.uid);
    await database.stop();
  }
});

test("a folder that only root can enter: needs the user namespace or DATABASE_URL", {
  skip: process.getuid?.() !== 0,
}, async () => {
  await chmod(root, 0o700);
  const options = { ...throwAway, ways: [rootRunAs.nobody] };
  await assert.rejects(startEmbedded(await freshFolder(), options), /set DATABASE_URL/);
});

test("two parallel starts in a new folder: one cluster", inFullRun, async () => {
  const folder = await freshFolder();
  const both = [otherProcess(folder), otherProcess(folder)];
  const [one, two] = await Promise.all(both.map((process) => process.says()));
  assert.deepEqual([one.started, two.started].sort(), [false, true]);
  const identity = "SELECT system_identifier::text FROM pg_control_system()";
  assert.deepEqual(await query(one.connection, identity), await query(two.connection, identity));
  assert.deepEqual(
    (await readdir(folder)).filter((name) => name.startsWith("postgres.new")),
    [],
  );
});

test("a second process: joins, survives the first, and stops PostgreSQL at its end", async () => {
  const folder = await freshFolder();
  const first = otherProcess(folder);
  assert.equal((await first.says()).started, true);
  const joined = await start(folder);
  assert.equal(joined.started, false);
  const losses: string[] = [];
  joined.onLost((why) => losses.push(why));
  await writeNote(joined);
  assert.equal(await first.stop(), 0);
  assert.deepEqual(await readNote(joined), written);
  assert.deepEqual(losses, []);
  await joined.stop();
  assert.equal(await postmasterPid(folder), undefined);
});

test("two processes that end at once: PostgreSQL stops", inFullRun, async () => {
  const folder = await freshFolder();
  const [first, second] = [await start(folder), await start(folder)];
  await Promise.all([first.stop(), second.stop()]);
  assert.equal(await postmasterPid(folder), undefined);
});

test("a joined process ends: PostgreSQL keeps running", inFullRun, async () => {
  const folder = await freshFolder();
  const owner = await start(folder);
  await writeNote(owner);
  const joined = otherProcess(folder);
  assert.equal((await joined.says()).started, false);
  assert.equal(await joined.stop(), 0);
  assert.deepEqual(await joined.says(), { stopped: true });
  assert.deepEqual(await readNote(owner), written);
});

test("PostgreSQL is killed: its process is notified and can restart it", async () => {
  const folder = await freshFolder();
  const first = await start(folder);
  await writeNote(first);
  const loss = nextLoss(first);
  process.kill((await postmasterPid(folder))!, "SIGKILL");
  assert.match(await loss, /^PostgreSQL ended unexpectedly; see .*postgres\.log\.$/);
  assert.deepEqual(await readNote(await start(folder)), written);
});

test("a crashed session: PostgreSQL recovers by itself", inFullRun, async () => {
  const database = await start(await freshFolder());
  const losses: string[] = [];
  database.onLost((why) => losses.push(why));
  const victim = new Client(database.connection);
  const end = new Promise<void>((resolve) => victim.once("end", () => resolve()));
  victim.on("error", () => {});
  await victim.connect();
  const [row] = (await victim.query("SELECT pg_backend_pid() AS pid")).rows;
  process.kill(row.pid, "SIGKILL");
  await end;
  const one = () => query(database.connection, "SELECT 1 AS one").catch(() => null);
  assert.deepEqual(await until("PostgreSQL has recovered", one), [{ one: 1 }]);
  assert.deepEqual(losses, []);
});

test("kill -9 of the service and PostgreSQL: the next start recovers every row", async () => {
  const folder = await freshFolder();
  const victim = otherProcess(folder);
  await victim.says();
  await writeNote(await start(folder));
  process.kill((await postmasterPid(folder))!, "SIGKILL");
  await victim.kill();
  const survivor = await start(folder);
  assert.equal(survivor.started, true);
  assert.deepEqual(await readNote(survivor), written);
});

test(
  "kill -9 of the service only: the next start joins the running PostgreSQL, and stops it at its end",
  inFullRun,
  async () => {
    const folder = await freshFolder();
    const victim = otherProcess(folder);
    await victim.says();
    const pid = await postmasterPid(folder);
    await victim.kill();
    const heir = await start(folder);
    assert.equal(heir.started, false);
    assert.equal(await postmasterPid(folder), pid);
    await heir.stop();
    assert.equal(await postmasterPid(folder), undefined);
  },
);

test("a pid file with an unrelated process: the start succeeds", inFullRun, async () => {
  const folder = await freshFolder();
  const first = await start(folder);
  await writeNote(first);
  const file = join(folder, "postgres", "postmaster.pid");
  const left = await readFile(file, "utf8");
  await first.stop();
  const stranger = spawn("sleep", ["60"]);
  cleanUps.push(async () => stranger.kill());
  await writeFile(file, left.replace(/^\d+/, String(stranger.pid)));
  assert.deepEqual(await readNote(await start(folder)), written);
});

/** Runs initdb when the file exists. */
function initdbAfter(file: string): RunAs {
  const user = { prefix: [], uid: process.getuid!(), gid: process.getgid!() };
  const way = user.uid === 0 ? rootRunAs.mapped : user;
  const script = `case "$*" in */initdb*) until [ -e '${file}' ]; do sleep 0.01; done;; esac; exec "$@"`;
  return { ...way, prefix: ["sh", "-c", script, "sh", ...way.prefix] };
}

test(
  "a start killed during initdb: the next one repeats it, also beside the orphaned initdb",
  inFullRun,
  async () => {
    const folder = await freshFolder();
    const go = join(folder, "go");
    const victim = otherProcess(folder, { ...throwAway, ways: [initdbAfter(go)] });
    const halfMade = async () => (await readdir(folder)).find((name) => name.startsWith("postgres.new"));
    const draft = await until("a folder for the cluster", halfMade);
    const orphan = await until("initdb is called", () => childOf(victim.pid));
    cleanUps.push(async () => endIfAlive(orphan));
    // The stopped process reads the output of initdb no more, but it cannot complete the folder either.
    process.kill(victim.pid, "SIGSTOP");
    await writeFile(go, "");
    const version = join(folder, draft, "PG_VERSION");
    await until("initdb has begun", () => stat(version).catch(() => null));
    await victim.kill();
    await writeNote(await start(folder));
    assert.equal(await halfMade(), undefined);
  },
);

test("a cluster of another PostgreSQL version: refused with instructions", async () => {
  const folder = await freshFolder();
  await mkdir(join(folder, "postgres"));
  await writeFile(join(folder, "postgres", "PG_VERSION"), "17\n");
  await assert.rejects(start(folder), (error: Error) => {
    assert.match(error.message, /made by PostgreSQL 17/);
    assert.match(error.message, /`stoa-server backup`.*`stoa-server restore`/);
    return true;
  });
});

test("a setting that PostgreSQL refuses: reported at once with its message", async () => {
  const settings = { fsync: "off", shared_buffers: "a lot" };
  await assert.rejects(startEmbedded(await freshFolder(), { settings }), /shared_buffers/);
});

test("no PostgreSQL available: the error names DATABASE_URL", async () => {
  await assert.rejects(findBinaries(undefined, "linux-s390x"), /set DATABASE_URL/);
  const forbidden = { prefix: ["/usr/bin/false"], uid: process.getuid!(), gid: process.getgid!() };
  await assert.rejects(findBinaries([forbidden]), /set DATABASE_URL/);
});
