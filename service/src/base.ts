import { hkdfSync } from "node:crypto";
import type { AddressInfo } from "node:net";
import type pg from "pg";
import type { Logger } from "pino";
import { LiveRuns } from "./ai/live.ts";
import { seedCategories } from "./catalogue/categories.ts";
import { Kept } from "./catalogue/kept.ts";
import { ViewBuffer } from "./catalogue/views.ts";
import type { Config } from "./config.ts";
import type { Context } from "./context.ts";
import { DatabaseClock, exactClock, type SkewedClock } from "./db/clock.ts";
import { type Connection, openDatabase, openPool } from "./db/database.ts";
import { DatabaseWatch } from "./db/database-watch.ts";
import { claimInstallation, claimOf } from "./db/installation.ts";
import { migrate } from "./db/migrate.ts";
import { Notices } from "./db/notices.ts";
import { WorkerPresence } from "./db/presence.ts";
import { RefusedWrites } from "./db/refused-writes.ts";
import { RunNotices } from "./engine/run-notices.ts";
import { EventFeed } from "./events/feed.ts";
import type { FailPoints } from "./fail-points.ts";
import { insuredCounters } from "./http/counters.insured.ts";
import { type Counters, memoryCounters } from "./http/counters.ts";
import { createGuests } from "./http/guests.ts";
import { newUuid } from "./ids.ts";
import { openJobs } from "./jobs/jobs.ts";
import { KeyCache } from "./keys/key-cache.ts";
import { createLinks } from "./links.ts";
import { createLog } from "./log.ts";
import { originAt } from "./loopback.ts";
import { AnswerMemory } from "./outside/answer-memory.ts";
import { type OutsideOverrides, openOutside } from "./outside.ts";
import { Figures } from "./telemetry.figures.ts";
import { createVault } from "./vault.ts";
import { jobKinds } from "./worker.ts";

/** What tests put in the place of the real thing; everything else is as in production. */
export interface BaseOverrides extends OutsideOverrides {
  /** In the place of the database's clock. */
  now?: () => Date;
  log?: Logger;
  failPoints?: FailPoints;
  answerMemory?: AnswerMemory;
}

/** The rooms and what they stand on, without a door: enough for operator commands and the demo. */
export interface Base {
  ctx: Context;
  close(): Promise<void>;
  /** Where the server listens, once it does: what users give must not lead there, and links begin there. */
  listening(address: AddressInfo, origin: string): void;
  giveUp(): void;
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

async function buildBase(
  config: Config,
  pool: pg.Pool,
  connection: Connection,
  { log, now, clock, ...overrides }: BaseOverrides & { log: Logger; now: () => Date; clock: SkewedClock },
): Promise<Base> {
  const db = openDatabase(pool);
  const notices = new Notices(connection, log);
  await claimInstallation(db, claimOf(config), now());
  await seedCategories(db);
  let origin = config.publicUrl ?? originAt(config.host, config.port);
  const shutdown = new AbortController();
  const figures = new Figures();
  const { answerMemory = new AnswerMemory() } = overrides;
  const needs = { pool, now, figures, origin: () => origin, answerMemory };
  const outside = await openOutside(config, needs, overrides);
  const jobs = await openJobs(pool, log, jobKinds);
  const secretsFor = (purpose: string) =>
    config.sessionKeys.map((key) => Buffer.from(hkdfSync("sha256", key, "", purpose, 32)));
  const ctx: Context = {
    config,
    db,
    pool,
    connection,
    now,
    clock,
    newId: () => newUuid(now()),
    log,
    figures,
    vault: createVault(config.masterKeys),
    links: createLinks(() => origin, secretsFor("stoa signed links")),
    guests: createGuests(secretsFor("stoa guests")),
    counters: await openCounters(config, now, log),
    jobs,
    notices,
    presence: new WorkerPresence(connection, pool, log),
    databaseWatch: new DatabaseWatch(now),
    refusedWrites: new RefusedWrites(pool, now),
    keyCache: new KeyCache(notices),
    kept: new Kept(notices, now),
    views: new ViewBuffer(),
    runNotices: new RunNotices(notices),
    feed: new EventFeed(pool, log),
    live: new LiveRuns(notices, answerMemory),
    shutdown: shutdown.signal,
    idempotencyKey: null,
    failPoints: overrides.failPoints ?? null,
    outside: outside.ports,
  };
  return {
    ctx,
    listening: (address, listensAt) => {
      outside.listening(address);
      if (!config.publicUrl) origin = listensAt;
    },
    giveUp: () => shutdown.abort(new Error("shutdown")),
    async close() {
      await outside.close();
      await ctx.counters.close();
      await jobs.close();
      await notices.close();
      await pool.end();
    },
  };
}

/** The client of Redis is loaded where there is one. */
async function openCounters({ redisUrl }: Config, now: () => Date, log: Logger): Promise<Counters> {
  const own = memoryCounters(now);
  if (!redisUrl) return own;
  const { pingRedis, redisCounters } = await import("./http/counters.redis.ts");
  pingRedis(redisUrl).catch((error) =>
    log.error(
      { err: error },
      "REDIS_URL: Redis does not answer, so this process counts rate limits for itself until it does",
    ),
  );
  return insuredCounters(redisCounters(redisUrl, now), own, { now, log });
}
