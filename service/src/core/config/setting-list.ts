import { MASK, maskUrl } from "../mask.ts";
import type { Config } from "./config.ts";
import type { EnvironmentVariables } from "./settings-reader.ts";

/** A setting as the service understands it. `value` never contains a secret. */
export interface SettingReport {
  name: string;
  /** null: not set. */
  value: string | null;
  source: "environment" | "file" | "default";
  isSecret: boolean;
}

interface SettingDefinition {
  name: string;
  isSecret?: true;
  /** The value in effect. */
  show(config: Config, variables: EnvironmentVariables): string | null;
  /** Whether it comes from a file of the data folder, where the variable is not set. */
  isInFile?(config: Config): boolean;
}

const onOff = (isOn: boolean) => (isOn ? "on" : "off");
const listed = (items: readonly string[]) => (items.length > 0 ? items.join(", ") : null);
const urlOrNull = (url: string | null) => (url === null ? null : maskUrl(url));
const secret = (name: string, isSet: (config: Config) => boolean): SettingDefinition => ({
  name,
  isSecret: true,
  show: (config) => (isSet(config) ? MASK : null),
});
/** Read elsewhere: by a command, or by OpenTelemetry's SDK. */
const secretVariable = (name: string): SettingDefinition => ({
  name,
  isSecret: true,
  show: (_, variables) => (isSet(variables, name) ? MASK : null),
});
const masterKeys = ({ masterKeys: keys }: Config) => keys.map(({ id }) => `${id}:${MASK}`).join(", ");

const definitions: SettingDefinition[] = [
  { name: "STOA_ENVIRONMENT", show: ({ environment }) => environment },
  { name: "HOST", show: ({ host }) => host },
  { name: "PORT", show: ({ port }) => String(port) },
  { name: "STOA_PUBLIC_URL", show: ({ publicUrl }) => publicUrl },
  {
    name: "STOA_ROLES",
    show: ({ roles }) => listed([...(roles.api ? ["api"] : []), ...(roles.worker ? ["worker"] : [])]),
  },
  { name: "STOA_PROCESSES", show: ({ processes }) => String(processes) },
  { name: "STOA_DATA_DIR", show: ({ dataDir }) => dataDir },
  { name: "DATABASE_URL", isSecret: true, show: ({ databaseUrl }) => urlOrNull(databaseUrl) },
  {
    ...{ name: "DATABASE_DIRECT_URL", isSecret: true },
    show: ({ databaseDirectUrl }) => urlOrNull(databaseDirectUrl),
  },
  { name: "STOA_DATABASE_CONNECTIONS", show: ({ databaseConnections }) => String(databaseConnections) },
  { name: "STOA_DRAIN_SECONDS", show: ({ drainSeconds }) => String(drainSeconds) },
  {
    ...{ name: "STOA_MASTER_KEYS", isSecret: true, show: masterKeys },
    isInFile: ({ secretsDir }) => secretsDir !== null,
  },
  {
    ...{ name: "STOA_SESSION_KEYS", isSecret: true },
    show: ({ sessionKeys }) => `${sessionKeys.length} × ${MASK}`,
    isInFile: () => true,
  },
  secretVariable("STOA_BACKUP_PASSPHRASE"),
  { name: "STOA_MAIL", show: ({ mail }) => mail },
  { name: "STOA_MAIL_FROM", show: ({ mailFrom }) => mailFrom },
  { name: "SMTP_URL", isSecret: true, show: ({ smtpUrl }) => urlOrNull(smtpUrl) },
  secret("STRIPE_SECRET_KEY", ({ stripe }) => stripe !== null),
  secret("STRIPE_WEBHOOK_SECRET", ({ stripe }) => stripe !== null),
  { name: "STRIPE_API_URL", show: ({ stripe }) => urlOrNull(stripe?.apiUrl ?? null) },
  { name: "STOA_CAPTCHA", show: ({ captcha }) => captcha?.provider ?? "none" },
  { name: "STOA_CAPTCHA_SITE_KEY", show: ({ captcha }) => captcha?.siteKey ?? null },
  secret("STOA_CAPTCHA_SECRET", ({ captcha }) => captcha !== null),
  { name: "STOA_CAPTCHA_VERIFY_URL", show: ({ captcha }) => urlOrNull(captcha?.verifyUrl ?? null) },
  { name: "GITHUB_CLIENT_ID", show: ({ github }) => github?.clientId ?? null },
  secret("GITHUB_CLIENT_SECRET", ({ github }) => github !== null),
  { name: "GITHUB_ISSUER", show: ({ github }) => urlOrNull(github?.issuer ?? null) },
  { name: "GOOGLE_CLIENT_ID", show: ({ google }) => google?.clientId ?? null },
  secret("GOOGLE_CLIENT_SECRET", ({ google }) => google !== null),
  { name: "GOOGLE_ISSUER", show: ({ google }) => urlOrNull(google?.issuer ?? null) },
  { name: "REDIS_URL", isSecret: true, show: ({ redisUrl }) => urlOrNull(redisUrl) },
  { name: "S3_URL", isSecret: true, show: ({ s3Url }) => urlOrNull(s3Url) },
  { name: "STOA_PLANS_FILE", show: (_, variables) => textOf(variables, "STOA_PLANS_FILE") },
  { name: "STOA_TRUST_PROXY", show: ({ trustProxy }) => listed(trustProxy ?? []) },
  { name: "STOA_ALLOWED_TARGETS", show: ({ allowedTargets }) => allowedTargets || null },
  { name: "STOA_EGRESS_ADDRESSES", show: ({ egressAddresses }) => listed(egressAddresses) },
  { name: "STOA_WEBHOOK_HEADER_PREFIX", show: ({ webhookHeaderPrefix }) => webhookHeaderPrefix },
  { name: "STOA_SANDBOX", show: ({ sandbox }) => onOff(sandbox) },
  { name: "STOA_MODERATION", show: ({ moderation }) => onOff(moderation) },
  { name: "STOA_FEES", show: ({ feeBasisPoints }) => String(feeBasisPoints) },
  {
    name: "STOA_TAX_RATES",
    show: ({ taxRates }) => listed([...taxRates].map(([country, points]) => `${country}=${points / 100}`)),
  },
  { name: "STOA_TAX_INCLUSIVE", show: ({ taxInclusive }) => onOff(taxInclusive) },
  { name: "STOA_PAYOUT_SCHEDULE", show: ({ payoutSchedule }) => payoutSchedule ?? "off" },
  { name: "STOA_REEVALUATION_DAYS", show: ({ reEvaluationDays }) => String(reEvaluationDays ?? 0) },
  { name: "STOA_CURRENCY", show: ({ currency }) => currency },
  { name: "STOA_CURRENCIES", show: ({ currencies }) => listed(currencies) },
  secret("STOA_METRICS_TOKEN", ({ metricsToken }) => metricsToken !== null),
  // The origins that the service sends to, since the rest of these addresses may contain a secret.
  { name: "OTEL_EXPORTER_OTLP_ENDPOINT", show: ({ telemetry }) => telemetry?.traces ?? null },
  { name: "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", show: ({ telemetry }) => telemetry?.metrics ?? null },
  secretVariable("OTEL_EXPORTER_OTLP_HEADERS"),
  { name: "STOA_LOG_LEVEL", show: ({ logLevel }) => logLevel },
];

const textOf = (variables: EnvironmentVariables, name: string) => variables[name]?.trim() || null;
const isSet = (variables: EnvironmentVariables, name: string) => textOf(variables, name) !== null;

export const listSettings = (config: Config, variables: EnvironmentVariables): SettingReport[] =>
  definitions.map(({ name, isSecret = false, show, isInFile }) => ({
    ...{ name, isSecret, value: show(config, variables) },
    source: sourceOf(isSet(variables, name), isInFile?.(config) ?? false),
  }));

function sourceOf(isInEnvironment: boolean, isInFile: boolean): SettingReport["source"] {
  if (isInEnvironment) return "environment";
  return isInFile ? "file" : "default";
}
