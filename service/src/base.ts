import { hkdfSync } from "node:crypto";
import type pg from "pg";
import type { Logger } from "pino";
import { createKeyCache } from "./accounts/api-keys/key-cache.ts";
import { RequestLog } from "./accounts/request-logs/request-log.ts";
import { createSessionCache } from "./accounts/sessions/session-cache.ts";
import { createServiceControl } from "./backoffice/operation/service-control.ts";
import { OperatorTasks } from "./backoffice/operation/tasks.ts";
import { PublicDetails } from "./catalog/products/public-details.ts";
import { seedCategories } from "./catalog/search/categories.ts";
import { ListCache } from "./catalog/search/list-cache.ts";
import { ViewBuffer } from "./catalog/search/views.ts";
import type { Config } from "./core/config/config.ts";
import type { Context } from "./core/context.ts";
import type { FailPoints } from "./core/fail-points.ts";
import { newUuid } from "./core/ids.ts";
import { createLinks } from "./core/links.ts";
import { createLog } from "./core/log.ts";
import { type ListeningAddress, originAt } from "./core/loopback.ts";
import { Metrics } from "./core/telemetry/metrics.ts";
import { createVault } from "./core/vault.ts";
import { EventFeed } from "./events/feed/feed.ts";
import {
  compareRelease,
  findReleaseRegressions,
  flagReleases,
} from "./execution/evaluations/release-regressions.ts";
import { findScoreCard } from "./execution/evaluations/score-card.ts";
import { countRunFailures, countSellerRuns } from "./execution/executions/product-run-queries.ts";
import { LiveRuns } from "./execution/prompt-runs/live-runs.ts";
import { promptKind } from "./execution/prompt-runs/prompt-kind.ts";
import { RunTargets } from "./execution/prompt-runs/run-targets.ts";
import { RunWriter } from "./execution/prompt-runs/run-writer.ts";
import { findSampleRun } from "./execution/run-receipts/sample-run.ts";
import { CheckpointWriter } from "./execution/workflow-runs/checkpoint-writer.ts";
import { LocalWorkers } from "./execution/workflow-runs/local-workers.ts";
import { RunNotifications } from "./execution/workflow-runs/run-notifications.ts";
import { workflowKind } from "./execution/workflow-runs/workflow-kind.ts";
import { WorkflowTargets } from "./execution/workflow-runs/workflow-targets.ts";
import { Evaluator } from "./formats/workflow-definition/evaluator.ts";
import { AnswerMemory } from "./integrations/ai-providers/answer-memory.ts";
import { type IntegrationOverrides, openIntegrations } from "./integrations.ts";
import { jobKinds } from "./job-kinds.ts";
import { DatabaseClock, exactClock, type SkewedClock } from "./platform/db/clock.ts";
import { type Connection, openDatabase, openPool } from "./platform/db/database.ts";
import { DatabaseUptime } from "./platform/db/database-uptime.ts";
import { claimInstallation, installationOf } from "./platform/db/installation.ts";
import { migrate } from "./platform/db/migrate.ts";
import { Notifications } from "./platform/db/notifications.ts";
import { WorkerPresence } from "./platform/db/presence.ts";
import { RefusedWrites } from "./platform/db/refused-writes.ts";
import { MemoryCounters, type RateLimitCounters } from "./platform/http/counters.ts";
import { FallbackCounters } from "./platform/http/fallback-counters.ts";
import { createGuests } from "./platform/http/guests.ts";
import { openJobQueue } from "./platform/jobs/job-queue.ts";
import { WebBuilds } from "./web/builds/web-builds.ts";

/** What tests put in the place of the real thing; everything else is as in production. */
export interface BaseOverrides extends IntegrationOverrides {
  /** In the place of the database's clock. */
  now?: () => Date;
  log?: Logger;
  failPoints?: FailPoints;
  answerMemory?: AnswerMemory;
  /** In the place of counters in this process; while they do not answer, this process counts for itself. */
  createCounters?: (now: () => Date) => RateLimitCounters;
}

/** The rooms and what they stand on, without a door: enough for operator commands and the demo. */
export interface Base {
  ctx: Context;
  close(): Promise<void>;
  /** Where the server listens, once it does: what users give must not lead there, and links begin there. */
  onListening(address: ListeningAddress, origin: string): void;
  abortCalls(): void;
}

/** Opens the database, brings it up to date and builds the context. */
export async function openBase(
  config: Config,
  connection: Connection,
  overrides: BaseOverrides = {},
): Promise<Base> {
  const log = overrides.log ?? createLog(config.logLevel);
  const pool = openPool(connection);
  const clock = new DatabaseClock(pool);
  const now = overrides.now ?? clock.now;
  // An idle connection that breaks is replaced at its next use; without a listener it would end the process.
  pool.on("error", (error) => log.warn({ err: error }, "a database connection was lost"));
  try {
    await clock.start(log);
    await migrate(pool, now(), log);
    const base = await buildBase(config, pool, connection, {
      ...overrides,
      log,
      now,
      clock: overrides.now ? exactClock : clock,
    });
    return {
      ...base,
      async close() {
        clock.stop();
        await base.close();
      },
    };
  } catch (error) {
    clock.stop();
    await pool.end();
    throw error;
  }
}

type BaseOptions = BaseOverrides & { log: Logger; now: () => Date; clock: SkewedClock };

async function buildBase(
  config: Config,
  pool: pg.Pool,
  connection: Connection,
  options: BaseOptions,
): Promise<Base> {
  const { log, now } = options;
  const db = openDatabase(pool);
  const notifications = new Notifications(connection, log);
  await claimInstallation(db, installationOf(config), now());
  await seedCategories(db);
  let origin = config.publicUrl ?? originAt(config.host, config.port);
  const shutdown = new AbortController();
  const metrics = new Metrics();
  const answerMemory = options.answerMemory ?? new AnswerMemory();
  const needs = { pool, now, metrics, origin: () => origin, answerMemory };
  const outside = await openIntegrations(config, needs, options);
  const jobs = await openJobQueue(pool, log, jobKinds);
  const ctx: Context = {
    ...createContextParts({ config, pool, connection, notifications, answerMemory }, options),
    links: createLinks(() => origin, secretsFor(config, "stoa signed links")),
    counters: await openCounters(config, now, log, options.createCounters),
    db,
    runWriter: new RunWriter(db, log),
    checkpointWriter: new CheckpointWriter(db, log),
    metrics,
    jobs,
    shutdown: shutdown.signal,
    integrations: outside.ports,
  };
  return {
    ctx,
    onListening: (address, listensAt) => {
      outside.onListening(address);
      if (!config.publicUrl) origin = listensAt;
    },
    abortCalls: () => shutdown.abort(new Error("shutdown")),
    async close() {
      await ctx.operatorTasks.close();
      await outside.close();
      await closeContext(ctx);
    },
  };
}

async function closeContext({ counters, evaluator, jobs, notifications, pool }: Context): Promise<void> {
  await evaluator.close();
  await counters.close();
  await jobs.close();
  await notifications.close();
  await pool.end();
}

const secretsFor = ({ sessionKeys }: Config, purpose: string) =>
  sessionKeys.map((key) => Buffer.from(hkdfSync("sha256", key, "", purpose, 32)));

type ContextBasis = Pick<Context, "config" | "pool" | "connection" | "notifications"> & {
  answerMemory: AnswerMemory;
};

/** The parts of the context that open nothing. */
const createContextParts = (
  { config, pool, connection, notifications, answerMemory }: ContextBasis,
  { log, now, clock, failPoints }: BaseOptions,
) => ({
  config,
  pool,
  connection,
  now,
  clock,
  newId: () => newUuid(now()),
  log,
  vault: createVault(config.masterKeys),
  guests: createGuests(secretsFor(config, "stoa guests")),
  notifications,
  presence: new WorkerPresence(connection, pool, log),
  databaseUptime: new DatabaseUptime(now),
  refusedWrites: new RefusedWrites(pool, now),
  keyCache: createKeyCache(notifications),
  sessionCache: createSessionCache(notifications),
  listCache: new ListCache(notifications, now),
  publicDetails: new PublicDetails(),
  views: new ViewBuffer(),
  webBuilds: new WebBuilds(),
  requestLog: new RequestLog(),
  runNotifications: new RunNotifications(notifications),
  localWorkers: new LocalWorkers(),
  feed: new EventFeed(pool, log),
  runTargets: new RunTargets(),
  workflowTargets: new WorkflowTargets(),
  liveRuns: new LiveRuns(notifications, answerMemory),
  evaluator: new Evaluator(),
  findSampleRun,
  countRunFailures,
  countSellerRuns,
  findScoreCard,
  findReleaseRegressions,
  compareRelease,
  flagReleases,
  executionKinds: { PROMPT: promptKind, WORKFLOW: workflowKind },
  operatorTasks: new OperatorTasks(),
  serviceControl: createServiceControl(),
  idempotencyKey: null,
  failPoints: failPoints ?? null,
});

/** The client of Redis is loaded where there is one. */
async function openCounters(
  { redisUrl }: Config,
  now: () => Date,
  log: Logger,
  createShared: BaseOverrides["createCounters"],
): Promise<RateLimitCounters> {
  const own = new MemoryCounters(now);
  if (!redisUrl)
    return createShared
      ? new FallbackCounters(createShared(now), own, { now, log, hasOwnTimeout: true })
      : own;
  const { pingRedis, RedisCounters } = await import("./platform/http/redis-counters.ts");
  pingRedis(redisUrl).catch((error) =>
    log.error(
      { err: error },
      "REDIS_URL: Redis does not answer, so this process counts rate limits for itself until it does",
    ),
  );
  return new FallbackCounters(new RedisCounters(redisUrl, now), own, { now, log });
}
