import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import pg from "pg";
import { forkProgram } from "../../../test/child.ts";
import type { LockHolderOptions } from "../../../test/lock-holder-process.ts";
import { createDatabase, TEMPLATE, type TestDatabase } from "../../../test/market.ts";
import { until } from "../../../test/until.ts";
import { openPool } from "./database.ts";
import { listFunctions } from "./functions.ts";
import { lockInTransaction, withLock } from "./locks.ts";
import { listMigrations, migrate } from "./migrate.ts";

const MIGRATION_LOCK = { key: 5_701_840_113, name: "the migration lock" };
const LOCK = { key: "a lock of a test", name: "the lock of a test" };

const PROGRAM = new URL("../../../test/lock-holder-process.ts", import.meta.url);

let database: TestDatabase;
let holder: pg.Client;
before(async () => {
  database = await createDatabase(TEMPLATE);
  holder = new pg.Client({ connectionString: database.url, application_name: "a holder" });
  await holder.connect();
});
after(async () => {
  await holder.end();
  await database.drop();
});

const work = (ms: number, log: string[] = []) =>
  withLock({ target: database.url }, LOCK, { maxMs: ms }, async () => log.push("worked"));

test("withLock: another holder, the error names its process, application and time", async () => {
  await holder.query("begin");
  await lockInTransaction(holder, LOCK, { maxMs: 1 });
  const { rows } = await holder.query("select pg_backend_pid() as pid");
  await assert.rejects(work(50), (error: Error) => {
    assert.equal(error.name, "LockHeld");
    assert.match(error.message, /^The lock of a test was not free within 0\.05 s: held by process \d+ \(/);
    assert.ok(error.message.includes(`process ${rows[0].pid} (a holder, since 2`), error.message);
    assert.match(error.message, /pg_terminate_backend/);
    return true;
  });
  const waiting = work(60_000);
  await holder.query("rollback");
  assert.equal(await waiting, 1);
});

test("withLock: work that throws, the lock is free", async () => {
  const failing = withLock({ target: database.url }, LOCK, { maxMs: 1_000 }, async () => {
    throw new Error("failed");
  });
  await assert.rejects(failing, /failed/);
  await work(1_000);
});

test("withLock: connection that ends, mustBeHeld rejects", async () => {
  await withLock({ target: database.url }, LOCK, { maxMs: 1_000 }, async (mustBeHeld) => {
    await mustBeHeld();
    await holder.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'stoa: the lock of a test' and datname = current_database()",
    );
    await assert.rejects(mustBeHeld());
  });
});

test("withLock: work lasts longer than an idle transaction may, the lock stays; its process freezes, PostgreSQL ends it", async () => {
  const connection = { target: database.url, transactionTimeouts: { idleMs: 1_200, lockMs: 2_400 } };
  const { child, ended, answer } = forkProgram(PROGRAM, {
    connection,
    lock: LOCK,
  } satisfies LockHolderOptions);
  try {
    await answer();
    const isOld =
      "select from pg_stat_activity where application_name = $1 and now() - xact_start > '1300ms'";
    await until("the work lasts", async () => {
      const { rowCount } = await holder.query(isOld, [`stoa: ${LOCK.name}`]);
      return rowCount === 1;
    });
    await assert.rejects(work(1), { name: "LockHeld" });
    child.kill("SIGSTOP");
    await work(30_000);
  } finally {
    child.kill("SIGKILL");
    await ended;
  }
});

test("migrate: lock held by another session, a complete database waits for no shared holder and names an exclusive one", async () => {
  const pool = openPool({ target: database.url, maxConnections: 1 });
  const hold = (isShared: boolean) =>
    lockInTransaction(holder, { ...MIGRATION_LOCK, isShared }, { maxMs: 1 });
  await holder.query("begin");
  await hold(true);
  assert.deepEqual(await migrate(pool, new Date()), []);
  await hold(false);
  await assert.rejects(
    migrate(pool, new Date(), undefined, 50),
    /migration lock was not free .* \(a holder, since/,
  );
  await holder.query("rollback");
  assert.deepEqual(await migrate(pool, new Date(), undefined, 50), []);
  await pool.end();
});

test("migrate: another process migrates an empty database during the wait for the lock, its migrations are found", async (t) => {
  const empty = await createDatabase();
  const other = new pg.Client({ connectionString: empty.url });
  const pool = openPool({ target: empty.url, maxConnections: 1 });
  // The database is dropped at once, perhaps before this connection has closed.
  pool.on("error", () => {});
  t.after(async () => {
    await Promise.all([other.end(), pool.end()]);
    await empty.drop();
  });
  await other.connect();
  await other.query("begin");
  await lockInTransaction(other, { ...MIGRATION_LOCK, isShared: true }, { maxMs: 1 });
  const migrating = migrate(pool, new Date());
  const WAITS = `select from pg_locks
    where locktype = 'advisory' and mode = 'ExclusiveLock' and not granted
      and database = (select oid from pg_database where datname = current_database())`;
  await until("the migration waits", async () => (await other.query(WAITS)).rowCount! > 0);
  await other.query("create table schema_migrations (name text primary key, checksum text not null)");
  for (const { name, checksum } of await listMigrations())
    await other.query("insert into schema_migrations values ($1, $2)", [name, checksum]);
  await other.query("create table schema_functions (name text primary key, version integer, checksum text)");
  for (const { name, version, checksum } of await listFunctions())
    await other.query("insert into schema_functions values ($1, $2, $3)", [name, version, checksum]);
  await other.query("commit");
  assert.deepEqual(await migrating, []);
});
