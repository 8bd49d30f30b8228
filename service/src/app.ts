import { hkdfSync } from "node:crypto";
import type { AddressInfo } from "node:net";
import { endpoints } from "@stoa/contract";
import type { FastifyInstance } from "fastify";
import type pg from "pg";
import type { Logger } from "pino";
import { accountRoutes } from "./account/routes.ts";
import { adminRoutes } from "./admin/routes.ts";
import { tidyExecutions } from "./ai/executions.ts";
import { aiRoutes } from "./ai/routes.ts";
import { auditRoutes } from "./audit/routes.ts";
import type { Config } from "./config.ts";
import type { Context } from "./context.ts";
import { type Connection, openDatabase, openPool } from "./db/database.ts";
import { claimInstallation } from "./db/installation.ts";
import { isMigrated, migrate } from "./db/migrate.ts";
import { Notices } from "./db/notices.ts";
import { forgetOldEvents } from "./events/events.ts";
import { eventRoutes } from "./events/routes.ts";
import { addAssets } from "./http/assets.ts";
import { insuredCounters } from "./http/counters.insured.ts";
import { redisCounters } from "./http/counters.redis.ts";
import { type Counters, memoryCounters } from "./http/counters.ts";
import type { Door } from "./http/door.ts";
import { createGuests } from "./http/guests.ts";
import { forgetOldAnswers } from "./http/idempotency.ts";
import { createMetrics } from "./http/metrics.ts";
import { addPages } from "./http/pages.ts";
import { createRateLimits } from "./http/rate-limit.ts";
import { buildServer, originOf } from "./http/server.ts";
import { newUuid } from "./ids.ts";
import { every } from "./jobs/every.ts";
import { openJobs } from "./jobs/jobs.ts";
import { type AskedJob, type Queue, type ScheduledJob, startQueue } from "./jobs/queue.ts";
import { tellOfExpiry } from "./keys/expiry.ts";
import { identifyKey } from "./keys/identify.ts";
import { KeyCache } from "./keys/key-cache.ts";
import { keyRoutes } from "./keys/routes.ts";
import { createLinks } from "./links.ts";
import { createLog } from "./log.ts";
import { carryMail, forgetOldMails, mailJob } from "./mail/mail.ts";
import { addMailPages } from "./mail/pages.ts";
import { addOAuthPages } from "./oauth/pages.ts";
import { oauthRoutes } from "./oauth/routes.ts";
import { tidyOAuth } from "./oauth/tidy.ts";
import { identifyToken } from "./oauth/tokens.ts";
import { createSandbox, withSandbox } from "./outside/ai-provider.sandbox.ts";
import { createSdkProviders, type SdkProvidersOptions } from "./outside/ai-provider.sdk.ts";
import { type AiProviders, defaultDeadlines } from "./outside/ai-provider.ts";
import { type Guard, parseAllowedTargets, refusedUrl } from "./outside/allowed-targets.ts";
import { createIdentityProviders } from "./outside/identity-provider.ts";
import { devMail } from "./outside/mail.dev.ts";
import { noMail } from "./outside/mail.none.ts";
import { type Mail, parseMailbox } from "./outside/mail.ts";
import { fakePayments } from "./outside/payments.fake.ts";
import { startFakeProvider } from "./outside/payments.fake-server.ts";
import { postgresChargeStore } from "./outside/payments.fake-store.ts";
import { noPayments } from "./outside/payments.none.ts";
import type { Payments } from "./outside/payments.ts";
import { createSafeFetch } from "./outside/safe-fetch.ts";
import { addSignInPages } from "./pages/routes.ts";
import { allowanceOf } from "./plans/allowance.ts";
import { reconcilePayments } from "./plans/payment.ts";
import { planRoutes } from "./plans/routes.ts";
import { applyDueDowngrades } from "./plans/subscription.ts";
import { seedCategories } from "./products/categories.ts";
import { Totals } from "./products/list.ts";
import { productRoutes } from "./products/routes.ts";
import { flushViews, ViewBuffer } from "./products/views.ts";
import { addPurchasePages } from "./purchases/pages.ts";
import { reconcileOrders } from "./purchases/payment.ts";
import { purchaseRoutes } from "./purchases/routes.ts";
import { reviewRoutes } from "./reviews/routes.ts";
import { sessionRoutes } from "./sessions/routes.ts";
import { identifySession } from "./sessions/sessions.ts";
import { forgetOldTokens } from "./sign-in/one-time-tokens.ts";
import { signInRoutes } from "./sign-in/routes.ts";
import { addSocialPages } from "./sign-in/social-pages.ts";
import { twoFactorRoutes } from "./two-factor/routes.ts";
import { createVault, fingerprintOf } from "./vault.ts";

const MAX_ANSWER_BYTES = 8 * 1024 * 1024;
const FLUSH_VIEWS_MS = 500;
/** Requests may run this long after SIGTERM; then calls to the outside are given up. */
const GRACE_MS = 10_000;
const LAST_WORDS_MS = 3_000;
const IDENTITY_PROVIDER_MS = 5_000;

export const routes = [
  ...productRoutes,
  ...reviewRoutes,
  ...purchaseRoutes,
  ...aiRoutes,
  ...eventRoutes,
  ...keyRoutes,
  ...signInRoutes,
  ...twoFactorRoutes,
  ...accountRoutes,
  ...sessionRoutes,
  ...adminRoutes,
  ...auditRoutes,
  ...planRoutes,
  ...oauthRoutes,
];

/** What can be asked for by `ctx.jobs.send`. */
export const jobKinds = [mailJob];

/** What tests put in the place of the real thing; everything else is as in production. */
export interface Overrides {
  now?: () => Date;
  log?: Logger;
  inspect?: Door["inspect"];
  providers?: Partial<SdkProvidersOptions>;
  deadlines?: Partial<typeof defaultDeadlines>;
  payments?: Payments;
  /** How long a call to GitHub or Google may take. */
  identityProviderMs?: number;
  mail?: Mail;
  /** How long requests may run after the service was told to end. */
  graceMs?: number;
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
  overrides: Overrides = {},
): Promise<Base> {
  const log = overrides.log ?? createLog(config.logLevel);
  const now = overrides.now ?? (() => new Date());
  const pool = openPool(connection);
  // An idle connection that breaks is replaced at its next use; without a listener it would end the process.
  pool.on("error", (error) => log.warn({ err: error }, "a database connection was lost"));
  try {
    await migrate(pool, now());
    const notices = new Notices(connection, log);
    return await buildBase(config, pool, notices, { ...overrides, log, now });
  } catch (error) {
    await pool.end();
    throw error;
  }
}

async function buildBase(
  config: Config,
  pool: pg.Pool,
  notices: Notices,
  { log, now, ...overrides }: Overrides & { log: Logger; now: () => Date },
): Promise<Base> {
  const db = openDatabase(pool);
  await claimInstallation(db, {
    environment: config.environment,
    masterKeyFingerprints: config.masterKeys.map(fingerprintOf),
    now: now(),
  });
  await seedCategories(db);
  let origin = config.publicUrl ?? `http://${config.host}:${config.port}`;
  let own: ReturnType<Guard["own"]> = null;
  const guard: Guard = {
    allowed: parseAllowedTargets(config.allowedTargets),
    own: () => own,
    ownPathsAllowed: config.environment === "test" ? ["/dev/hooks/"] : [],
  };
  const shutdown = new AbortController();
  const payments = await openPayments(config, pool, now, overrides.payments);
  const ai = openProviders(guard, overrides);
  const mail = overrides.mail ?? (await openMail(config));
  const jobs = await openJobs(pool, log, jobKinds);
  const secretsFor = (purpose: string) =>
    config.sessionKeys.map((key) => Buffer.from(hkdfSync("sha256", key, "", purpose, 32)));
  const ctx: Context = {
    config,
    db,
    pool,
    now,
    newId: () => newUuid(now()),
    log,
    vault: createVault(config.masterKeys),
    links: createLinks(() => origin, secretsFor("stoa signed links")),
    guests: createGuests(secretsFor("stoa guests")),
    counters: openCounters(config, now, log),
    jobs,
    notices,
    keyCache: new KeyCache(notices),
    totals: new Totals(),
    views: new ViewBuffer(),
    shutdown: shutdown.signal,
    outside: {
      payments: payments.port,
      ai,
      identityProviders: createIdentityProviders({
        ...config,
        timeoutMs: overrides.identityProviderMs ?? IDENTITY_PROVIDER_MS,
      }),
      mail,
      refusedUrl: (url) => refusedUrl(guard, url),
    },
  };
  return {
    ctx,
    listening: ({ address, port }, listensAt) => {
      own = { addresses: [address], port };
      if (!config.publicUrl) origin = listensAt;
    },
    giveUp: () => shutdown.abort(new Error("shutdown")),
    async close() {
      await ai.close?.();
      await payments.close();
      await ctx.counters.close();
      await jobs.close();
      await notices.close();
      await pool.end();
    },
  };
}

function openCounters({ redisUrl }: Config, now: () => Date, log: Logger): Counters {
  const own = memoryCounters(now);
  return redisUrl ? insuredCounters(redisCounters(redisUrl, now), own, { now, log }) : own;
}

async function openPayments(config: Config, pool: pg.Pool, now: () => Date, given: Payments | undefined) {
  if (given) return { port: given, close: async () => {} };
  if (config.environment === "production") return { port: noPayments, close: async () => {} };
  const provider = await startFakeProvider({ store: postgresChargeStore(pool), now });
  return { port: fakePayments({ origin: provider.origin }), close: () => provider.close() };
}

/** The client of mail servers is loaded where there is one. */
export async function openMail({ mail, smtpUrl, mailFrom }: Config): Promise<Mail> {
  if (mail === "off") return noMail;
  if (mail === "dev") return devMail((line) => console.log(line));
  const { smtpMail } = await import("./outside/mail.smtp.ts");
  return smtpMail(smtpUrl!, parseMailbox(mailFrom)!);
}

function openProviders(guard: Guard, overrides: Overrides): AiProviders {
  const deadlines = { ...defaultDeadlines, ...overrides.deadlines };
  const safe = createSafeFetch(guard, {
    connectMs: deadlines.connectMs,
    headersMs: deadlines.firstByteMs,
    bodyIdleMs: deadlines.idleMs,
    maxResponseBytes: MAX_ANSWER_BYTES,
  });
  const providers = createSdkProviders({ fetch: safe.fetch, deadlines, ...overrides.providers });
  return { ...withSandbox(providers, createSandbox()), close: () => safe.close() };
}

export interface Service {
  ctx: Context;
  /** The address at which it listens. */
  origin: string;
  app: FastifyInstance;
  /** Ends what runs, then everything else; within 15 seconds. */
  close(): Promise<void>;
}

/** The whole service: the base, its jobs and its door. */
export async function startService(
  config: Config,
  connection: Connection,
  overrides: Overrides = {},
): Promise<Service> {
  const base = await openBase(config, connection, overrides);
  const { ctx } = base;
  ctx.notices.listen();
  let queue: Queue | null = null;
  const metrics = createMetrics(() => ctx.jobs.count());
  const app = await buildServer({
    ctx,
    // A worker opens its door for health and figures alone.
    routes: config.roles.api ? routes : [],
    metrics,
    identify: {
      key: (value) => identifyKey(ctx, value),
      session: (token) => identifySession(ctx, token),
      token: (value) => identifyToken(ctx, value),
      guest: (cookie) => ctx.guests.identify(cookie),
    },
    limits: createRateLimits({
      counters: ctx.counters,
      now: ctx.now,
      allowanceOf: (caller, address) => allowanceOf(config.planBook, caller, address),
      failedCredentials: config.planBook.failedCredentials,
    }),
    ...(overrides.inspect && { inspect: overrides.inspect }),
    pages: (server) => {
      addPages(server, {
        endpoints,
        origin: () => ctx.links.origin(),
        metrics,
        metricsToken: config.metricsToken,
        whyNotReady: () => whyNotReady(ctx, () => queue),
      });
      addAssets(server);
      addPurchasePages(server, ctx);
      addSignInPages(server, ctx);
      addSocialPages(server, ctx);
      addMailPages(server, ctx);
      if (config.roles.api) addOAuthPages(server, ctx);
    },
  });
  const views = every(FLUSH_VIEWS_MS, "views", ctx.log, () => flushViews(ctx));
  if (config.roles.worker) queue = await startQueue(ctx.pool, ctx.log, jobsOf(ctx), askedJobsOf(ctx));
  await app.listen({ host: config.host, port: config.port });
  const origin = originOf(app);
  base.listening(app.server.address() as AddressInfo, origin);
  return {
    ctx,
    origin,
    app,
    async close() {
      await closeDoor(app, base, overrides.graceMs ?? GRACE_MS);
      await queue?.stop();
      await views.stop();
      await base.close();
    },
  };
}

const jobsOf = (ctx: Context): ScheduledJob[] => [
  { name: "reconcile-orders", cron: "* * * * *", run: () => reconcileOrders(ctx) },
  { name: "reconcile-subscription-payments", cron: "* * * * *", run: () => reconcilePayments(ctx) },
  { name: "apply-downgrades", cron: "* * * * *", run: () => applyDueDowngrades(ctx) },
  { name: "tidy-executions", cron: "*/5 * * * *", run: () => tidyExecutions(ctx) },
  { name: "forget-idempotency-keys", cron: "17 * * * *", run: () => forgetOldAnswers(ctx) },
  { name: "forget-mails", cron: "23 * * * *", run: () => forgetOldMails(ctx) },
  { name: "tell-of-key-expiry", cron: "37 * * * *", run: () => tellOfExpiry(ctx) },
  { name: "forget-sign-in-tokens", cron: "29 * * * *", run: () => forgetOldTokens(ctx) },
  { name: "tidy-oauth", cron: "41 * * * *", run: () => tidyOAuth(ctx) },
  { name: "forget-events", cron: "43 3 * * *", run: () => forgetOldEvents(ctx) },
];

const askedJobsOf = (ctx: Context): AskedJob[] => [
  { ...mailJob, run: (data, signal) => carryMail(ctx, (data as { mailId: string }).mailId, signal) },
];

async function whyNotReady(ctx: Context, queue: () => Queue | null): Promise<string[]> {
  const problems: string[] = [];
  const migrated = await isMigrated(ctx.pool).catch(() => null);
  if (migrated === null) problems.push("the database does not answer");
  if (migrated === false) problems.push("the database lacks migrations");
  if (ctx.config.roles.worker && !queue()?.isRunning()) problems.push("the job queue does not run");
  return problems;
}

/** No new connections; what runs may end; after the grace calls to the outside are aborted and recorded as failed. */
async function closeDoor(app: FastifyInstance, base: Base, graceMs: number): Promise<void> {
  const giveUp = setTimeout(() => base.giveUp(), graceMs);
  const cutOff = setTimeout(() => app.server.closeAllConnections(), graceMs + LAST_WORDS_MS);
  await app.close();
  clearTimeout(giveUp);
  clearTimeout(cutOff);
}
