import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { becomes } from "../../../test/until.ts";
import { readConfig } from "../../core/config/config.ts";
import { listSettings } from "../../core/config/setting-list.ts";
import { HOUR_MS } from "../../core/dates.ts";
import { toId } from "../../core/ids.ts";
import { maskSecrets, maskUrl } from "../../core/mask.ts";
import { VERSION } from "../../core/version.ts";
import { queueEmail } from "../../platform/email/email-queue.ts";
import { renderEmail } from "../../platform/email/render-email.ts";
import { type JobWorker, startJobWorker } from "../../platform/jobs/job-worker.ts";
import { recordHealth } from "./health.ts";
import { nextRunOf } from "./next-run.ts";
import { parseChangelog, readChangelog, selectReleases } from "./release-notes.ts";
import { recordVersionStart } from "./version.ts";

const SECRET_LINK = "https://stoa.example/auth/verify#token=SECRETTOKEN";

let market: Market;
let admin: Client;
before(async () => {
  market = await openMarket({
    config: { redisUrl: "redis://user:REDISPASS@127.0.0.1:1", metricsToken: "METRICSTOKEN" },
  });
  const { userId } = await market.createUser({ name: "Admin", role: "admin" });
  admin = await market.createSession(userId, { secondFactor: true });
});
after(() => market.close());

async function audited(action: string): Promise<number> {
  const { rows } = await market.query("select from audit_log where action = $1 and actor_id = $2", [
    action,
    admin.userId,
  ]);
  return rows.length;
}

const PATHS = [
  "health",
  "database",
  "configuration",
  "version",
  "queues",
  "jobs",
  "emails",
  "backups",
  "ledger-verifications",
];

suite("who may read", () => {
  test("not a user, no key, no administrator without two factors", async () => {
    const user = await market.createSession((await market.createUser()).userId);
    const { userId, key } = await market.createUser({ role: "admin" });
    const oneFactor = await market.createSession(userId);
    for (const path of PATHS) {
      assertError(await market.as(null).get(`/v1/admin/${path}`), 401, "INVALID_API_KEY");
      for (const client of [user, market.as(key), oneFactor])
        assertError(await client.get(`/v1/admin/${path}`), 403, "UNAUTHORIZED");
    }
    for (const path of ["backups", "ledger-verifications", "jobs/retry", "emails/retry", "queues/x/run"])
      assertError(await oneFactor.post(`/v1/admin/${path}`), 403, "UNAUTHORIZED");
  });
});

suite("GET /admin/health", () => {
  test("the checks of doctor, and a figure for each service", async () => {
    const reply = await admin.get("/v1/admin/health");
    assert.equal(reply.status, 200, reply.text);
    const { state, services, checks, version } = reply.body.data;
    assert.equal(state, "warning", "Redis does not answer");
    assert.match(version, /^\d/);
    const redis = checks.find(({ check }: { check: string }) => check === "Redis");
    assert.equal(redis.state, "warning");
    assert.doesNotMatch(reply.text, /REDISPASS/);
    const database = services.find(({ service }: { service: string }) => service === "database");
    assert.equal(database.unit, "milliseconds");
    assert.ok(database.value >= 0);
    const known = checks.map(({ check }: { check: string }) => check);
    for (const { checks: names } of services) for (const name of names) assert.ok(known.includes(name), name);
  });

  test("hours: the worst of the recorded checks, for 24 hours", async () => {
    const hoursOf = async (name: string): Promise<(string | null)[]> => {
      const { services } = (await admin.get("/v1/admin/health")).body.data;
      const found = services.find(({ service }: { service: string }) => service === name);
      return found.hours.map(({ state }: { state: string | null }) => state);
    };
    const none = Array.from({ length: 23 }, () => null);
    const { ctx } = market.service;
    await recordHealth(ctx);
    assert.deepEqual(await hoursOf("database"), [...none, "ok"]);
    const { dataDir } = ctx.config;
    ctx.config.dataDir = "/dev/null/nowhere";
    await recordHealth(ctx);
    ctx.config.dataDir = dataDir;
    await recordHealth(ctx);
    market.clock.forward(HOUR_MS);
    assert.deepEqual((await hoursOf("disk")).slice(-3), [null, "failed", "ok"]);
    market.clock.forward(48 * HOUR_MS);
    await recordHealth(ctx);
    assert.deepEqual(await hoursOf("disk"), [...none, "ok"]);
    assert.equal((await market.query("select from health_hours where service = 'disk'")).rows.length, 1);
    market.clock.forward(-49 * HOUR_MS);
  });

  test("GET /admin/database: sizes, connections and the oldest transaction, without its statement", async () => {
    const client = await market.service.ctx.pool.connect();
    await client.query("begin");
    await client.query("select 'PERSONALDATA'");
    const reply = await admin.get("/v1/admin/database");
    await client.query("rollback");
    client.release();
    const { size, connections, oldestTransaction, tables, disk } = reply.body.data;
    assert.ok(size > 0 && disk.free > 0 && disk.total > disk.free);
    assert.ok(connections.own <= connections.used && connections.used <= connections.max);
    assert.ok(oldestTransaction.seconds >= 0);
    assert.equal(tables.length, 20);
    assert.doesNotMatch(reply.text, /PERSONALDATA/);
  });
});

suite("GET /admin/configuration", () => {
  const KEYS = {
    STOA_MASTER_KEYS: `1:${Buffer.alloc(32, 1).toString("base64")}`,
    STOA_SESSION_KEYS: `1:${Buffer.alloc(32, 2).toString("base64")}`,
  };
  const variables: Record<string, string> = {
    ...KEYS,
    DATABASE_URL: "postgres://stoa:SECRET@one,two:5433/shop?password=SECRET&sslkey=SECRET",
    SMTP_URL: "smtps://user:SECRET@mail.example",
    STOA_MAIL_FROM: "Stoa <stoa@example.com>",
    REDIS_URL: "rediss://default:SECRET@cache.example:6380",
    S3_URL: "s3://SECRETKEY:SECRET@s3.example/bucket?region=eu",
    STRIPE_SECRET_KEY: "sk_test_SECRET",
    STRIPE_WEBHOOK_SECRET: "whsec_SECRET",
    GITHUB_CLIENT_ID: "github-id",
    GITHUB_CLIENT_SECRET: "SECRET",
    STOA_METRICS_TOKEN: "SECRET",
    STOA_BACKUP_PASSPHRASE: "SECRET-passphrase",
    OTEL_EXPORTER_OTLP_ENDPOINT: "https://user:SECRET@otel.example/v1?token=SECRET",
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=SECRET",
    STOA_FEES: "250",
  };

  test("every setting of README, with its value and source; no secret", () => {
    const settings = listSettings(readConfig(variables), variables);
    const text = JSON.stringify(settings);
    assert.doesNotMatch(text, /SECRET(?!_|")|AQEBAQ|AgICAg/);
    const byName = new Map(settings.map((setting) => [setting.name, setting]));
    assert.deepEqual(byName.get("STOA_FEES"), {
      name: "STOA_FEES",
      value: "250",
      source: "environment",
      isSecret: false,
    });
    assert.equal(byName.get("PORT")?.source, "default");
    assert.equal(byName.get("DATABASE_URL")?.value, "postgres://•••@one,two:5433/shop?•••");
    assert.equal(byName.get("S3_URL")?.value, "s3://•••@s3.example/bucket?•••");
    for (const name of Object.keys(variables)) assert.ok(byName.get(name)?.value, name);
  });

  test("over HTTP: what the process runs with", async () => {
    const reply = await admin.get("/v1/admin/configuration");
    const { settings } = reply.body.data;
    const find = (wanted: string) => settings.find(({ name }: { name: string }) => name === wanted);
    assert.equal(find("REDIS_URL").value, "redis://•••@127.0.0.1:1");
    assert.equal(find("STOA_METRICS_TOKEN").value, "•••");
    assert.doesNotMatch(reply.text, /REDISPASS|METRICSTOKEN/);
    assert.ok(!reply.text.includes(market.service.ctx.config.masterKeys[0]!.bytes.toString("base64")));
  });

  test("README has each setting", async () => {
    const { readFile } = await import("node:fs/promises");
    const readme = await readFile(new URL("../../../../README.md", import.meta.url), "utf8");
    const named = [...readme.matchAll(/^\| (`[A-Z0-9_`, ]+`)/gm)].flatMap(([, names = ""]) =>
      [...names.matchAll(/[A-Z0-9_]{4,}/g)].map(([name]) => name),
    );
    assert.ok(named.length > 30);
    const known = new Set(listSettings(readConfig(variables), variables).map(({ name }) => name));
    assert.deepEqual(
      named.filter((name) => !known.has(name)),
      [],
    );
  });

  test("masks: passwords with every character", () => {
    assert.equal(maskUrl("postgres://a:b/c@d?e@host/db"), "postgres://•••@host/db");
    assert.equal(maskUrl("redis://host:6379"), "redis://host:6379");
    assert.equal(maskSecrets("at https://u:p@h/x?token=abc&a=1"), "at https://•••@h/x?token=•••&a=1");
  });
});

suite("GET /admin/version", () => {
  const read = async () => (await admin.get("/v1/admin/version")).body.data;

  test("the running version, its migrations and its notes", async () => {
    const { version, previousVersion, versions, migrations, outdatedFunctions, releases } = await read();
    assert.equal(version, VERSION);
    assert.equal(previousVersion, null);
    assert.deepEqual(
      versions.map((one: { version: string }) => one.version),
      [VERSION],
    );
    const { rows } = await market.query("select name from schema_migrations order by name");
    assert.deepEqual(
      migrations.map(({ name, state }: { name: string; state: string }) => [name, state]),
      rows.map(({ name }) => [name, "applied"]),
    );
    assert.deepEqual(outdatedFunctions, []);
    assert.equal(releases.length, 1);
    assert.match(releases[0].notes, /^### Upgrade$/m);
  });

  test("a database of which a newer process applied a migration, and that lacks one", async () => {
    const { rows } = await market.query("select * from schema_migrations order by name desc limit 2");
    const [last, changed] = rows;
    await market.query("update schema_migrations set name = '9999_newer.sql' where name = $1", [last.name]);
    await market.query("update schema_migrations set checksum = 'x' where name = $1", [changed.name]);
    const { migrations } = await read();
    const found = migrations
      .slice(-3)
      .map(({ name, state }: { name: string; state: string }) => [name, state]);
    await market.query("update schema_migrations set name = $1 where name = '9999_newer.sql'", [last.name]);
    await market.query("update schema_migrations set checksum = $2 where name = $1", [
      changed.name,
      changed.checksum,
    ]);
    assert.deepEqual(found, [
      [changed.name, "changed"],
      [last.name, "pending"],
      ["9999_newer.sql", "unknown"],
    ]);
  });

  test("after an upgrade: the version before, and when each began and last started", async () => {
    const { ctx } = market.service;
    const firstStartedAt = market.clock.now.toISOString();
    market.clock.forward(-60_000);
    await recordVersionStart(ctx, "0.0.0");
    market.clock.forward(60_000);
    await recordVersionStart(ctx);
    const { previousVersion, versions } = await read();
    assert.equal(previousVersion, "0.0.0");
    assert.deepEqual(
      versions.map((one: { version: string }) => one.version),
      [VERSION, "0.0.0"],
    );
    assert.equal(versions[0].lastStartedAt, firstStartedAt);
    await market.query("delete from service_versions where version = '0.0.0'");
  });

  test("CHANGELOG.md: dates, versions newest first, and what an upgrade needs", async () => {
    const releases = await readChangelog();
    assert.ok(releases.length > 0);
    for (const { version, releasedOn, notes } of releases) {
      assert.equal(version === null, releasedOn === null, `${version}: ${releasedOn}`);
      assert.match(notes, /^### Upgrade$/m, `${version}`);
      assert.doesNotMatch(notes, /\]\((?!https:)/, "a page of the web client is no folder");
    }
    const dates = releases.map(({ releasedOn }) => releasedOn ?? "9999");
    assert.deepEqual(dates, dates.toSorted().toReversed());
    assert.ok(selectReleases(releases, VERSION, null).length === 1, "this version has notes");
    const nowhere = new URL("no-changelog.md", import.meta.url);
    assert.deepEqual(await readChangelog(nowhere), [], "an installation of the service alone");
  });

  test("release notes: this version and those after the one before", () => {
    const releases = parseChangelog(
      `# Changelog\n\n## [Unreleased]\n\n- soon\n\n${["1.2.0", "1.1.0", "1.0.0"]
        .map((version) => `## [${version}] - 2026-01-0${version[2]}\n\n### Upgrade\n\n- of ${version}\n\n`)
        .join("")}[1.0.0]: https://example.com/1.0.0\n`,
    );
    assert.deepEqual(releases.at(-1), {
      version: "1.0.0",
      releasedOn: "2026-01-00",
      notes: "### Upgrade\n\n- of 1.0.0",
    });
    const selected = (version: string, previous: string | null) =>
      selectReleases(releases, version, previous).map((release) => release.version);
    assert.deepEqual(selected("1.2.0", "1.0.0"), ["1.2.0", "1.1.0"]);
    assert.deepEqual(selected("1.2.0", null), ["1.2.0"]);
    assert.deepEqual(selected("1.2.0", "0.9.0"), ["1.2.0"]);
    assert.deepEqual(selected("1.0.0", "1.2.0"), ["1.0.0"], "back to an older version");
    assert.deepEqual(selected("1.3.0", "1.1.0"), [null, "1.2.0"], "not released yet");
    assert.deepEqual(selectReleases([], "1.0.0", null), []);
  });
});

/** A job of this queue that has no attempts left. */
async function addFailedJob(queue: string, data: object, error = "it failed"): Promise<string> {
  const { rows } = await market.query(
    `insert into pgboss.job (name, data, source_name, source_created_on, source_retry_count, source_output)
       values ($1 || '-given-up', $2, $1, now() - interval '1 hour', 10, $3) returning id`,
    [queue, JSON.stringify(data), JSON.stringify({ error })],
  );
  return toId("job", rows[0].id);
}

const jobsOf = async (query = "") => (await admin.get(`/v1/admin/jobs?${query}`)).body.data;

suite("jobs", () => {
  test("queues: counts, and the periods of scheduled jobs", async () => {
    const { body, text } = await admin.get("/v1/admin/queues?limit=100");
    const names = body.data.map(({ name }: { name: string }) => name);
    assert.ok(names.includes("send-mail") && names.includes("notify-buyers-of-version"), text);
  });

  test("failed jobs: listed with a masked error, without their data; retried once by parallel clicks", async () => {
    const id = await addFailedJob(
      "notify-buyers-of-version",
      { secret: "JOBDATA" },
      "550 <ada@example.com> at https://u:PASS@host/ refused",
    );
    const [job] = await jobsOf("state=failed&queue=notify-buyers-of-version");
    assert.deepEqual(
      [job.id, job.queue, job.state, job.attempts],
      [id, "notify-buyers-of-version", "failed", 11],
    );
    assert.equal(job.error, "550 <a•••@example.com> at https://•••@host/ refused");
    assert.doesNotMatch(JSON.stringify(job), /JOBDATA/);
    const replies = await Promise.all([1, 2, 3].map(() => admin.post(`/v1/admin/jobs/${id}/retry`)));
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 404, 404]);
    assert.deepEqual(await jobsOf("state=failed&queue=notify-buyers-of-version"), []);
    const [waiting] = await jobsOf("state=waiting&queue=notify-buyers-of-version");
    assert.deepEqual([waiting.state, waiting.attempts], ["waiting", 0]);
    assert.equal(await audited("job.retried"), 1);
    assert.equal((await admin.post(`/v1/admin/jobs/${waiting.id}/retry`)).status, 200);
  });

  test("all failed jobs, or those of one queue; a queue of another version is refused", async () => {
    await addFailedJob("notify-buyers-of-version", {});
    await addFailedJob("notify-buyers-of-version", {});
    await addFailedJob("recover-webhook", {});
    const some = await admin.post("/v1/admin/jobs/retry?queue=notify-buyers-of-version");
    assert.deepEqual(some.body.data, { retried: 2 }, some.text);
    await market.query("delete from pgboss.job where name like '%-given-up'");
    assert.deepEqual((await admin.post("/v1/admin/jobs/retry")).body.data, { retried: 0 });
    await market.query(
      `insert into pgboss.queue select (jsonb_populate_record(q, '{"name": "gone-given-up"}')).*
         from pgboss.queue q where name = 'send-mail-given-up'`,
    );
    const id = await addFailedJob("gone", {});
    assertError(await admin.post(`/v1/admin/jobs/${id}/retry`), 409, "INVALID_STATE");
    assert.deepEqual((await admin.post("/v1/admin/jobs/retry?queue=gone")).body.data, { retried: 0 });
    await addFailedJob("notify-buyers-of-version", {});
    assert.deepEqual((await admin.post("/v1/admin/jobs/retry")).body.data, { retried: 1 });
    await market.query("delete from pgboss.job where name like '%-given-up'");
    for (const unknown of ["x", id])
      assertError(await admin.post(`/v1/admin/jobs/${unknown}/retry`), 404, "JOB_NOT_FOUND");
  });

  test("an error of megabytes is masked in no time", async () => {
    await addFailedJob("recover-webhook", {}, `https://u:PASS@host/ ${"a://".repeat(500_000)}`);
    const startedAt = performance.now();
    const [job] = await jobsOf("state=failed&queue=recover-webhook");
    assert.ok(performance.now() - startedAt < 2_000);
    assert.match(job.error, /^https:\/\/•••@host\/ a:/);
    await market.query("delete from pgboss.job where name like '%-given-up'");
  });

  test("run now: once by parallel clicks, and never beside the run of the schedule", async (t) => {
    const { ctx } = market.service;
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const began: Date[] = [];
    const job = {
      ...{ name: "count-stars", cron: "11 3 * * *" },
      run: () => {
        began.push(new Date());
        return held;
      },
    };
    const workers: JobWorker[] = [];
    /** A worker polls twice a second, a new one at once. */
    const startPolling = async () => void workers.push(await startJobWorker(ctx, [job], []));
    await startPolling();
    t.after(async () => {
      release();
      await Promise.all(workers.map((worker) => worker.stop()));
    });
    const run = () => admin.post("/v1/admin/queues/count-stars/run");
    const replies = await Promise.all(Array.from({ length: 4 }, run));
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 409, 409, 409]);
    const jobId = replies.find(({ status }) => status === 200)?.body.data.jobId;
    const stateOf = async () =>
      (await jobsOf("queue=count-stars")).map(({ id, state }: { id: string; state: string }) => [id, state]);
    await startPolling();
    await becomes(stateOf, ([one]) => one?.[1] === "running");
    assert.deepEqual(await stateOf(), [[jobId, "running"]]);
    assertError(await run(), 409, "INVALID_STATE");
    // As the schedule would, which takes up to a minute.
    assert.equal(await ctx.jobs.sendScheduled(ctx.db, job.name), null);
    assert.equal(await audited("job.started"), 1);
    release();
    await becomes(stateOf, (jobs) => jobs.length === 0);
    assert.equal((await run()).status, 200);
    await startPolling();
    await becomes(
      async () => began.length,
      (count) => count === 2,
    );
    const { body } = await admin.get("/v1/admin/queues?limit=100");
    const queue = body.data.find(({ name }: { name: string }) => name === job.name);
    assert.deepEqual([queue.schedule, queue.failures], ["11 3 * * *", 0]);
    for (const unknown of ["send-mail", "nothing", "count-stars-given-up", "x'--", "\0"])
      assertError(
        await admin.post(`/v1/admin/queues/${encodeURIComponent(unknown)}/run`),
        404,
        "QUEUE_NOT_FOUND",
      );
  });

  test("nextRunOf: minutes, hours and days in UTC", () => {
    const now = new Date("2026-06-15T12:34:56.000Z");
    const next = (cron: string) => nextRunOf(cron, now)?.toISOString();
    assert.equal(next("* * * * *"), "2026-06-15T12:35:00.000Z");
    assert.equal(next("*/10 * * * *"), "2026-06-15T12:40:00.000Z");
    assert.equal(next("31 * * * *"), "2026-06-15T13:31:00.000Z");
    assert.equal(next("13 2 * * *"), "2026-06-16T02:13:00.000Z");
    assert.equal(next("47 14 * * *"), "2026-06-15T14:47:00.000Z");
    assert.equal(next("0 0 1 1 *"), undefined);
  });
});

async function hasEmail(recipient: string): Promise<string> {
  const { ctx } = market.service;
  const message = renderEmail({
    subject: "Your sign-in link for Stoa",
    paragraphs: ["Sign in."],
    action: { label: "Sign in", url: SECRET_LINK },
  });
  await ctx.db.transaction().execute((tx) => queueEmail(ctx, tx, recipient, message));
  const { rows } = await market.query("select id from emails where recipient = $1", [recipient]);
  return toId("mail", rows[0].id);
}

suite("emails", () => {
  const listed = async (query = "") => (await admin.get(`/v1/admin/emails?${query}`)).body;

  test("waiting: masked recipient, subject, no text and no link", async () => {
    const id = await hasEmail("ada.lovelace@example.com");
    const { body, text } = await admin.get("/v1/admin/emails?status=waiting");
    const email = body.data.find((one: { id: string }) => one.id === id);
    assert.deepEqual(
      [email.recipient, email.subject, email.status, email.attempts],
      ["a•••@example.com", "Your sign-in link for Stoa", "waiting", 0],
    );
    assert.doesNotMatch(text, /lovelace|SECRETTOKEN/);
  });

  test("given up: failed with its error; parallel retries request one job", async () => {
    const id = await hasEmail("grace@example.com");
    const { rows } = await market.query("delete from pgboss.job where name = 'send-mail' returning data");
    const data = rows.map(({ data }) => data).find(({ mailId }) => toId("mail", mailId) === id);
    await addFailedJob("send-mail", data, "connect ECONNREFUSED");
    const [failed] = (await listed("status=failed")).data;
    assert.deepEqual([failed.id, failed.error, failed.attempts], [id, "connect ECONNREFUSED", 11]);
    const replies = await Promise.all([1, 2, 3].map(() => admin.post(`/v1/admin/emails/${id}/retry`)));
    assert.ok(replies.every(({ status }) => status === 200));
    const { rows: jobs } = await market.query(
      "select name from pgboss.job where data ->> 'mailId' = $1 and state < 'completed'",
      [data.mailId],
    );
    assert.deepEqual(jobs, [{ name: "send-mail" }]);
    assert.equal((await listed("status=failed")).meta.total, 0);
    assert.equal(await audited("email.retried"), 3);
  });

  test("all: those without a job get one; refused and sent ones are left", async () => {
    const id = await hasEmail("refused@example.com");
    await market.query(
      "update emails set refused_at = now(), sealed_email = null where recipient = 'refused@example.com'",
    );
    const sent = await hasEmail("sent@example.com");
    await market.query("update emails set sent_at = now() where recipient = 'sent@example.com'");
    assertError(await admin.post(`/v1/admin/emails/${id}/retry`), 409, "INVALID_STATE");
    for (const unknown of ["x", sent])
      assertError(await admin.post(`/v1/admin/emails/${unknown}/retry`), 404, "EMAIL_NOT_FOUND");
    const [refused] = (await listed("status=refused")).data;
    assert.deepEqual([refused.id, refused.subject], [id, null]);
    const waiting = (await listed("status=waiting")).meta.total;
    assert.deepEqual((await admin.post("/v1/admin/emails/retry")).body.data, { retried: waiting });
    const { rows } = await market.query(
      "select data ->> 'mailId' as id, count(*) from pgboss.job where name = 'send-mail' and state < 'active' group by 1",
    );
    assert.ok(rows.length >= waiting && rows.every(({ count }) => count === 1));
  });

  test("ten thousand wait for a dead mail server: listed and retried in a second", async () => {
    const COUNT = runs(10_000);
    await market.query(
      `with added as (
         insert into emails (id, recipient, created_at)
           select gen_random_uuid(), 'many@example.com', now() from generate_series(1, $1) returning id)
       insert into pgboss.job (name, data, state, retry_count, start_after)
         select 'send-mail', jsonb_build_object('mailId', id), 'retry', 2, now() + interval '1 hour' from added`,
      [COUNT],
    );
    const startedAt = performance.now();
    const { data, meta } = await listed("status=waiting");
    assert.ok(meta.total >= COUNT);
    assert.equal(data[0].attempts, 2);
    assert.equal((await admin.post("/v1/admin/emails/retry")).body.data.retried, 1_000);
    const ms = performance.now() - startedAt;
    assert.ok(ms < 4_000, `${ms} ms`);
    await market.query("delete from pgboss.job where name = 'send-mail'");
    await market.query("delete from emails where recipient = 'many@example.com'");
  });
});
