import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ErrorCode, Permission, Plan, Role } from "@stoa/contract";
import { permissions, providers } from "@stoa/contract";
import pg from "pg";
import { type Dispatcher, request } from "undici";
import { createKeyAsOperator } from "../src/accounts/api-keys/keys.ts";
import { createUser, findUser } from "../src/accounts/people/users.ts";
import { startSession } from "../src/accounts/sessions/sessions.ts";
import { type Overrides, type Service, startService } from "../src/app.ts";
import { rollUpSales } from "../src/commerce/analytics/sales-sums.ts";
import { verifyLedger } from "../src/commerce/ledger/verification.ts";
import type { Config } from "../src/core/config/config.ts";
import { builtInPlans, type PlanConfig } from "../src/core/config/plan-config.ts";
import { toId } from "../src/core/ids.ts";
import { createLog } from "../src/core/log.ts";
import type { TransactionTimeouts } from "../src/platform/db/client.ts";
import { openDatabase, openPool } from "../src/platform/db/database.ts";
import { mustMatchContract } from "../src/platform/http/contract-check.ts";
import { until } from "./until.ts";

/** The test runner starts this PostgreSQL and migrates the template. */
const SERVER_URL = process.env["STOA_TEST_DATABASE"];
export const TEMPLATE = "stoa_template";

export interface Reply {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects by asserting it
  body: any;
  text: string;
}

export interface Client {
  userId: string;
  key: string;
  request(method: string, path: string, init?: RequestInit & { json?: unknown }): Promise<Reply>;
  get(path: string, headers?: Record<string, string>): Promise<Reply>;
  post(path: string, json?: unknown, headers?: Record<string, string>): Promise<Reply>;
  patch(path: string, json?: unknown, headers?: Record<string, string>): Promise<Reply>;
  put(path: string, json?: unknown, headers?: Record<string, string>): Promise<Reply>;
  delete(path: string): Promise<Reply>;
}

export interface Market {
  service: Service;
  origin: string;
  /** The database's URL, for another process. */
  target: string;
  /** The service's clock, which only the test moves. */
  clock: { now: Date; forward(ms: number): void };
  logs: string[];
  /** Creates a user with a key of all permissions, or the given ones. */
  createUser(input?: {
    name?: string;
    role?: Role;
    plan?: Plan;
    permissions?: Permission[];
  }): Promise<Client>;
  /** A client with this key, or without any. */
  as(key: string | null): Client;
  /** A client with a new session of the user. */
  createSession(userId: string, input?: { secondFactor?: boolean }): Promise<Client>;
  /** Writes past the service. Resolves after all caches have dropped what changed. */
  query(text: string, values?: unknown[]): Promise<pg.QueryResult>;
  /** Resolves when all nodes have received the notifications of earlier commits. For a second, requests use their caches without a proof. */
  waitForNotifications(): Promise<void>;
  /** For tests that write orders, bookings or counters directly: skips the check of the ledger at the end. */
  skipLedgerCheck(): void;
  /** Another service on the same database, closed with the market. */
  startNode(): Promise<Service>;
  close(): Promise<void>;
}

export interface MarketOptions extends Overrides {
  config?: Partial<Config>;
  transactionTimeouts?: TransactionTimeouts;
  /** Replaces the clone of the template; dropped with the market. */
  database?: TestDatabase;
}

function serverUrl(): string {
  if (SERVER_URL) return SERVER_URL;
  throw new Error("Tests need a database server: run them by `npm test`, or `node scripts/test.ts FILE`.");
}

const urlOf = (database: string) => {
  const url = new URL(serverUrl());
  url.pathname = `/${database}`;
  return url.href;
};

let serverPool: pg.Pool | undefined;

/** One connection for all databases of a worker: a new session maps the descriptors of all shared buffers again. */
async function onServer(text: string): Promise<void> {
  serverPool ??= new pg.Pool({
    connectionString: urlOf("postgres"),
    max: 1,
    idleTimeoutMillis: 0,
    allowExitOnIdle: true,
  }).on("error", () => {});
  await serverPool.query(text);
}

/** So large that only tests of the limits reach them. */
const wide = [{ requests: 1_000_000, seconds: 3_600 }];
const generousPlans: PlanConfig = {
  ...builtInPlans,
  plans: {
    free: { ...builtInPlans.plans.free, quotas: wide, concurrentRuns: 1_000 },
    pro: { ...builtInPlans.plans.pro, quotas: wide, concurrentRuns: 1_000 },
    business: { ...builtInPlans.plans.business, quotas: wide, concurrentRuns: 1_000 },
    enterprise: { ...builtInPlans.plans.enterprise, quotas: wide, concurrentRuns: 1_000 },
  },
  sessions: wide,
  guests: wide,
  failedCredentials: wide[0]!,
};

/** Storing a key verifies it. Without own settings, no provider is reachable. */
const nobody = { baseUrls: Object.fromEntries(providers.map((id) => [id, "http://127.0.0.1:1/v1"])) };

const configOf = (input: Partial<Config>): Config => ({
  environment: "test",
  host: "127.0.0.1",
  port: 0,
  dataDir: "",
  databaseUrl: null,
  databaseDirectUrl: null,
  databaseConnections: 6,
  processes: 1,
  drainSeconds: 0,
  publicUrl: null,
  roles: { api: true, worker: false },
  masterKeys: [{ id: "test", bytes: randomBytes(32) }],
  secretsDir: null,
  sessionKeys: [randomBytes(32)],
  allowedTargets: "loopback",
  mail: "dev",
  smtpUrl: null,
  mailFrom: "Stoa <stoa@localhost>",
  redisUrl: null,
  s3Url: null,
  trustProxy: null,
  stripe: null,
  captcha: null,
  github: null,
  google: null,
  planConfig: generousPlans,
  metricsToken: null,
  telemetry: null,
  sandbox: true,
  moderation: false,
  feeBasisPoints: 1_000,
  taxRates: new Map(),
  taxInclusive: false,
  payoutSchedule: "weekly",
  reEvaluationDays: 30,
  egressAddresses: [],
  webhookHeaderPrefix: "X-Service-",
  currency: "USD",
  currencies: ["USD", "EUR", "JPY", "KWD"],
  logLevel: "info",
  ...input,
});

export interface TestDatabase {
  url: string;
  drop(): Promise<void>;
}

/** A new database: empty, or a clone of the migrated template. */
export async function createDatabase(template = "template0"): Promise<TestDatabase> {
  const name = `market_${randomUUID().replaceAll("-", "")}`;
  // Copying the files takes half as long as logging their pages, which is PostgreSQL's default.
  await onServer(`create database ${name} template ${template} strategy file_copy`);
  return { url: urlOf(name), drop: () => onServer(`drop database ${name} with (force)`) };
}

export async function openMarket({
  config = {},
  database: given,
  transactionTimeouts,
  ...overrides
}: MarketOptions = {}): Promise<Market> {
  const database = given ?? (await createDatabase(TEMPLATE));
  const clock = {
    now: new Date("2026-06-15T12:00:00.000Z"),
    forward(ms: number) {
      clock.now = new Date(clock.now.getTime() + ms);
    },
  };
  const logs: string[] = [];
  const undeclared: Error[] = [];
  let mustBeProved = true;
  const dataDir = await mkdtemp(join(tmpdir(), "stoa-market-"));
  const settings = configOf({ dataDir, ...config });
  const nodes: Service[] = [];
  const catchUp = () => Promise.all(nodes.map(({ ctx }) => ctx.notifications.catchUp()));
  const startNode = async () => {
    const node = await startService(
      settings,
      { target: database.url, maxConnections: 6, ...(transactionTimeouts && { transactionTimeouts }) },
      {
        now: () => clock.now,
        log: createLog("info", { write: (line: string) => void logs.push(line) }),
        inspect: (endpoint, answer) => {
          try {
            mustMatchContract(endpoint, answer);
          } catch (error) {
            undeclared.push(error as Error);
          }
        },
        providers: nobody,
        // Tests of provider errors use a failing key repeatedly.
        breaker: { faultsToOpen: Number.POSITIVE_INFINITY },
        ...overrides,
      },
    );
    nodes.push(node);
    return node;
  };
  const { origin } = await startNode();
  const as = (key: string | null, userId = "") => clientOf(origin, key, userId);

  const market: Market = {
    service: nodes[0]!,
    origin,
    target: database.url,
    clock,
    logs,
    as,
    async createUser({ name = "Somebody", role, plan, permissions: granted = [...permissions] } = {}) {
      const { ctx } = market.service;
      const email = `${randomUUID()}@example.com`;
      const userId = await createUser(ctx, { email, name, ...(role && { role }), ...(plan && { plan }) });
      const { key } = await createKeyAsOperator(ctx, { userId, name: "test", permissions: granted });
      return as(key, userId);
    },
    async createSession(userId, { secondFactor = false } = {}) {
      const { ctx } = market.service;
      const user = await findUser(ctx, toId("usr", userId));
      const source = { ip: "127.0.0.1", userAgent: null, requestId: "test" };
      return as(await startSession(ctx, ctx.db, { user, via: "operator", secondFactor, source }), userId);
    },
    startNode,
    skipLedgerCheck() {
      mustBeProved = false;
    },
    async query(text, values) {
      const result = await market.service.ctx.pool.query(text, values);
      await catchUp();
      return result;
    },
    async waitForNotifications() {
      await until("notifications arrive", () => nodes.every(({ ctx }) => ctx.notifications.areCurrent()));
      await catchUp();
    },
    async close() {
      const { pool, end } = keepPool(market.service.ctx.pool, database.url);
      await Promise.all(nodes.map((node) => node.close()));
      const check = mustBeProved ? problemsIn(pool) : Promise.resolve([]);
      const problems = await check.finally(end);
      await rm(dataDir, { recursive: true });
      await database.drop();
      // Test files of this process stay loaded, and with them their markets.
      nodes.length = 0;
      Object.assign(market, { service: null });
      assert.deepEqual(undeclared.map(String), [], "every answer fits the contract");
      assert.deepEqual(problems, [], "the ledger agrees with all that money moved for");
    },
  };
  return market;
}

/**
 * Rows that exist wherever money moved or is counted. A market without any is not verified: planning the statements of the
 * verification would take a third of its CPU time.
 */
const BOOKED_ROWS = [
  "orders",
  "ledger_transactions",
  "ledger_entries",
  "subscription_payments",
  "payouts",
  "entitlements",
  "sales_cells_now",
  "receipt_counters",
  "subscription_receipt_counters",
  "discount_codes where redemptions <> 0",
  "product_stats where purchases <> 0",
];
const IS_BOOKED = `select ${BOOKED_ROWS.map((rows) => `exists (select from ${rows})`).join(" or ")} as booked`;

interface KeptPool {
  pool: pg.Pool;
  end(): Promise<void>;
}

/**
 * Prevents the service from ending its pool, for the checks after its close: a new session would read the catalog again. A
 * service that the test has closed has no pool left, so a new one replaces it.
 */
function keepPool(pool: pg.Pool, target: string): KeptPool {
  if (pool.ending) {
    const own = openPool({ target, maxConnections: 1 });
    // The database is dropped at once, perhaps before this connection has closed.
    own.on("error", () => {});
    return { pool: own, end: () => own.end() };
  }
  const end = pool.end.bind(pool) as () => Promise<void>;
  pool.end = async () => {};
  return { pool, end };
}

/** The problems that `ledger verify` finds. */
async function problemsIn(pool: pg.Pool): Promise<string[]> {
  const { rows } = await pool.query(IS_BOOKED);
  if (!rows[0].booked) return [];
  const db = openDatabase(pool);
  // Rolls sales up first, so that the sums are verified too.
  await rollUpSales({ db });
  return (await verifyLedger(db)).problems;
}

export function clientOf(origin: string, key: string | null, userId = ""): Client {
  const client: Client = {
    userId,
    key: key ?? "",
    async request(method, path, { json, ...init } = {}) {
      const headers = new Headers(init.headers);
      if (key && !headers.has("authorization")) headers.set("authorization", `Bearer ${key}`);
      if (json !== undefined) headers.set("content-type", "application/json");
      const url = path.startsWith("http") ? path : `${origin}${path.startsWith("/") ? "" : "/"}${path}`;
      const body = json === undefined ? init.body : JSON.stringify(json);
      if (typeof body === "string" || !body)
        return await requestText(url, method, headers, body, init.signal);
      const response = await fetch(url, { ...init, method, headers, redirect: "manual" });
      const isStream = response.headers.get("content-type") === "text/event-stream";
      // A stream does not end.
      if (isStream) await response.body?.cancel();
      const text = isStream ? "" : await response.text();
      return { status: response.status, headers: response.headers, text, body: jsonOrNull(text) };
    },
    get: (path, headers = {}) => client.request("GET", path, { headers }),
    post: (path, json, headers = {}) => client.request("POST", path, { json, headers }),
    patch: (path, json, headers = {}) => client.request("PATCH", path, { json, headers }),
    put: (path, json, headers = {}) => client.request("PUT", path, { json, headers }),
    delete: (path) => client.request("DELETE", path),
  };
  return client;
}

/** As fetch. A short request and its answer take about a quarter less CPU time, that of the service included. */
async function requestText(
  url: string,
  method: string,
  headers: Headers,
  body: string | null | undefined,
  signal: AbortSignal | null | undefined,
): Promise<Reply> {
  const response = await request(url, {
    method: method as Dispatcher.HttpMethod,
    headers: { accept: "*/*", ...Object.fromEntries(headers) },
    body: body ?? null,
    signal: signal ?? null,
  });
  const replyHeaders = new Headers();
  for (const [name, value] of Object.entries(response.headers))
    for (const one of Array.isArray(value) ? value : [value ?? ""]) replyHeaders.append(name, one);
  // A stream does not end.
  const isStream = replyHeaders.get("content-type") === "text/event-stream";
  if (isStream) response.body.on("error", () => {}).destroy();
  const text = isStream ? "" : await response.body.text();
  return { status: response.statusCode, headers: replyHeaders, text, body: jsonOrNull(text) };
}

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Asserts the error's envelope and returns its details. */
export function assertError(reply: Reply, status: number, code: ErrorCode, field?: string) {
  assert.equal(`${reply.status} ${reply.body?.error?.code}`, `${status} ${code}`, reply.text);
  assert.ok(reply.body.error.message.length > 0);
  assert.ok(reply.headers.get("x-request-id"));
  // OpenAI's format has no envelope; `inspect` knows its endpoints.
  if (!("param" in reply.body.error)) {
    assert.equal(reply.body.success, false);
    assert.ok(reply.body.meta.request_id);
  }
  if (field !== undefined) assert.equal(reply.body.error.details?.field, field, reply.text);
  return reply.body.error.details;
}
