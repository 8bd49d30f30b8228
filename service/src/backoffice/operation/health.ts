import { statfs } from "node:fs/promises";
import type { Health } from "@stoa/contract";
import { listOpenMoney } from "../../commerce/charges/open-money.ts";
import { findLastVerification } from "../../commerce/ledger/nightly-verification.ts";
import type { Context } from "../../core/context.ts";
import { maskSecrets } from "../../core/mask.ts";
import { firstOf } from "../../core/required.ts";
import { VERSION } from "../../core/version.ts";
import { type CheckResult, runChecks } from "../operator/doctor.ts";
import { listHealthHours, recordHealthHour } from "./health-queries.ts";
import { countStoredFiles, countUnsentEmails, measureAnswer, readSecondsBehind } from "./queries.ts";

export type HealthState = Health["state"];
type ServiceHealth = Health["services"][number];

interface ServiceDefinition {
  service: ServiceHealth["service"];
  unit: ServiceHealth["unit"];
  /** Their names in `doctor`. */
  checks: string[];
  measure(ctx: Context): Promise<number | null>;
}

const DATABASE_CHECKS = [
  "database",
  "connections",
  "processes",
  "clock",
  "locale",
  "migrations",
  "environment",
  "keyring",
];

const services: ServiceDefinition[] = [
  {
    ...{ service: "database", unit: "milliseconds", checks: DATABASE_CHECKS },
    measure: (ctx) => measureAnswer(ctx.pool),
  },
  {
    ...{ service: "jobs", unit: "waiting jobs", checks: ["jobs"] },
    measure: async (ctx) => (await ctx.jobs.readStatus()).reduce((sum, { waiting }) => sum + waiting, 0),
  },
  {
    ...{ service: "emails", unit: "waiting emails", checks: ["mail"] },
    measure: (ctx) => countUnsentEmails(ctx.db),
  },
  {
    ...{ service: "files", unit: "stored files", checks: ["files"] },
    measure: (ctx) => countStoredFiles(ctx.db),
  },
  {
    ...{ service: "disk", unit: "free bytes", checks: ["disk", "data folder"] },
    measure: async (ctx) => (await readDisk(ctx))?.free ?? null,
  },
  {
    ...{ service: "webhooks", unit: "seconds behind", checks: ["webhooks"] },
    measure: (ctx) => readSecondsBehind(ctx.pool),
  },
  {
    ...{ service: "payments", unit: "open payments", checks: ["money", "payment provider"] },
    measure: async (ctx) =>
      (await listOpenMoney(ctx.db, ctx.now())).reduce((sum, { count }) => sum + count, 0),
  },
  {
    ...{ service: "ledger", unit: "problems", checks: ["books"] },
    measure: async (ctx) => (await findLastVerification(ctx.db))?.problems ?? null,
  },
];

const running = new WeakMap<Context["pool"], Promise<Health>>();

/** The checks open connections and call other services, so that parallel requests share one run. */
export function readHealth(ctx: Context): Promise<Health> {
  const already = running.get(ctx.pool);
  if (already) return already;
  const health = checkHealth(ctx).finally(() => running.delete(ctx.pool));
  running.set(ctx.pool, health);
  return health;
}

const [HOUR_MS, SHOWN_HOURS] = [3_600_000, 24];

/** A scheduled job: adds the present state to that of the hour. */
export async function recordHealth(ctx: Context): Promise<void> {
  const { services } = await readHealth(ctx);
  const hour = hourOf(ctx.now());
  const rows = services.map(({ service, state }) => ({ service, state, hour }));
  await recordHealthHour(ctx.db, rows, new Date(hour.getTime() - 2 * SHOWN_HOURS * HOUR_MS));
}

const hourOf = (time: Date) => new Date(Math.floor(time.getTime() / HOUR_MS) * HOUR_MS);

async function checkHealth(ctx: Context): Promise<Health> {
  const results = await runChecks({ ...ctx.connection, config: ctx.config }, ctx.now());
  const checks = results.map((result) => ({
    check: result.check,
    state: stateOf(result),
    note: maskSecrets(result.note),
  }));
  const last = hourOf(ctx.now()).getTime();
  const hours = Array.from(
    { length: SHOWN_HOURS },
    (_, at) => new Date(last - (SHOWN_HOURS - 1 - at) * HOUR_MS),
  );
  const recorded = await readRecordedHours(ctx, firstOf(hours));
  const withHours = ({ service, state, ...rest }: Omit<ServiceHealth, "hours">): ServiceHealth => ({
    ...{ service, state, ...rest },
    hours: hours.map((hour) => {
      const known = recorded.get(`${service} ${hour.getTime()}`);
      const states = [...(known ? [known] : []), ...(hour.getTime() === last ? [state] : [])];
      return { startsAt: hour.toISOString(), state: states.length > 0 ? worstOf(states) : null };
    }),
  });
  const found = await Promise.all(services.map((service) => checkService(ctx, service, checks)));
  return {
    state: worstOf(checks.map(({ state }) => state)),
    version: VERSION,
    environment: ctx.config.environment,
    checkedAt: ctx.now().toISOString(),
    services: found.map(withHours),
    checks,
  };
}

/** A database that does not answer is in the checks, and has no hours. */
async function readRecordedHours(ctx: Context, since: Date): Promise<Map<string, HealthState>> {
  const rows = await listHealthHours(ctx.db, since).catch(() => []);
  return new Map(rows.map(({ service, hour, state }) => [`${service} ${hour.getTime()}`, state]));
}

async function checkService(
  ctx: Context,
  { service, unit, checks: names, measure }: ServiceDefinition,
  checks: Health["checks"],
): Promise<Omit<ServiceHealth, "hours">> {
  const states = checks.filter(({ check }) => names.includes(check)).map(({ state }) => state);
  // A database that does not answer is in its checks.
  const value = await measure(ctx).catch(() => null);
  return { service, unit, checks: names, state: worstOf(states), value };
}

function stateOf({ ok, warning }: CheckResult): HealthState {
  if (!ok) return "failed";
  return warning ? "warning" : "ok";
}

function worstOf(states: HealthState[]): HealthState {
  if (states.includes("failed")) return "failed";
  return states.includes("warning") ? "warning" : "ok";
}

/** The disk of the data folder. null: it cannot be read. */
export async function readDisk({ config }: Context): Promise<{ free: number; total: number } | null> {
  const found = await statfs(config.dataDir).catch(() => null);
  return found && { free: found.bavail * found.bsize, total: found.blocks * found.bsize };
}
