import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import ipaddr from "ipaddr.js";
import { isLoopbackHost, isLoopbackOrigin } from "../loopback.ts";
import { isCurrency } from "../money/amount.ts";
import type { MasterKey } from "../vault.ts";
import { parseAllowedTargets } from "./allowed-targets.ts";
import { readEmailSettings } from "./email.ts";
import { builtInPlans, type PlanConfig, readPlanConfig } from "./plan-config.ts";
import { parseS3Url } from "./s3-url.ts";
import { readSecrets } from "./secrets.ts";
import { listSettings, type SettingReport } from "./setting-list.ts";
import { type EnvironmentVariables, SettingsReader } from "./settings-reader.ts";
import { readTaxSettings } from "./taxes.ts";
import { readTelemetrySettings, type TelemetrySettings } from "./telemetry.ts";

export type Environment = "test" | "production";

/**
 * All settings; README.md documents the environment variables. No other code reads the environment, except OpenTelemetry's SDK (OTEL_*).
 */
export interface Config {
  environment: Environment;
  host: string;
  port: number;
  dataDir: string;
  /** null: the embedded PostgreSQL in the data folder. */
  databaseUrl: string | null;
  /** Bypasses a connection pooler for LISTEN, long locks, migrations and backups. */
  databaseDirectUrl: string | null;
  /** Of each process; with the embedded PostgreSQL and several processes, at most the share of one. */
  databaseConnections: number;
  /** How many processes answer requests; with more than one, a supervisor starts them and one for background work. */
  processes: number;
  /** How long `/readyz` returns 503 after SIGTERM before the listener closes. */
  drainSeconds: number;
  /** The origin in links; null: the listening address. */
  publicUrl: string | null;
  roles: { api: boolean; worker: boolean };
  masterKeys: MasterKey[];
  /** The data folder of the master keys; null: STOA_MASTER_KEYS. */
  secretsDir: string | null;
  /** Keys for links and sessions derive from these: the first signs, all of them verify. */
  sessionKeys: Buffer[];
  allowedTargets: string;
  /** `smtp`: sent to smtpUrl. `dev`: stored and shown at /dev/mail. `off`: not sent. */
  mail: "smtp" | "dev" | "off";
  smtpUrl: string | null;
  mailFrom: string;
  /** Counts rate limits for all nodes; null: each node counts for itself. */
  redisUrl: string | null;
  /** null: the folder `files` in the data folder, for a single node. */
  s3Url: string | null;
  /** Reverse proxies whose X-Forwarded-For is trusted. */
  trustProxy: string[] | null;
  /** null: the test provider in a test environment, none in production. */
  stripe: StripeSettings | null;
  /** null: guests need no captcha. */
  captcha: CaptchaSettings | null;
  github: SocialProvider | null;
  google: SocialProvider | null;
  planConfig: PlanConfig;
  metricsToken: string | null;
  telemetry: TelemetrySettings | null;
  sandbox: boolean;
  /** Whether moderators review products of unverified sellers before publication. */
  moderation: boolean;
  /** In basis points of the price before tax. */
  feeBasisPoints: number;
  /** Basis points by the buyer's country; empty: no tax. */
  taxRates: ReadonlyMap<string, number>;
  taxInclusive: boolean;
  /** null: payouts only on request. */
  payoutSchedule: PayoutSchedule | null;
  /** After this many days, evaluations are repeated where the seller allows it; null: never. */
  reEvaluationDays: number | null;
  egressAddresses: string[];
  webhookHeaderPrefix: string;
  currency: string;
  currencies: string[];
  logLevel: string;
}

export type PayoutSchedule = "daily" | "weekly" | "monthly";

/** `apiUrl`: another address, in tests. */
export interface StripeSettings {
  secretKey: string;
  webhookSecret: string;
  apiUrl: string | null;
}

/** `issuer`: the provider's address; another one in tests. */
export interface CaptchaSettings {
  provider: "turnstile" | "hcaptcha";
  /** Public: pages show the widget with it. */
  siteKey: string;
  secret: string;
  verifyUrl: string;
}

export interface SocialProvider {
  clientId: string;
  clientSecret: string;
  issuer: string;
}

export class ConfigError extends Error {
  constructor(problems: string[]) {
    super(`Invalid configuration:\n${problems.map((problem) => `  - ${problem}`).join("\n")}`);
    this.name = "ConfigError";
  }
}

const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"];

const CAPTCHA_URLS = {
  turnstile: "https://challenges.cloudflare.com/turnstile/v0/siteverify",
  hcaptcha: "https://api.hcaptcha.com/siteverify",
} as const;

function readCaptchaSettings(read: SettingsReader): CaptchaSettings | null {
  const provider = read.choice("STOA_CAPTCHA", ["none", "turnstile", "hcaptcha"], "none");
  const siteKey = read.text("STOA_CAPTCHA_SITE_KEY");
  const secret = read.text("STOA_CAPTCHA_SECRET");
  const verifyUrl = read.url("STOA_CAPTCHA_VERIFY_URL", ["http:", "https:"]);
  if (provider === "none") {
    if (siteKey || secret)
      read.problems.push(
        "STOA_CAPTCHA must be turnstile or hcaptcha where STOA_CAPTCHA_SITE_KEY or STOA_CAPTCHA_SECRET is set",
      );
    return null;
  }
  if (!siteKey || !secret)
    read.problems.push("STOA_CAPTCHA needs STOA_CAPTCHA_SITE_KEY and STOA_CAPTCHA_SECRET");
  return {
    ...{ provider, siteKey: siteKey ?? "", secret: secret ?? "" },
    verifyUrl: verifyUrl ?? CAPTCHA_URLS[provider],
  };
}

function readSocialProvider(
  read: SettingsReader,
  prefix: "GITHUB" | "GOOGLE",
  issuer: string,
): SocialProvider | null {
  const clientId = read.text(`${prefix}_CLIENT_ID`);
  const clientSecret = read.text(`${prefix}_CLIENT_SECRET`);
  if (!clientId && !clientSecret) return null;
  if (!clientId || !clientSecret)
    read.problems.push(`${prefix}_CLIENT_ID and ${prefix}_CLIENT_SECRET must be set together`);
  return {
    clientId: clientId ?? "",
    clientSecret: clientSecret ?? "",
    issuer: read.url(`${prefix}_ISSUER`, ["http:", "https:"]) ?? issuer,
  };
}

/** Stripe's secret and restricted keys: only live ones move money. */
const STRIPE_KEYS: Record<Environment, RegExp> = { test: /^[sr]k_test_/, production: /^[sr]k_live_/ };

/** A test service must not charge anyone, and a production service must not give products away. */
function checkStripeKeyMode(read: SettingsReader, environment: Environment, secretKey: string | null): void {
  if (!secretKey || STRIPE_KEYS[environment].test(secretKey)) return;
  const [right, other] = environment === "production" ? ["live", "test"] : ["test", "live"];
  read.problems.push(
    `STRIPE_SECRET_KEY must begin with sk_${right}_ or rk_${right}_ where STOA_ENVIRONMENT is ${environment}: keys of Stripe's ${other} mode, and publishable ones, are refused`,
  );
}

/** A key without the webhook secret could charge, but would miss late results. */
function readStripeSettings(read: SettingsReader, environment: Environment): StripeSettings | null {
  const secretKey = read.text("STRIPE_SECRET_KEY");
  checkStripeKeyMode(read, environment, secretKey);
  const webhookSecret = read.text("STRIPE_WEBHOOK_SECRET");
  if (!secretKey && !webhookSecret) return null;
  if (!secretKey || !webhookSecret)
    read.problems.push("STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET must be set together");
  return {
    secretKey: secretKey ?? "",
    webhookSecret: webhookSecret ?? "",
    apiUrl: read.url("STRIPE_API_URL", ["http:", "https:"]),
  };
}

function readPlans(read: SettingsReader): PlanConfig {
  const file = read.text("STOA_PLANS_FILE");
  if (!file) return builtInPlans;
  const { planConfig, problems } = readPlanConfig(file);
  read.problems.push(...problems.map((problem) => `STOA_PLANS_FILE (${file}): ${problem}`));
  return planConfig;
}

const isNetwork = (text: string) => ipaddr.isValid(text) || ipaddr.isValidCIDR(text);

function readCurrencies(read: SettingsReader) {
  const currency = read.text("STOA_CURRENCY") ?? "USD";
  const currencies = read.list("STOA_CURRENCIES", isCurrency, [currency]);
  if (!currencies.includes(currency))
    read.problems.push(`STOA_CURRENCY "${currency}" is not in STOA_CURRENCIES`);
  if (!isCurrency(currency)) read.problems.push(`STOA_CURRENCY "${currency}" is not an ISO 4217 code`);
  return { currency, currencies };
}

function readAllowedTargets(read: SettingsReader, otherwise: string): string {
  const targets = read.text("STOA_ALLOWED_TARGETS") ?? otherwise;
  try {
    parseAllowedTargets(targets);
  } catch (error) {
    read.problems.push(`STOA_ALLOWED_TARGETS: ${(error as Error).message}`);
  }
  return targets;
}

function readPayoutSchedule(read: SettingsReader): PayoutSchedule | null {
  const schedule = read.choice("STOA_PAYOUT_SCHEDULE", ["off", "daily", "weekly", "monthly"], "weekly");
  return schedule === "off" ? null : schedule;
}

function readHeaderPrefix(read: SettingsReader): string {
  const prefix = read.text("STOA_WEBHOOK_HEADER_PREFIX") ?? "X-Service-";
  if (!/^[A-Za-z][A-Za-z0-9-]{0,38}-$/.test(prefix) || /^webhook-$/i.test(prefix))
    read.problems.push(
      `STOA_WEBHOOK_HEADER_PREFIX is "${prefix}"; it takes letters, digits and hyphens that end with a hyphen, such as X-Acme-`,
    );
  return prefix;
}

function readS3Url(read: SettingsReader): string | null {
  const s3Url = read.text("S3_URL");
  try {
    if (s3Url) parseS3Url(s3Url);
  } catch (error) {
    read.problems.push(`S3_URL ${(error as Error).message}`);
  }
  return s3Url;
}

const isLoopback = (host: string) => isLoopbackHost(host === "::1" ? "[::1]" : host);

/** Over plain HTTP, browsers drop the session cookie, and passwords can be read in transit. */
function readPublicUrl(read: SettingsReader, environment: Environment, host: string): string | null {
  const origin = read.origin("STOA_PUBLIC_URL");
  if (environment === "test") return origin;
  if (origin?.startsWith("http:") && !isLoopbackOrigin(origin))
    read.problems.push(
      `STOA_PUBLIC_URL is "${origin}"; in production it must begin with https://, since browsers do not keep a sign-in over plain HTTP. Put a TLS proxy in front`,
    );
  if (origin === null && !isLoopback(host))
    read.problems.push(
      `STOA_PUBLIC_URL must be set in production when HOST is "${host}": the https:// address that browsers use`,
    );
  return origin;
}

const readDataDir = (read: SettingsReader) => resolve(read.text("STOA_DATA_DIR") ?? "./data");

export function readDatabaseLocation(variables: EnvironmentVariables = process.env) {
  const read = new SettingsReader(variables);
  return { dataDir: readDataDir(read), databaseUrl: read.text("DATABASE_URL") };
}

function readDatabaseUrls(read: SettingsReader) {
  const databaseUrl = read.databaseUrl("DATABASE_URL");
  const databaseDirectUrl = read.databaseUrl("DATABASE_DIRECT_URL");
  if (databaseDirectUrl && !databaseUrl)
    read.problems.push(
      "DATABASE_DIRECT_URL needs DATABASE_URL: it is the same database without the connection pooler",
    );
  return { databaseUrl, databaseDirectUrl };
}

function readRoles(read: SettingsReader) {
  const roles = read.list("STOA_ROLES", (role) => role === "api" || role === "worker", ["api", "worker"]);
  return { api: roles.includes("api"), worker: roles.includes("worker") };
}

/**
 * Of the 100 connections that the embedded PostgreSQL accepts: the rest is for commands, such as a backup.
 */
const EMBEDDED_CONNECTIONS = 85;
/** A process listens, holds its session lock, and checks or locks on one more. */
const CONNECTIONS_BESIDE_POOL = 3;
/** The worker, and the next process during a rolling restart. */
const PROCESSES_BESIDE_API = 2;
const MIN_POOL = 2;
const MAX_PROCESSES = 64;
const MAX_EMBEDDED_PROCESSES =
  Math.floor(EMBEDDED_CONNECTIONS / (CONNECTIONS_BESIDE_POOL + MIN_POOL)) - PROCESSES_BESIDE_API;

/** `auto` is the number of available cores, as far as it is allowed. */
function readProcesses(read: SettingsReader, isEmbedded: boolean, answersRequests: boolean): number {
  const max = isEmbedded ? MAX_EMBEDDED_PROCESSES : MAX_PROCESSES;
  const value = read.text("STOA_PROCESSES") ?? "1";
  if (value === "auto") return answersRequests ? Math.min(availableParallelism(), max) : 1;
  const count = /^\d+$/.test(value) ? Number(value) : Number.NaN;
  if (!(count >= 1 && count <= max)) {
    const where = isEmbedded
      ? ` with the embedded PostgreSQL (${MAX_PROCESSES} with DATABASE_URL, which accepts more connections)`
      : "";
    read.problems.push(
      `STOA_PROCESSES is "${value}"; it takes a whole number from 1 to ${max}${where}, or auto for the number of cores`,
    );
    return 1;
  }
  if (count > 1 && !answersRequests)
    read.problems.push(
      `STOA_PROCESSES is "${value}", but STOA_ROLES has no api: only processes that answer requests are multiplied. Start further workers as services of their own`,
    );
  return count;
}

function readConnections(read: SettingsReader, isEmbedded: boolean, processes: number): number {
  const wanted = read.integer("STOA_DATABASE_CONNECTIONS", MIN_POOL, 1_000, 8);
  if (!isEmbedded || processes === 1) return wanted;
  const share = Math.floor(EMBEDDED_CONNECTIONS / (processes + PROCESSES_BESIDE_API));
  return Math.min(wanted, share - CONNECTIONS_BESIDE_POOL);
}

/** The most that the processes of a node open, during a rolling restart, too. */
export function countConnections({ processes, roles, databaseConnections }: Config): number {
  const running = processes === 1 ? 1 : processes + (roles.worker ? PROCESSES_BESIDE_API : 1);
  return running * (databaseConnections + CONNECTIONS_BESIDE_POOL);
}

const isIpv4 = (address: string) => ipaddr.IPv4.isValidFourPartDecimal(address);

/** Throws a ConfigError that lists every mistake. */
export function readConfig(variables: EnvironmentVariables = process.env): Config {
  const read = new SettingsReader(variables);
  const environment = read.choice("STOA_ENVIRONMENT", ["test", "production"], "test");
  const host = read.text("HOST") ?? "127.0.0.1";
  const location = { dataDir: readDataDir(read), ...readDatabaseUrls(read) };
  const roles = readRoles(read);
  const isEmbedded = location.databaseUrl === null;
  const processes = readProcesses(read, isEmbedded, roles.api);
  const config = {
    environment,
    host,
    port: read.integer("PORT", 0, 65_535, 4000),
    ...location,
    databaseConnections: readConnections(read, isEmbedded, processes),
    processes,
    drainSeconds: read.integer("STOA_DRAIN_SECONDS", 0, 300, 0),
    publicUrl: readPublicUrl(read, environment, host),
    roles,
    allowedTargets: readAllowedTargets(read, environment === "test" && isLoopback(host) ? "loopback" : ""),
    ...readEmailSettings(read, environment),
    redisUrl: read.url("REDIS_URL", ["redis:", "rediss:"]),
    s3Url: readS3Url(read),
    trustProxy: read.text("STOA_TRUST_PROXY") ? read.list("STOA_TRUST_PROXY", isNetwork, []) : null,
    stripe: readStripeSettings(read, environment),
    captcha: readCaptchaSettings(read),
    github: readSocialProvider(read, "GITHUB", "https://github.com"),
    google: readSocialProvider(read, "GOOGLE", "https://accounts.google.com"),
    planConfig: readPlans(read),
    metricsToken: read.text("STOA_METRICS_TOKEN"),
    telemetry: readTelemetrySettings(read),
    sandbox: read.choice("STOA_SANDBOX", ["on", "off"], environment === "test" ? "on" : "off") === "on",
    moderation: read.choice("STOA_MODERATION", ["on", "off"], environment === "test" ? "off" : "on") === "on",
    feeBasisPoints: read.integer("STOA_FEES", 0, 10_000, 1_000),
    ...readTaxSettings(read),
    payoutSchedule: readPayoutSchedule(read),
    reEvaluationDays: read.integer("STOA_REEVALUATION_DAYS", 0, 365, 30) || null,
    egressAddresses: read.list("STOA_EGRESS_ADDRESSES", isIpv4, []),
    webhookHeaderPrefix: readHeaderPrefix(read),
    ...readCurrencies(read),
    logLevel: read.choice("STOA_LOG_LEVEL", LOG_LEVELS, "info"),
  };
  const { masterKeys, secretsDir, sessionKeys } = readSecrets(read, config);
  if (read.problems.length > 0) throw new ConfigError(read.problems);
  return { ...config, masterKeys, secretsDir, sessionKeys: sessionKeys.map(({ bytes }) => bytes) };
}

/** Long enough that guessing it costs more than the keys are worth. */
const MIN_PASSPHRASE_LENGTH = 12;

/** The passphrase that wraps the keys in a backup. Only commands read it, so it is not in Config. */
export function readPassphrase(variables: EnvironmentVariables = process.env): string | null {
  const read = new SettingsReader(variables);
  const passphrase = read.text("STOA_BACKUP_PASSPHRASE");
  if (passphrase !== null && passphrase.length < MIN_PASSPHRASE_LENGTH)
    throw new ConfigError([`STOA_BACKUP_PASSPHRASE has fewer than ${MIN_PASSPHRASE_LENGTH} characters`]);
  return passphrase;
}

/** For administrators: secrets are masked. */
export const describeConfig = (
  config: Config,
  variables: EnvironmentVariables = process.env,
): SettingReport[] => listSettings(config, variables);
