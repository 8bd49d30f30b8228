import { access, constants, statfs } from "node:fs/promises";
import pg from "pg";
import { isOverdue, listOpenMoney, type OpenMoney, remedyOf } from "../../commerce/charges/open-money.ts";
import { findLastReconciliation } from "../../commerce/charges/provider-reconciliation.ts";
import { findLastVerification } from "../../commerce/ledger/nightly-verification.ts";
import { type Config, countConnections } from "../../core/config/config.ts";
import { errorMessageOf } from "../../core/config/database-hosts.ts";
import { firstOf } from "../../core/required.ts";
import { openMail, openStorage } from "../../integrations.ts";
import { jobKinds } from "../../job-kinds.ts";
import { sealedColumns } from "../../keyring.ts";
import { describeSkew, measureSkew } from "../../platform/db/clock.ts";
import { openDatabase, openPool, SESSION_SETTINGS } from "../../platform/db/database.ts";
import { listOutdatedFunctions } from "../../platform/db/functions.ts";
import { appliedMigrations, listMigrations } from "../../platform/db/migrate.ts";
import { openListenConnection } from "../../platform/db/notifications.ts";
import { countSealed } from "../../platform/db/sealed-columns.ts";
import { sendEmailJob } from "../../platform/email/email-queue.ts";
import { readJobStatus } from "../../platform/jobs/job-queue.ts";
import { hasFailed, isLate } from "../../platform/jobs/job-stats.ts";
import type { Installation } from "../backup/backup.ts";

export interface CheckResult {
  check: string;
  ok: boolean;
  /** The service can start, but the operator should check. */
  warning?: boolean;
  /** The finding, and how to fix a problem. */
  note: string;
}

const MIN_POSTGRESQL = 150_000;
/** No harm, since all processes use the database's time, but one of the two clocks is wrong. */
const WARNING_SKEW_MS = 5_000;
/** Below this or MIN_FREE_SHARE of the disk, the check warns. */
const MIN_FREE_GB = 1;
const MIN_FREE_SHARE = 0.05;
const FETCH_TIMEOUT_MS = 3_000;
const REQUIRED_ROLE_SETTINGS: Record<string, string> = {
  statement_timeout: `${SESSION_SETTINGS.statement_timeout}ms`,
  random_page_cost: SESSION_SETTINGS.random_page_cost,
  jit: SESSION_SETTINGS.jit,
};
/** Workers create deliveries within a second. */
const MAX_EVENT_AGE_SECONDS = 60;
/** The newest files, which another node may have received. */
const CHECKED_FILES = 20;

/** Checks everything that a start depends on, and the work of the workers. */
export async function runChecks(database: Installation, now = new Date()): Promise<CheckResult[]> {
  const { config, target } = database;
  const pool = openPool({ target, maxConnections: 2 });
  // The next query reports a connection that broke while idle.
  pool.on("error", () => {});
  const check = async (
    name: string,
    run: () => Promise<Omit<CheckResult, "check">>,
  ): Promise<CheckResult> => ({
    check: name,
    ...(await run().catch((error) => ({ ok: false, note: (error as Error).message }))),
  });
  try {
    return [
      await check("data folder", () => checkDataFolder(config)),
      await check("disk", () => checkDisk(config)),
      await check("public URL", () => checkPublicUrl(config)),
      await check("database", () => checkServerVersion(pool)),
      await check("connections", () => checkConnections(pool, database)),
      await check("processes", () => checkProcesses(pool, config)),
      await check("clock", () => checkClock(pool)),
      await check("locale", () => checkLocale(pool)),
      await check("migrations", () => checkMigrations(pool)),
      await check("environment", () => checkEnvironment(pool, config)),
      await check("keyring", () => checkKeyring(pool, config)),
      await check("mail", () => checkEmail(pool, config)),
      await check("Redis", () => checkRedis(config)),
      await check("files", () => checkFiles(pool, config)),
      await check("jobs", () => checkJobs(pool, now)),
      await check("webhooks", () => checkWebhooks(pool)),
      await check("money", () => checkOpenMoney(pool, now)),
      await check("books", () => checkLedger(pool)),
      await check("payment provider", () => checkReconciliation(pool)),
      await check("telemetry", async () => checkTelemetry(config)),
    ];
  } finally {
    await pool.end();
  }
}

/** Prints no headers, which contain the collector's credentials. */
function checkTelemetry({ telemetry }: Config) {
  if (!telemetry) return { ok: true, note: "off" };
  return { ok: true, note: `traces to ${telemetry.traces}, metrics to ${telemetry.metrics}` };
}

async function checkDataFolder({ dataDir, databaseUrl }: Config) {
  if (databaseUrl) return { ok: true, note: "not used beside DATABASE_URL" };
  await access(dataDir, constants.R_OK | constants.W_OK);
  return { ok: true, note: dataDir };
}

async function checkServerVersion(pool: pg.Pool) {
  const { rows } = await pool.query("select current_setting('server_version_num')::int as number, version()");
  const ok = rows[0].number >= MIN_POSTGRESQL;
  return { ok, note: ok ? rows[0].version : `${rows[0].version}: Stoa needs PostgreSQL 15 or newer` };
}

/** A clock that is ahead would take over leases of other processes. */
async function checkClock(pool: pg.Pool) {
  await pool.query("select");
  const skew = await measureSkew(pool);
  const seconds = (Math.abs(skew) / 1000).toFixed(1);
  const note = `${seconds} s ${skew < 0 ? "behind" : "ahead of"} the database's`;
  const tooFar = describeSkew(skew);
  if (tooFar) return { ok: false, note: tooFar };
  const isOff = Math.abs(skew) > WARNING_SKEW_MS;
  return isOff
    ? { ok: true, warning: true, note: `${note}: have both machines' clocks set by NTP` }
    : { ok: true, note };
}

/** In a C locale, letters like ż are not letters, so that search could not find them. */
async function checkLocale(pool: pg.Pool) {
  await pool.query("create extension if not exists pg_trgm");
  const { rows } = await pool.query("select cardinality(show_trgm('żół')) as count");
  const ok = rows[0].count > 0;
  return { ok, note: ok ? "knows letters beyond ASCII" : "create the database with LC_CTYPE C.UTF-8" };
}

/** Compares names, checksums and versions of functions, as a start does. */
async function checkMigrations(pool: pg.Pool) {
  const client = await pool.connect();
  try {
    const [applied, known] = [await appliedMigrations(client), await listMigrations()];
    const missing = known.length - applied.length + (await listOutdatedFunctions(client)).length;
    const ok = missing === 0;
    return { ok, note: ok ? "all have run" : `${missing} are missing: run stoa-server migrate` };
  } finally {
    client.release();
  }
}

/** Backups, uploads and the embedded PostgreSQL write to the data folder. */
async function checkDisk({ dataDir }: Config) {
  const { bavail, blocks, bsize } = await statfs(dataDir).catch(() => statfs("."));
  const [free, share] = [(bavail * bsize) / 2 ** 30, bavail / blocks];
  const note = `${free.toFixed(1)} GB free (${Math.round(share * 100)} %) for the data folder`;
  const isShort = free < MIN_FREE_GB || share < MIN_FREE_SHARE;
  return toWarning(isShort ? [`${note}: make room before writes fail`] : [], note);
}

/** Links, Stripe's webhooks and OAuth depend on the public URL. */
async function checkPublicUrl({ publicUrl, environment }: Config) {
  if (!publicUrl)
    return toWarning(
      environment === "production"
        ? ["STOA_PUBLIC_URL is not set: links lead to where this process listens"]
        : [],
      "not set: links lead to where this process listens",
    );
  const problems = publicUrl.startsWith("http:") && environment === "production" ? ["it is not https"] : [];
  const reply = await fetch(`${publicUrl}/healthz`, { signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) }).catch(
    (error) => error,
  );
  if (!(reply instanceof Response))
    problems.push(`it does not answer from here: ${errorMessageOf(reply.cause ?? reply)}`);
  else if (!/"status": ?"ok"/.test(await reply.text()))
    problems.push(`its /healthz answers ${reply.status}, but not as Stoa does: does the proxy lead here?`);
  return toWarning(
    problems.map((problem) => `${publicUrl}: ${problem}`),
    `${publicUrl} answers`,
  );
}

async function checkRedis({ redisUrl }: Config) {
  if (!redisUrl) return { ok: true, note: "not used: each node counts rate limits for itself" };
  const { pingRedis } = await import("../../platform/http/redis-counters.ts");
  try {
    await pingRedis(redisUrl);
    return { ok: true, note: "answers" };
  } catch (error) {
    return toWarning(
      [`REDIS_URL does not answer, each process counts rate limits for itself: ${errorMessageOf(error)}`],
      "",
    );
  }
}

/** Detects a connection pooler and the features that it breaks. */
async function checkConnections(pool: pg.Pool, database: Installation) {
  const line = await openListenConnection(database, [], () => {}).catch((error: Error) => error);
  if (!(line instanceof Error)) await line.end();
  const client = (await pool.connect()) as pg.PoolClient & { isPooled: boolean };
  const { isPooled } = client;
  client.release();
  const problems = line instanceof Error ? [`nothing is cached: ${line.message}`] : [];
  if (isPooled) problems.push(...(await findDroppedSettings(pool)));
  const way = database.direct === undefined ? "" : ", with DATABASE_DIRECT_URL beside it";
  return toWarning(
    problems,
    isPooled ? `through a connection pooler${way}` : `PostgreSQL itself${way}, notifications arrive`,
  );
}

/** With the settings of this command, which must be those of the service. */
async function checkProcesses(pool: pg.Pool, config: Config) {
  const { rows } = await pool.query<{ max: number }>(
    `select current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer as max`,
  );
  const max = firstOf(rows).max;
  const needed = countConnections(config);
  const shared = `${config.processes} that answer requests${config.roles.worker ? ", and one for background work" : ""}`;
  const note = `${config.processes > 1 ? shared : "one"}; they open at most ${needed} of the ${max} connections that PostgreSQL accepts`;
  const problem = `${note}: lower STOA_PROCESSES or STOA_DATABASE_CONNECTIONS, or raise max_connections`;
  return toWarning(needed > max ? [problem] : [], note);
}

/** A pooler ignores startup parameters, so that the role must have them as defaults. */
async function findDroppedSettings(pool: pg.Pool): Promise<string[]> {
  const names = Object.keys(REQUIRED_ROLE_SETTINGS);
  const { rows } = await pool.query(
    "select name, case when unit = 'ms' then setting || 'ms' else setting end as value, current_user as role from pg_settings where name = any ($1)",
    [names],
  );
  const lost = rows.filter(({ name, value }) => value !== REQUIRED_ROLE_SETTINGS[name]);
  const lines = lost.map(
    ({ name, role }) => `alter role "${role}" set ${name} = '${REQUIRED_ROLE_SETTINGS[name]}'`,
  );
  return lines.length > 0 ? [`the pooler drops settings, have the role bring them: ${lines.join("; ")}`] : [];
}

async function checkEnvironment(pool: pg.Pool, config: Config) {
  const { rows } = await pool
    .query("select environment from installation")
    .catch((error: pg.DatabaseError) =>
      error instanceof pg.DatabaseError ? { rows: [] } : Promise.reject(error),
    );
  const stored = rows[0]?.environment ?? "none yet";
  const ok = rows.length === 0 || stored === config.environment;
  return {
    ok,
    note: ok ? stored : `the database is for ${stored}, STOA_ENVIRONMENT says ${config.environment}`,
  };
}

/** Whether the keyring opens all sealed values, and which keys are unused. */
async function checkKeyring(pool: pg.Pool, { masterKeys }: Config) {
  const counts = await countSealed(openDatabase(pool), sealedColumns).catch(emptyIfNoTables);
  const held = new Map(counts);
  const [primary, ...others] = masterKeys.map(({ id }) => id);
  const lost = [...held].filter(([id]) => id !== primary && !others.includes(id));
  const under = [primary!, ...others].map((id) => `${held.get(id) ?? 0} under ${id}`).join(", ");
  if (lost.length > 0) {
    const missing = lost.map(([id, count]) => `${count} under ${id}`).join(", ");
    return {
      ok: false,
      note: `${under}; ${missing}, which is not in the keyring, so they cannot be decrypted`,
    };
  }
  const isDue = others.some((id) => held.has(id));
  return toWarning(isDue ? [`${under}: run stoa-server keyring rotate`] : [], under);
}

/** Checks the mail server, and counts waiting and failed emails. */
async function checkEmail(pool: pg.Pool, config: Config) {
  const sender = await (await openMail(config)).check();
  const counts = await readJobStatus(pool, [sendEmailJob]).catch(() => []);
  const emails = counts.find(({ name }) => name === sendEmailJob.name);
  const { waiting, givenUp } = emails ?? { waiting: 0, givenUp: 0 };
  return { ok: true, note: `${sender}; ${waiting} waiting, ${givenUp} given up in the last week` };
}

/** Before migrations there is nothing to check; another check reports that. */
const emptyIfNoTables = (error: unknown): [] => {
  if (error instanceof pg.DatabaseError) return [];
  throw error;
};

const toWarning = (problems: string[], well: string) =>
  problems.length > 0 ? { ok: true, warning: true, note: problems.join("; ") } : { ok: true, note: well };

async function checkJobs(pool: pg.Pool, now: Date) {
  const counts = await readJobStatus(pool, jobKinds).catch(emptyIfNoTables);
  const problems = counts.flatMap((job) => [
    ...(hasFailed(job) ? [`${job.name} failed at its last attempt: see the log`] : []),
    ...(isLate(job, now)
      ? [`${job.name} is late, last done ${formatTime(job.lastSuccessAt)}: does a worker run?`]
      : []),
    ...(job.givenUp > 0 ? [`${job.name} was given up ${job.givenUp} times in the last week`] : []),
  ]);
  return toWarning(problems, `${counts.length} known, none failed or late`);
}

async function checkWebhooks(pool: pg.Pool) {
  const { rows } = await pool
    .query(
      "select extract(epoch from clock_timestamp() - created_at)::float8 as age from events where seq is null order by id limit 1",
    )
    .catch(emptyIfNoTables as (error: unknown) => never);
  const age = Math.round(rows[0]?.age ?? 0);
  const problem = `the oldest event without deliveries is ${age} s old: does a worker run?`;
  return toWarning(
    age > MAX_EVENT_AGE_SECONDS ? [problem] : [],
    "no event waits for its deliveries for long",
  );
}

async function checkOpenMoney(pool: pg.Pool, now: Date) {
  const open = await listOpenMoney(openDatabase(pool), now).catch(emptyIfNoTables);
  const problems = open.filter((one) => isOverdue(one, now)).map(describeOverdue);
  const waiting = open.reduce((sum, { count }) => sum + count, 0);
  return toWarning(problems, `${waiting} open, none for too long`);
}

/** The result of the last nightly check; checkJobs reports a missing run. */
async function checkLedger(pool: pg.Pool) {
  const last = await findLastVerification(openDatabase(pool)).catch(() => undefined);
  if (!last) return { ok: true, note: "not looked at yet: `stoa-server ledger verify` does" };
  const problems =
    last.problems > 0 ? [`${last.problems} problems: \`stoa-server ledger verify\` lists them`] : [];
  return toWarning(problems, `all was well on ${last.endedAt.toISOString()}`);
}

/** The result of the last reconciliation with the payment provider. */
async function checkReconciliation(pool: pg.Pool) {
  const last = await findLastReconciliation(openDatabase(pool)).catch(() => undefined);
  if (!last) return { ok: true, note: "not compared yet: `stoa-server payments reconcile` does" };
  const { differences, endedAt } = last;
  const examples = last.examples as string[];
  const more = differences > examples.length ? [`and ${differences - examples.length} more`] : [];
  const problems = differences > 0 ? [`${differences} differences: ${[...examples, ...more].join(" ")}`] : [];
  return toWarning(problems, `agreed with the ledger on ${endedAt.toISOString()}`);
}

const describeOverdue = (open: OpenMoney) =>
  `${open.count} ${open.state} as ${open.kind}, the oldest since ${formatTime(open.oldest?.since ?? null)} (${open.oldest?.id}): ${remedyOf(open)}`;

const formatTime = (at: Date | null) => at?.toISOString() ?? "never";

/** Whether the storage is writable and has the newest files: nodes with separate folders lose each other's files. */
async function checkFiles(pool: pg.Pool, config: Config) {
  const storage = await openStorage(config);
  try {
    const where = await storage.check();
    const { rows } = await pool
      .query("select name from blobs where key not like 'gone/%' order by touched_at desc limit $1", [
        CHECKED_FILES,
      ])
      .catch(() => ({ rows: [] }));
    const here = await Promise.all(rows.map(({ name }) => storage.has(name)));
    const missing = here.filter((isHere) => !isHere).length;
    if (missing > 0)
      return {
        ok: false,
        note: `${where}, but ${missing} of the newest ${here.length} are not there${config.s3Url ? "" : ": nodes that share a database need S3_URL"}`,
      };
    const alone = config.s3Url !== null || (await countMachines(pool)) <= 1;
    return {
      ok: alone,
      note: alone ? where : `${where}, and several machines use this database: set S3_URL`,
    };
  } finally {
    await storage.close();
  }
}

/** A pooler makes all machines look like one. */
async function countMachines(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query(
    "select count(distinct client_addr)::int as count from pg_stat_activity where application_name = 'stoa' and datname = current_database()",
  );
  return rows[0].count;
}
