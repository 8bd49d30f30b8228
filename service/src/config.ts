import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import ipaddr from "ipaddr.js";
import { isCurrency } from "./money/amount.ts";
import { parseAllowedTargets } from "./outside/allowed-targets.ts";
import { parseMailbox } from "./outside/mail.ts";
import { parseSmtpUrl } from "./outside/smtp-url.ts";
import { builtInPlans, type PlanBook, readPlanBook } from "./plans/plan-book.ts";
import type { MasterKey } from "./vault.ts";

export type Environment = "test" | "production";

/** Every setting of the service, checked. README.md has the table of the variables behind it. */
export interface Config {
  environment: Environment;
  host: string;
  port: number;
  dataDir: string;
  /** null: the embedded PostgreSQL in the data folder. */
  databaseUrl: string | null;
  /** The origin in links that leave the service; null: where it listens. */
  publicUrl: string | null;
  roles: { api: boolean; worker: boolean };
  masterKeys: MasterKey[];
  /** Sign links and sessions, each by a key made from them: the first signs, all of them verify. */
  sessionKeys: Buffer[];
  allowedTargets: string;
  /** `smtp`: sent to smtpUrl. `dev`: kept, to be read at /dev/mail. `off`: not sent at all. */
  mail: "smtp" | "dev" | "off";
  smtpUrl: string | null;
  /** What stands in From. */
  mailFrom: string;
  /** Where rate limits are counted for all nodes together; null: each process counts for itself. */
  redisUrl: string | null;
  /** Addresses and networks of the reverse proxies whose X-Forwarded-For is believed; null: nobody's. */
  trustProxy: string[] | null;
  github: SocialProvider | null;
  google: SocialProvider | null;
  /** Quotas and prices of the plans: the built-in ones with what the operator's file changes. */
  planBook: PlanBook;
  metricsToken: string | null;
  sandbox: boolean;
  /** Basis points of the price before tax that the platform keeps. */
  feeBasisPoints: number;
  currency: string;
  currencies: string[];
  logLevel: string;
}

/** Our client at an identity provider. `issuer` is its address, another one in tests. */
export interface SocialProvider {
  clientId: string;
  clientSecret: string;
  issuer: string;
}

/** All mistakes in the settings at once, a line each. */
export class ConfigError extends Error {
  constructor(problems: string[]) {
    super(`These settings need mending:\n${problems.map((problem) => `  - ${problem}`).join("\n")}`);
    this.name = "ConfigError";
  }
}

const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"];
type Variables = Record<string, string | undefined>;

/** Reads single settings and keeps what is wrong with them. */
class Reader {
  readonly problems: string[] = [];
  readonly variables: Variables;

  constructor(variables: Variables) {
    this.variables = variables;
  }

  text(name: string): string | null {
    return this.variables[name]?.trim() || null;
  }

  choice<T extends string>(name: string, allowed: readonly T[], otherwise: T): T {
    const value = this.text(name) ?? otherwise;
    if (!(allowed as readonly string[]).includes(value)) {
      this.problems.push(`${name} is "${value}"; it takes ${allowed.join(", ")}`);
    }
    return value as T;
  }

  integer(name: string, min: number, max: number, otherwise: number): number {
    const value = this.text(name);
    if (value === null) return otherwise;
    const number = /^\d+$/.test(value) ? Number(value) : Number.NaN;
    if (number >= min && number <= max) return number;
    this.problems.push(`${name} is "${value}"; it takes a whole number from ${min} to ${max}`);
    return otherwise;
  }

  url(name: string, protocols: string[]): string | null {
    const value = this.text(name);
    if (value === null) return null;
    if (!protocols.includes(URL.parse(value)?.protocol ?? "")) {
      this.problems.push(`${name} is not a URL that begins with ${protocols.join("// or ")}//`);
    }
    return value.replace(/\/+$/, "");
  }

  list<T extends string>(name: string, allowed: (item: string) => boolean, otherwise: T[]): T[] {
    const items = this.text(name)
      ?.split(",")
      .map((item) => item.trim());
    for (const item of items ?? []) if (!allowed(item)) this.problems.push(`${name}: "${item}" is not known`);
    return (items as T[] | undefined) ?? otherwise;
  }

  /** `id:base64` of 32 bytes, separated by commas. */
  keys(name: string): MasterKey[] {
    const items = this.text(name)?.split(",") ?? [];
    return items.map((item, index) => {
      const [id = "", base64 = ""] = item.trim().split(":");
      const bytes = Buffer.from(base64, "base64");
      if (!/^[A-Za-z0-9_-]{1,40}$/.test(id) || bytes.length !== 32) {
        this.problems.push(
          `${name}: entry ${index + 1} is not id:base64 of 32 bytes (openssl rand -base64 32)`,
        );
      }
      return { id, bytes };
    });
  }
}

/** Client id and secret come together or not at all. */
function socialProvider(read: Reader, prefix: "GITHUB" | "GOOGLE", issuer: string): SocialProvider | null {
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

function planBookOf(read: Reader): PlanBook {
  const file = read.text("STOA_PLANS_FILE");
  if (!file) return builtInPlans;
  const { book, problems } = readPlanBook(file);
  read.problems.push(...problems.map((problem) => `STOA_PLANS_FILE (${file}): ${problem}`));
  return book;
}

function isNetwork(text: string): boolean {
  const [address = "", bits] = text.split("/");
  return ipaddr.isValid(address) && (bits === undefined || /^\d{1,3}$/.test(bits));
}

function mailOf(read: Reader, environment: Environment) {
  const smtpUrl = read.text("SMTP_URL");
  const otherwise = smtpUrl ? "smtp" : environment === "test" ? "dev" : "unset";
  const mail = read.choice("STOA_MAIL", ["smtp", "dev", "off"], otherwise as "smtp");
  if (mail === ("unset" as string)) {
    read.problems.pop();
    read.problems.push(
      "SMTP_URL must be set in production, or STOA_MAIL=off: nobody can sign in by mail then",
    );
  }
  if (mail === "smtp" && !smtpUrl) read.problems.push("STOA_MAIL=smtp needs SMTP_URL");
  if (mail === "dev" && environment === "production")
    read.problems.push("STOA_MAIL=dev shows everybody's mail: it is for the test environment");
  if (smtpUrl) checkSmtpUrl(read, smtpUrl);
  return { mail, smtpUrl, mailFrom: mailFromOf(read, mail === "smtp" && environment === "production") };
}

function checkSmtpUrl(read: Reader, smtpUrl: string): void {
  try {
    parseSmtpUrl(smtpUrl);
  } catch (error) {
    read.problems.push(`SMTP_URL ${(error as Error).message}`);
  }
}

function mailFromOf(read: Reader, mustBeGiven: boolean): string {
  const given = read.text("STOA_MAIL_FROM");
  if (given === null && mustBeGiven)
    read.problems.push("STOA_MAIL_FROM must be set in production: an address that SMTP_URL may send from");
  if (given !== null && !parseMailbox(given))
    read.problems.push('STOA_MAIL_FROM is no address such as "Stoa <stoa@example.com>"');
  return given ?? "Stoa <stoa@localhost>";
}

interface Secrets {
  masterKeys: MasterKey[];
  sessionKeys: MasterKey[];
}

/** The secrets of a data folder: made at the first start, readable by their owner alone. */
function secretsOf(dataDir: string): Secrets {
  const file = join(dataDir, "secrets.json");
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const made = {
    masterKeys: [{ id: "1", key: randomBytes(32).toString("base64") }],
    sessionKeys: [{ id: "1", key: randomBytes(32).toString("base64") }],
  };
  try {
    writeFileSync(file, `${JSON.stringify(made, null, 2)}\n`, { flag: "wx", mode: 0o600, flush: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  const kept = JSON.parse(readFileSync(file, "utf8")) as typeof made;
  const decode = (keys: { id: string; key: string }[]) =>
    keys.map(({ id, key }) => ({ id, bytes: Buffer.from(key, "base64") }));
  return { masterKeys: decode(kept.masterKeys), sessionKeys: decode(kept.sessionKeys) };
}

/** Keys come from settings; the data folder's own stand in for them, but only beside its own database. */
function secretsFor(
  read: Reader,
  config: { environment: Environment; databaseUrl: string | null; dataDir: string },
) {
  const given = { masterKeys: read.keys("STOA_MASTER_KEYS"), sessionKeys: read.keys("STOA_SESSION_KEYS") };
  const mustBeGiven =
    config.environment === "production"
      ? "in production"
      : config.databaseUrl
        ? "beside DATABASE_URL, because every node needs the same"
        : null;
  if (mustBeGiven) {
    if (given.masterKeys.length === 0) read.problems.push(`STOA_MASTER_KEYS must be set ${mustBeGiven}`);
    if (given.sessionKeys.length === 0) read.problems.push(`STOA_SESSION_KEYS must be set ${mustBeGiven}`);
    return given;
  }
  if (read.problems.length > 0) return given;
  const kept = secretsOf(config.dataDir);
  return {
    masterKeys: given.masterKeys.length > 0 ? given.masterKeys : kept.masterKeys,
    sessionKeys: given.sessionKeys.length > 0 ? given.sessionKeys : kept.sessionKeys,
  };
}

const isLoopback = (host: string) => host === "localhost" || host === "::1" || host.startsWith("127.");

/** Turns the environment into one checked value. Throws a ConfigError that lists every mistake. */
export function readConfig(variables: Variables = process.env): Config {
  const read = new Reader(variables);
  const environment = read.choice("STOA_ENVIRONMENT", ["test", "production"], "test");
  const host = read.text("HOST") ?? "127.0.0.1";
  const dataDir = resolve(read.text("STOA_DATA_DIR") ?? "./data");
  const databaseUrl = read.url("DATABASE_URL", ["postgres:", "postgresql:"]);
  const roles = read.list("STOA_ROLES", (role) => role === "api" || role === "worker", ["api", "worker"]);
  const currency = read.text("STOA_CURRENCY") ?? "USD";
  const currencies = read.list("STOA_CURRENCIES", isCurrency, [currency]);
  if (!currencies.includes(currency))
    read.problems.push(`STOA_CURRENCY "${currency}" is not in STOA_CURRENCIES`);
  if (!isCurrency(currency)) read.problems.push(`STOA_CURRENCY "${currency}" is no ISO 4217 code`);

  const allowedTargets =
    read.text("STOA_ALLOWED_TARGETS") ?? (environment === "test" && isLoopback(host) ? "loopback" : "");
  try {
    parseAllowedTargets(allowedTargets);
  } catch (error) {
    read.problems.push(`STOA_ALLOWED_TARGETS: ${(error as Error).message}`);
  }

  const config = {
    environment,
    host,
    port: read.integer("PORT", 0, 65_535, 4000),
    dataDir,
    databaseUrl,
    publicUrl: read.url("STOA_PUBLIC_URL", ["http:", "https:"]),
    roles: { api: roles.includes("api"), worker: roles.includes("worker") },
    allowedTargets,
    ...mailOf(read, environment),
    redisUrl: read.url("REDIS_URL", ["redis:", "rediss:"]),
    trustProxy: read.text("STOA_TRUST_PROXY") ? read.list("STOA_TRUST_PROXY", isNetwork, []) : null,
    github: socialProvider(read, "GITHUB", "https://github.com"),
    google: socialProvider(read, "GOOGLE", "https://accounts.google.com"),
    planBook: planBookOf(read),
    metricsToken: read.text("STOA_METRICS_TOKEN"),
    sandbox: read.choice("STOA_SANDBOX", ["on", "off"], environment === "test" ? "on" : "off") === "on",
    feeBasisPoints: read.integer("STOA_FEES", 0, 10_000, 1_000),
    currency,
    currencies,
    logLevel: read.choice("STOA_LOG_LEVEL", LOG_LEVELS, "info"),
  };
  const secrets = secretsFor(read, config);
  if (read.problems.length > 0) throw new ConfigError(read.problems);
  return {
    ...config,
    masterKeys: secrets.masterKeys,
    sessionKeys: secrets.sessionKeys.map((key) => key.bytes),
  };
}
