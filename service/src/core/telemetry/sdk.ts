import { setTimeout as sleep } from "node:timers/promises";
import { type DiagLogger, DiagLogLevel, diag } from "@opentelemetry/api";
import type { Logger } from "pino";
import type { Config } from "../config/config.ts";

export interface Telemetry {
  /** Sends what is queued, within LAST_FLUSH_MS. */
  stop(): Promise<void>;
}

const LAST_FLUSH_MS = 2_000;
/** An unavailable collector fails every few seconds: one log line a minute is enough. */
const WARN_EVERY_MS = 60_000;

/**
 * Loads the SDK only if a destination is configured. The SDK reads OTEL_* itself and drops what it cannot send.
 * It bypasses the guarded fetch of `integrations/egress/`, because the operator chose the destination.
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 */
export async function startTelemetry(
  { telemetry }: Pick<Config, "telemetry">,
  log: Logger,
): Promise<Telemetry> {
  if (!telemetry) return { stop: async () => {} };
  const { NodeSDK } = await import("@opentelemetry/sdk-node");
  const { serviceName } = telemetry;
  // Our log goes to stderr only.
  const sdk = new NodeSDK({ ...(serviceName && { serviceName }), logRecordProcessors: [] });
  // Replaces the logger that OTEL_LOG_LEVEL installed.
  diag.setLogger(createDiagLogger(log), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  sdk.start();
  return {
    stop: () =>
      Promise.race([sdk.shutdown().catch(() => {}), sleep(LAST_FLUSH_MS, undefined, { ref: false })]),
  };
}

function createDiagLogger(log: Logger): DiagLogger {
  let suppressed = 0;
  let nextAt = Number.NEGATIVE_INFINITY;
  const warn = (text: string) => {
    if (performance.now() < nextAt) {
      suppressed++;
      return;
    }
    log.warn({ reason: parseReason(text), suppressed }, "telemetry was not sent, or not as it should be");
    suppressed = 0;
    nextAt = performance.now() + WARN_EVERY_MS;
  };
  const ignore = () => {};
  return { error: warn, warn, info: ignore, debug: ignore, verbose: ignore };
}

/** The SDK logs an error as JSON with all its fields, and a refused header with its value in parentheses: neither may reach the log. */
function parseReason(text: string): string {
  try {
    const { code, message } = JSON.parse(text);
    return String(code ?? message);
  } catch {
    return text.replace(/\(.*\)/s, "(…)");
  }
}
