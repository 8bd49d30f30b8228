import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { endpoints } from "@stoa/contract";
import type { FastifyInstance } from "fastify";
import { accountRoutes } from "./account/routes.ts";
import { adminRoutes } from "./admin/routes.ts";
import { hearCancels } from "./ai/cancel.ts";
import { estimateRoutes } from "./ai/estimate-routes.ts";
import { executionRoutes } from "./ai/execution-routes.ts";
import type { ExecutionKinds } from "./ai/kinds.ts";
import { RENEW_EVERY_MS, renewLeases } from "./ai/leases.ts";
import { promptKind } from "./ai/prompt-kind.ts";
import { providerKeyRoutes } from "./ai/provider-key-routes.ts";
import { addReceiptKeys } from "./ai/receipt-pages.ts";
import { runReceiptRoutes } from "./ai/receipt-routes.ts";
import { promptRunRoutes } from "./ai/routes.ts";
import { analyticsRoutes } from "./analytics/routes.ts";
import { countWaiting } from "./analytics/sums.ts";
import { auditRoutes } from "./audit/routes.ts";
import { type BaseOverrides, openBase } from "./base.ts";
import { catalogueRoutes } from "./catalogue/routes.ts";
import { flushViews } from "./catalogue/views.ts";
import type { Config } from "./config.ts";
import type { Context } from "./context.ts";
import { describeSkew, measureSkew } from "./db/clock.ts";
import type { Connection } from "./db/database.ts";
import { acceptsWrites, isMigrated } from "./db/migrate.ts";
import { discountRoutes } from "./discounts/routes.ts";
import { workflowKind } from "./engine/kind.ts";
import { engineRoutes } from "./engine/routes.ts";
import { findOldestUnsent } from "./events/feed-queries.ts";
import { eventRoutes } from "./events/routes.ts";
import { addFilePages } from "./files/pages.ts";
import { fileRoutes } from "./files/routes.ts";
import { addAssets } from "./http/assets.ts";
import type { Door, RequestDeadlines } from "./http/door.ts";
import type { StreamTimes } from "./http/event-stream.ts";
import { createMetrics } from "./http/metrics.ts";
import { addPages } from "./http/pages.ts";
import { hasPlainCookies } from "./http/plain-cookies.ts";
import { createRateLimits, type Entrance, type RateLimits } from "./http/rate-limit.ts";
import { buildServer, originOf } from "./http/server.ts";
import { every } from "./jobs/every.ts";
import { identifyKey } from "./keys/identify.ts";
import { keyRoutes } from "./keys/routes.ts";
import { lastVerdict } from "./ledger/nightly.ts";
import { addMailPages } from "./mail/pages.ts";
import { addMcpDoor } from "./mcp/door.ts";
import { networkOf } from "./network.ts";
import { addOAuthPages } from "./oauth/pages.ts";
import { oauthRoutes } from "./oauth/routes.ts";
import { identifyToken } from "./oauth/tokens.ts";
import { openAiRoutes } from "./openai/routes.ts";
import { addSignInPages } from "./pages/routes.ts";
import { addNoticeDoor, addTestPayments } from "./payments/door.ts";
import { listOpenMoney } from "./payments/open-money.ts";
import { paymentRoutes } from "./payments/routes.ts";
import { payoutRoutes } from "./payouts/routes.ts";
import { allowanceOf } from "./plans/allowance.ts";
import { addPlanPages } from "./plans/pages.ts";
import { planRoutes } from "./plans/routes.ts";
import { productRoutes } from "./products/routes.ts";
import { addPurchasePages } from "./purchases/pages.ts";
import { purchaseRoutes } from "./purchases/routes.ts";
import { referralRoutes } from "./referrals/routes.ts";
import { reviewRoutes } from "./reviews/routes.ts";
import { sessionRoutes } from "./sessions/routes.ts";
import { identifySession } from "./sessions/sessions.ts";
import { reportFailure } from "./sign-in/failures.ts";
import { signInRoutes } from "./sign-in/routes.ts";
import { addSocialPages } from "./sign-in/social-pages.ts";
import { transferRoutes } from "./transfer/routes.ts";
import { twoFactorRoutes } from "./two-factor/routes.ts";
import { addInboxPages } from "./webhooks/inbox-pages.ts";
import { webhookRoutes } from "./webhooks/routes.ts";
import { noticeHandlers } from "./worker.ts";
import { Workers } from "./workers.ts";
import { Evaluator } from "./workflows/evaluate.ts";

const FLUSH_VIEWS_MS = 500;
const DROP_OLD_MS = 5_000;
const HEAR_CANCELS_MS = 500;
/** Requests may run this long after SIGTERM; then calls to the outside are given up. */
const GRACE_MS = 10_000;
const LAST_WORDS_MS = 3_000;
const CLOSE_IDLE_MS = 50;

/** What differs between the executions of each type. */
const kinds: ExecutionKinds = { PROMPT: promptKind, WORKFLOW: workflowKind };

export const routes = [
  ...catalogueRoutes,
  ...productRoutes,
  ...transferRoutes,
  ...fileRoutes,
  ...reviewRoutes,
  ...purchaseRoutes,
  ...paymentRoutes,
  ...discountRoutes,
  ...referralRoutes,
  ...payoutRoutes,
  ...analyticsRoutes,
  ...providerKeyRoutes,
  ...promptRunRoutes(kinds),
  ...estimateRoutes,
  ...executionRoutes(kinds),
  ...runReceiptRoutes(kinds),
  ...engineRoutes,
  ...openAiRoutes,
  ...eventRoutes,
  ...webhookRoutes,
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

export interface Overrides extends BaseOverrides {
  inspect?: Door["inspect"];
  requestDeadlines?: RequestDeadlines;
  streamTimes?: Partial<StreamTimes>;
  /** Resolves when load balancers have seen that `/readyz` is 503. */
  drain?: () => Promise<void>;
  /** When all is prepared but the door. */
  beforeListening?(): Promise<void>;
  /** How long requests may run after the service was told to end. */
  graceMs?: number;
}

export interface Service {
  ctx: Context;
  /** The address at which it listens. */
  origin: string;
  app: FastifyInstance;
  /** Is not ready for STOA_DRAIN_SECONDS, then ends what runs and everything else within 15 seconds. */
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
  const evaluator = new Evaluator();
  const workers = new Workers(ctx, evaluator);
  const state: State = { workers, isEnding: false };
  const app = await buildDoor(ctx, state, overrides);
  ctx.notices.listen();
  await ctx.presence.start();
  const views = every(FLUSH_VIEWS_MS, "views", ctx.log, () => flushViews(ctx));
  const kept = every(DROP_OLD_MS, "kept lists", ctx.log, async () => ctx.kept.dropOld());
  const cancels = every(HEAR_CANCELS_MS, "cancels", ctx.log, () => hearCancels(ctx));
  const leases = every(RENEW_EVERY_MS, "leases of runs", ctx.log, () => renewLeases(ctx));
  if (config.roles.worker) await workers.start();
  await overrides.beforeListening?.();
  await app.listen({ host: config.host, port: config.port });
  const origin = originOf(app);
  base.listening(app.server.address() as AddressInfo, origin);
  if (hasPlainCookies(ctx))
    ctx.log.warn({ publicUrl: ctx.links.origin() }, "sign-in goes over plain HTTP: cookies are not Secure");
  const drain = overrides.drain ?? (() => sleep(config.drainSeconds * 1_000));
  return {
    ctx,
    origin,
    app,
    async close() {
      state.isEnding = true;
      await drain();
      const giveUp = setTimeout(() => base.giveUp(), overrides.graceMs ?? GRACE_MS);
      await Promise.all([ctx.feed.close(), closeDoor(app, overrides.graceMs ?? GRACE_MS), workers.stop()]);
      await ctx.live.drained();
      clearTimeout(giveUp);
      await evaluator.close();
      await views.stop();
      await kept.stop();
      await cancels.stop();
      await leases.stop();
      await ctx.presence.stop();
      await base.close();
    },
  };
}

/** What people and programs come in by. */
function buildDoor(
  ctx: Context,
  state: State,
  { inspect, requestDeadlines, streamTimes }: Overrides,
): Promise<FastifyInstance> {
  const { config } = ctx;
  const metrics = createMetrics({
    registry: ctx.figures.registry,
    jobs: () => ctx.jobs.count(),
    openMoney: () => listOpenMoney(ctx.db, ctx.now()),
    verdict: () => lastVerdict(ctx.db),
    waitingSales: () => countWaiting(ctx.db),
    oldestUnsentEvent: () => findOldestUnsent(ctx.pool),
    clockSkew: () => measureSkew(ctx.pool),
    now: ctx.now,
  });
  const limits = createRateLimits({
    counters: ctx.counters,
    now: ctx.now,
    allowanceOf: (caller, ip) => allowanceOf(config.planBook, caller, ip),
    failedCredentials: config.planBook.failedCredentials,
    barred: (entrance, ip) => reportBarred(ctx, entrance, ip),
  });
  return buildServer({
    ctx,
    // A worker opens its door for health, figures and the reference alone.
    routes: config.roles.api ? routes : [],
    metrics,
    identify: {
      key: (value) => identifyKey(ctx, value),
      session: (token) => identifySession(ctx, token),
      token: (value) => identifyToken(ctx, value, "/v1"),
      guest: (cookie) => ctx.guests.identify(cookie),
    },
    limits,
    ...(requestDeadlines && { requestDeadlines }),
    adminRefused: (caller, { method, path }, source) =>
      reportFailure(ctx, {
        action: "admin.refused",
        subject: caller.userId,
        accountId: caller.userId,
        source,
        details: { endpoint: `${method} ${path}`, credential: caller.kind },
      }),
    ...(streamTimes && { streamTimes }),
    ...(inspect && { inspect }),
    pages: (server) => {
      addPages(server, {
        endpoints,
        origin: () => ctx.links.origin(),
        headerPrefix: config.webhookHeaderPrefix,
        metrics,
        metricsToken: config.metricsToken,
        whyNotReady: () => whyNotReady(ctx, state),
        warnings: () => (ctx.notices.problem ? [`Nothing is cached: ${ctx.notices.problem}`] : []),
      });
      if (config.roles.api) addRoomsPages(server, ctx, limits);
    },
  });
}

/** Beside the request that was one too many, which does not wait for it. */
function reportBarred(ctx: Context, entrance: Entrance, ip: string): void {
  const source = { ip, userAgent: null, requestId: "" };
  const failure = { subject: networkOf(ip), accountId: null, source, details: { entrance } };
  reportFailure(ctx, { action: "sign_in.network_barred", ...failure }).catch((error) =>
    ctx.log.warn({ err: error }, "a barred network is missing in the audit log"),
  );
}

function addRoomsPages(server: FastifyInstance, ctx: Context, limits: RateLimits): void {
  addAssets(server);
  addPurchasePages(server, ctx);
  addPlanPages(server, ctx);
  addNoticeDoor(server, ctx, noticeHandlers);
  addTestPayments(server, ctx);
  addFilePages(server, ctx);
  addSignInPages(server, ctx);
  addSocialPages(server, ctx);
  addMailPages(server, ctx);
  addInboxPages(server, ctx);
  addOAuthPages(server, ctx, limits);
  addReceiptKeys(server, ctx);
  addMcpDoor(server, {
    ctx,
    limits,
    key: (value) => identifyKey(ctx, value),
    token: (value) => identifyToken(ctx, value, "/mcp"),
  });
}

/** What of the service `/readyz` looks at. */
interface State {
  workers: Workers;
  isEnding: boolean;
}

async function whyNotReady(ctx: Context, { workers, isEnding }: State): Promise<string[]> {
  if (isEnding) return ["the service is ending"];
  const problems: string[] = [];
  const writable = await acceptsWrites(ctx.pool).catch(() => null);
  const refused = writable === false ? "the database is read-only" : await ctx.refusedWrites.confirm();
  if (refused) problems.push(refused);
  const migrated = await isMigrated(ctx.pool).catch(() => null);
  if (migrated === null) problems.push("the database does not answer");
  if (migrated === false) problems.push("the database lacks migrations");
  const skew = describeSkew(ctx.clock.skewMs);
  if (skew) problems.push(skew);
  else if (ctx.config.roles.worker && !workers.areRunning()) problems.push("the job queue does not run");
  return problems;
}

/** No new connections; what runs may end, and is cut off some seconds after calls to the outside were given up. */
async function closeDoor(app: FastifyInstance, graceMs: number): Promise<void> {
  const cutOff = setTimeout(() => app.server.closeAllConnections(), graceMs + LAST_WORDS_MS);
  // Closing ends what is idle then; a connection whose request ends later would be kept alive.
  const closeIdle = setInterval(() => app.server.closeIdleConnections(), CLOSE_IDLE_MS);
  await app.close();
  for (const timer of [cutOff, closeIdle]) clearTimeout(timer);
}
