import { type AddressInfo, Server } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { endpoints } from "@stoa/contract";
import type { FastifyInstance } from "fastify";
import type pg from "pg";
import { authenticateApiKey } from "./accounts/api-keys/authenticate-key.ts";
import { keyRoutes } from "./accounts/api-keys/routes.ts";
import { notificationRoutes } from "./accounts/notifications/routes.ts";
import { authenticateAccessToken } from "./accounts/oauth/authenticate-token.ts";
import type { OAuthDependencies } from "./accounts/oauth/provider.ts";
import { oauthRoutes } from "./accounts/oauth/routes.ts";
import { addOAuthServer } from "./accounts/oauth/server.ts";
import { addSignInPages } from "./accounts/pages/routes.ts";
import { FLUSH_INTERVAL_MS, flushRequestLog } from "./accounts/request-logs/request-log.ts";
import { requestLogRoutes } from "./accounts/request-logs/routes.ts";
import { sessionRoutes } from "./accounts/sessions/routes.ts";
import { authenticateApiSession } from "./accounts/sessions/sessions.ts";
import { reportFailure } from "./accounts/sign-in/failures.ts";
import { signInRoutes } from "./accounts/sign-in/routes.ts";
import { addSocialSignInRoutes } from "./accounts/sign-in/social-routes.ts";
import { twoFactorRoutes } from "./accounts/two-factor/routes.ts";
import { BackgroundWorkers } from "./background-workers.ts";
import { accountRoutes } from "./backoffice/account-closing/routes.ts";
import { adminRoutes } from "./backoffice/admin/routes.ts";
import { removeReceivedBackups } from "./backoffice/operation/restores.ts";
import { operationRoutes } from "./backoffice/operation/routes.ts";
import { recordVersionStart } from "./backoffice/operation/version.ts";
import { type Base, type BaseOverrides, openBase } from "./base.ts";
import { addFilePages } from "./catalog/files/pages.ts";
import { fileRoutes } from "./catalog/files/routes.ts";
import { importExportRoutes } from "./catalog/import-export/routes.ts";
import { productRoutes } from "./catalog/products/routes.ts";
import { reviewRoutes } from "./catalog/reviews/routes.ts";
import { catalogRoutes } from "./catalog/search/routes.ts";
import { flushViews } from "./catalog/search/views.ts";
import { sellerRoutes } from "./catalog/sellers/routes.ts";
import { testSetRoutes } from "./catalog/test-sets/routes.ts";
import { wishlistRoutes } from "./catalog/wishlist/routes.ts";
import { analyticsRoutes } from "./commerce/analytics/routes.ts";
import { countPendingMovements } from "./commerce/analytics/sales-sums.ts";
import { listOpenMoney } from "./commerce/charges/open-money.ts";
import {
  addPaymentWebhookEndpoint,
  addTestPaymentPages,
} from "./commerce/charges/payment-webhook-endpoint.ts";
import { paymentRoutes } from "./commerce/charges/routes.ts";
import { addPurchasePages } from "./commerce/checkout/pages.ts";
import { purchaseRoutes } from "./commerce/checkout/routes.ts";
import { discountRoutes } from "./commerce/discounts/routes.ts";
import { disputeRoutes } from "./commerce/disputes/routes.ts";
import { findLastVerification } from "./commerce/ledger/nightly-verification.ts";
import { payoutRoutes } from "./commerce/payouts/routes.ts";
import { allowanceOf } from "./commerce/plans/allowance.ts";
import { addPlanPages } from "./commerce/plans/pages.ts";
import { planRoutes } from "./commerce/plans/routes.ts";
import { referralRoutes } from "./commerce/referrals/routes.ts";
import type { Config } from "./core/config/config.ts";
import { type Context, responsibleCallerOf } from "./core/context.ts";
import { type ListeningAddress, originAt } from "./core/loopback.ts";
import { networkOf } from "./core/network.ts";
import { findOldestUnprocessedEvent } from "./events/feed/feed-queries.ts";
import { eventRoutes } from "./events/feed/routes.ts";
import { addInboxPages } from "./events/webhooks/inbox-pages.ts";
import { webhookRoutes } from "./events/webhooks/routes.ts";
import { estimateRoutes } from "./execution/estimates/routes.ts";
import { evaluationRoutes } from "./execution/evaluations/routes.ts";
import { pollCancelRequests } from "./execution/executions/cancel-execution.ts";
import { RENEW_INTERVAL_MS, renewLeases } from "./execution/executions/leases.ts";
import { executionRoutes } from "./execution/executions/routes.ts";
import { addMcpEndpoint } from "./execution/mcp/endpoint.ts";
import { openAiRoutes } from "./execution/openai-api/routes.ts";
import { promptRunRoutes } from "./execution/prompt-runs/routes.ts";
import { providerKeyRoutes } from "./execution/provider-keys/routes.ts";
import { addRunReceiptKeys } from "./execution/run-receipts/pages.ts";
import { runReceiptRoutes } from "./execution/run-receipts/routes.ts";
import { tryOutRoutes } from "./execution/try-outs/routes.ts";
import { workflowRunRoutes } from "./execution/workflow-runs/routes.ts";
import { noticeHandlers } from "./jobs.ts";
import { auditRoutes } from "./platform/audit/routes.ts";
import { describeSkew, measureSkew } from "./platform/db/clock.ts";
import type { Connection } from "./platform/db/database.ts";
import { acceptsWrites, isMigrated } from "./platform/db/migrate.ts";
import { MigrationMismatch } from "./platform/db/migration-mismatch.ts";
import { addEmailPages } from "./platform/email/pages.ts";
import { addAssets } from "./platform/http/assets.ts";
import type { StreamTimeouts } from "./platform/http/event-stream.ts";
import { hasPlainCookies } from "./platform/http/plain-cookies.ts";
import {
  createPrometheusMetrics,
  type PrometheusMetrics,
  type Siblings,
} from "./platform/http/prometheus.ts";
import { type AuthChannel, createRateLimits, type RateLimits } from "./platform/http/rate-limit.ts";
import { buildServer } from "./platform/http/server.ts";
import type { RequestDeadlines, ServerDependencies } from "./platform/http/server-dependencies.ts";
import { SilentConnections } from "./platform/http/silent-connections.ts";
import { addSystemPages, type Readiness, type SystemPages } from "./platform/http/system-pages.ts";
import { runPeriodically } from "./platform/jobs/interval.ts";
import { addClientFiles } from "./web/builds/routes.ts";
import { addDiscoveryPages } from "./web/discovery/routes.ts";
import { addClientPages } from "./web/pages/routes.ts";

const FLUSH_VIEWS_INTERVAL_MS = 500;
const EXPIRE_CACHE_INTERVAL_MS = 5_000;
const POLL_CANCELS_INTERVAL_MS = 500;
/** Requests may run this long after SIGTERM; then calls to the outside are given up. */
const GRACE_MS = 10_000;
const FINAL_RESPONSE_MS = 3_000;
const CLOSE_IDLE_INTERVAL_MS = 50;
/** A process that is replaced waits this long for the next request of an idle connection, whose response closes it. */
const KEEP_IDLE_MS = 5_000;
/** The longest run of a prompt takes less. */
const RETIRE_MS = 5 * 60_000;

export const routes = [
  ...catalogRoutes,
  ...productRoutes,
  ...importExportRoutes,
  ...fileRoutes,
  ...testSetRoutes,
  ...reviewRoutes,
  ...sellerRoutes,
  ...wishlistRoutes,
  ...notificationRoutes,
  ...purchaseRoutes,
  ...paymentRoutes,
  ...disputeRoutes,
  ...discountRoutes,
  ...referralRoutes,
  ...payoutRoutes,
  ...analyticsRoutes,
  ...providerKeyRoutes,
  ...promptRunRoutes,
  ...estimateRoutes,
  ...evaluationRoutes,
  ...executionRoutes,
  ...runReceiptRoutes,
  ...tryOutRoutes,
  ...workflowRunRoutes,
  ...openAiRoutes,
  ...eventRoutes,
  ...webhookRoutes,
  ...keyRoutes,
  ...requestLogRoutes,
  ...signInRoutes,
  ...twoFactorRoutes,
  ...accountRoutes,
  ...sessionRoutes,
  ...adminRoutes,
  ...operationRoutes,
  ...auditRoutes,
  ...planRoutes,
  ...oauthRoutes,
];

export interface Overrides extends BaseOverrides {
  inspect?: ServerDependencies["inspect"];
  requestDeadlines?: RequestDeadlines;
  streamTimeouts?: Partial<StreamTimeouts>;
  /** Resolves when load balancers have seen that `/readyz` is 503. */
  drain?: () => Promise<void>;
  /** Called before the HTTP server listens. */
  beforeListening?(): Promise<void>;
  /** How long requests may run after the service was told to end. */
  graceMs?: number;
  /** Closes this service and starts another one in its place. */
  restart?(): Promise<void>;
  /** Of this process, where several share the work; default: STOA_ROLES. */
  roles?: Config["roles"];
  /** Where other processes of this node answer; this one only works in the background. */
  answeredAt?: ListeningAddress;
  /** The other processes of this node. */
  siblings?: Siblings & { findReadiness(): Promise<Readiness>; catchUp(): Promise<void> };
}

export interface Service {
  ctx: Context;
  /** The address at which it listens. */
  origin: string;
  app: FastifyInstance;
  metrics: PrometheusMetrics;
  /** Of this process alone; empty: it is ready. */
  findProblems(): Promise<string[]>;
  /** Leaves the shared port to the other processes and resolves when all requests and runs have ended, at the latest after five minutes. */
  retire(): Promise<void>;
  /** Is not ready for STOA_DRAIN_SECONDS, then ends what runs and everything else within 15 seconds. */
  close(how?: { drains: boolean }): Promise<void>;
}

interface HttpServer {
  app: FastifyInstance;
  silent: SilentConnections;
}

/** The whole service: the base, its jobs and its HTTP server. */
export async function startService(
  config: Config,
  connection: Connection,
  overrides: Overrides = {},
): Promise<Service> {
  const base = await openBase(config, connection, overrides);
  const { ctx } = base;
  const workers = new BackgroundWorkers(ctx);
  const roles = overrides.roles ?? config.roles;
  const state: ServiceState = { workers, roles, isEnding: false };
  ctx.serviceControl = { pauseWork: () => workers.stop(), restart: overrides.restart ?? null };
  await removeReceivedBackups(ctx);
  await recordVersionStart(ctx);
  const metrics = metricsOf(ctx, overrides.siblings ?? null);
  const app = await buildHttpServer(ctx, state, metrics, overrides);
  const http: HttpServer = { app, silent: new SilentConnections(app.server) };
  ctx.notifications.listen();
  await ctx.presence.start();
  const timers = startTimers(ctx);
  if (roles.worker) await workers.start();
  const address = overrides.answeredAt ?? (await listen(app, config, overrides));
  const origin = originAt(address.address, address.port);
  base.onListening(address, origin);
  if (hasPlainCookies(ctx))
    ctx.log.warn({ publicUrl: ctx.links.origin() }, "sign-in uses plain HTTP: cookies are not Secure");
  const drain = overrides.drain ?? (() => sleep(config.drainSeconds * 1_000));
  return {
    ctx,
    origin,
    app,
    metrics,
    findProblems: () => findReadinessProblems(ctx, state),
    retire: () => retire(ctx, http, state),
    async close({ drains } = { drains: true }) {
      state.isEnding = true;
      if (drains) await drain();
      await endRequestsAndWork(base, http, workers, overrides.graceMs ?? GRACE_MS);
      for (const timer of timers) await timer.stop();
      await ctx.presence.stop();
      await base.close();
    },
  };
}

async function listen(
  app: FastifyInstance,
  { host, port }: Config,
  { beforeListening }: Overrides,
): Promise<ListeningAddress> {
  await beforeListening?.();
  await app.listen({ host, port });
  return app.server.address() as AddressInfo;
}

/**
 * Each response closes its connection, so that its client comes back to another process. Only then are idle connections closed:
 * a request may be on its way on them. `app.close()` would cut them at once.
 */
async function retire(ctx: Context, { app, silent }: HttpServer, state: ServiceState): Promise<void> {
  const begunAt = performance.now();
  const elapsedMs = () => performance.now() - begunAt;
  Server.prototype.close.call(app.server);
  app.server.prependListener("request", (_request, response) => {
    response.shouldKeepAlive = false;
  });
  void ctx.feed.close();
  while (!state.isEnding && elapsedMs() < RETIRE_MS && (await isBusy(ctx, app))) {
    if (elapsedMs() > KEEP_IDLE_MS) closeUnused({ app, silent });
    await sleep(CLOSE_IDLE_INTERVAL_MS);
  }
}

function closeUnused({ app, silent }: HttpServer): void {
  app.server.closeIdleConnections();
  silent.close();
}

async function isBusy(ctx: Context, app: FastifyInstance): Promise<boolean> {
  const connections = await promisify(app.server.getConnections).call(app.server);
  return connections > 0 || ctx.liveRuns.ids.length > 0;
}

/** Waits for what runs, and aborts its calls when that takes longer than the grace period. */
async function endRequestsAndWork(
  base: Base,
  http: HttpServer,
  workers: BackgroundWorkers,
  graceMs: number,
): Promise<void> {
  const giveUp = setTimeout(() => base.abortCalls(), graceMs);
  await Promise.all([base.ctx.feed.close(), closeHttpServer(http, graceMs), workers.stop()]);
  await base.ctx.liveRuns.waitUntilEmpty();
  clearTimeout(giveUp);
}

/** What every process does by its own clock, in the order in which it ends. */
const startTimers = (ctx: Context) => [
  runPeriodically(FLUSH_VIEWS_INTERVAL_MS, "views", ctx.log, () => flushViews(ctx)),
  runPeriodically(FLUSH_INTERVAL_MS, "request log", ctx.log, () => flushRequestLog(ctx)),
  runPeriodically(EXPIRE_CACHE_INTERVAL_MS, "kept lists", ctx.log, async () => ctx.listCache.evictExpired()),
  runPeriodically(POLL_CANCELS_INTERVAL_MS, "cancels", ctx.log, () => pollCancelRequests(ctx)),
  runPeriodically(RENEW_INTERVAL_MS, "leases of runs", ctx.log, () => renewLeases(ctx)),
];

/** What people and programs come in by. */
function buildHttpServer(
  ctx: Context,
  state: ServiceState,
  metrics: PrometheusMetrics,
  { inspect, requestDeadlines, streamTimeouts, siblings }: Overrides,
): Promise<FastifyInstance> {
  const { roles } = state;
  const limits = rateLimitsOf(ctx);
  return buildServer({
    ctx,
    // A worker serves health checks, metrics and the reference only.
    routes: roles.api ? routes : [],
    metrics,
    identify: {
      key: (value) => authenticateApiKey(ctx, value),
      session: (token) => authenticateApiSession(ctx, token),
      token: (value) => authenticateAccessToken(ctx, value, "/v1"),
      guest: (cookie) => ctx.guests.identify(cookie),
    },
    limits,
    ...(siblings && { catchUpSiblings: siblings.catchUp }),
    ...(requestDeadlines && { requestDeadlines }),
    onAdminRefused: (caller, { method, path }, source) =>
      reportFailure(ctx, {
        action: "admin.refused",
        subject: caller.userId,
        accountId: caller.userId,
        source,
        details: { endpoint: `${method} ${path}`, credential: caller.kind },
      }),
    onResponse: (request) => ctx.requestLog.add(ctx, request),
    ...(streamTimeouts && { streamTimeouts }),
    ...(inspect && { inspect }),
    addPages: (server) => {
      addSystemPages(server, systemPagesOf(ctx, state, metrics, siblings));
      if (roles.api)
        addRoomPages(server, { ctx, limits, ...(siblings && { catchUpSiblings: siblings.catchUp }) });
    },
  });
}

const systemPagesOf = (
  ctx: Context,
  state: ServiceState,
  metrics: PrometheusMetrics,
  siblings: Overrides["siblings"],
): SystemPages => ({
  endpoints,
  origin: () => ctx.links.origin(),
  headerPrefix: ctx.config.webhookHeaderPrefix,
  hasTestKeys: ctx.config.environment === "test",
  metrics,
  metricsToken: ctx.config.metricsToken,
  findReadiness: () => findReadiness(ctx, state, siblings),
});

const metricsOf = (ctx: Context, siblings: Siblings | null): PrometheusMetrics =>
  createPrometheusMetrics({
    siblings,
    registry: ctx.metrics.registry,
    jobs: () => ctx.jobs.readStatus(),
    openMoney: () => listOpenMoney(ctx.db, ctx.now()),
    lastLedgerCheck: () => findLastVerification(ctx.db),
    pendingSales: () => countPendingMovements(ctx.db),
    oldestPendingEvent: () => findOldestUnprocessedEvent(ctx.pool),
    clockSkew: () => measureSkew(ctx.pool),
    now: ctx.now,
  });

const rateLimitsOf = (ctx: Context): RateLimits =>
  createRateLimits({
    counters: ctx.counters,
    now: ctx.now,
    allowanceOf: (caller, ip) => allowanceOf(ctx.config.planConfig, responsibleCallerOf(caller), ip),
    failedCredentials: ctx.config.planConfig.failedCredentials,
    onBlocked: (entrance, ip) => auditBarredNetwork(ctx, entrance, ip),
  });

/** Beside the request that was one too many, which does not wait for it. */
function auditBarredNetwork(ctx: Context, entrance: AuthChannel, ip: string): void {
  const source = { ip, userAgent: null, requestId: "" };
  const failure = { subject: networkOf(ip), accountId: null, source, details: { entrance } };
  reportFailure(ctx, { action: "sign_in.network_barred", ...failure }).catch((error) =>
    ctx.log.warn({ err: error }, "a barred network is missing in the audit log"),
  );
}

function addRoomPages(server: FastifyInstance, dependencies: OAuthDependencies): void {
  const { ctx, limits } = dependencies;
  addAssets(server);
  addClientFiles(server, ctx);
  addClientPages(server, ctx);
  addDiscoveryPages(server, ctx, limits);
  addPurchasePages(server, ctx);
  addPlanPages(server, ctx);
  addPaymentWebhookEndpoint(server, ctx, noticeHandlers);
  addTestPaymentPages(server, ctx);
  addFilePages(server, ctx);
  addSignInPages(server, ctx);
  addSocialSignInRoutes(server, ctx);
  addEmailPages(server, ctx);
  addInboxPages(server, ctx);
  addOAuthServer(server, dependencies);
  addRunReceiptKeys(server, ctx);
  addMcpEndpoint(server, {
    ctx,
    limits,
    key: (value) => authenticateApiKey(ctx, value),
    token: (value) => authenticateAccessToken(ctx, value, "/mcp"),
  });
}

/** What of the service `/readyz` looks at. */
interface ServiceState {
  workers: BackgroundWorkers;
  roles: Config["roles"];
  isEnding: boolean;
}

/** Of the whole node, whichever of its processes answers. */
async function findReadiness(
  ctx: Context,
  state: ServiceState,
  siblings: Overrides["siblings"],
): Promise<Readiness> {
  const [own, others] = await Promise.all([
    findReadinessProblems(ctx, state),
    siblings?.findReadiness() ?? { problems: [], warnings: [] },
  ]);
  const warnings = ctx.notifications.problem ? [`Nothing is cached: ${ctx.notifications.problem}`] : [];
  return {
    problems: [...new Set([...own, ...others.problems])],
    warnings: [...warnings, ...others.warnings],
  };
}

async function findReadinessProblems(
  ctx: Context,
  { workers, roles, isEnding }: ServiceState,
): Promise<string[]> {
  if (isEnding) return ["the service is ending"];
  const problems: string[] = [];
  const writable = await acceptsWrites(ctx.pool).catch(() => null);
  const refused = writable === false ? "the database is read-only" : await ctx.refusedWrites.findReason();
  if (refused) problems.push(refused);
  const migrationProblem = await findMigrationProblem(ctx.pool);
  if (migrationProblem) problems.push(migrationProblem);
  const skew = describeSkew(ctx.clock.skewMs);
  if (skew) problems.push(skew);
  else if (roles.worker && !workers.areRunning()) problems.push("the job queue does not run");
  return problems;
}

async function findMigrationProblem(pool: pg.Pool): Promise<string | null> {
  try {
    return (await isMigrated(pool)) ? null : "the database lacks migrations";
  } catch (error) {
    const isMismatch = error instanceof MigrationMismatch;
    return isMismatch ? "the database has other migrations" : "the database does not answer";
  }
}

/** No new connections; what runs may end, and is cut off some seconds after calls to the outside were given up. */
async function closeHttpServer({ app, silent }: HttpServer, graceMs: number): Promise<void> {
  const cutOff = setTimeout(() => app.server.closeAllConnections(), graceMs + FINAL_RESPONSE_MS);
  // Closing ends what is idle then; a connection whose request ends later would be kept alive.
  const closeIdle = setInterval(() => closeUnused({ app, silent }), CLOSE_IDLE_INTERVAL_MS);
  await app.close();
  for (const timer of [cutOff, closeIdle]) clearTimeout(timer);
}
