import { setTimeout as sleep } from "node:timers/promises";
import { type DiagLogger, DiagLogLevel, diag } from "@opentelemetry/api";
import type { Logger } from "pino";
import type { Config } from "../config/config.ts";

export interface Telemetry {
  /** Sends what is still queued, for as long as a shutdown can wait. */
  stop(): Promise<void>;
}

/** The longest wait for a collector when the process ends. */
const LAST_FLUSH_MS = 2_000;
/** An unavailable collector fails every few seconds: one log line a minute is enough. */
const WARN_EVERY_MS = 60_000;

/**
 * Starts OpenTelemetry's SDK for the whole process, where the settings name somebody to send to; else nothing is loaded. It
 * reads the OTEL_* variables by itself, and sends in the background: what nobody takes is dropped. Its calls go to whom the
 * operator named, without the guarded fetch of `integrations/egress/`.
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
  // In the place of the printer that OTEL_LOG_LEVEL put there.
  diag.setLogger(createDiagLogger(log), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  sdk.start();
  return {
    stop: () =>
      Promise.race([sdk.shutdown().catch(() => {}), sleep(LAST_FLUSH_MS, undefined, { ref: false })]),
  };
}

/** Logs, at most once a minute, why telemetry cannot be sent. */
function createDiagLogger(log: Logger): DiagLogger {
  let untold = 0;
  let nextAt = Number.NEGATIVE_INFINITY;
  const tell = (said: string) => {
    if (performance.now() < nextAt) {
      untold++;
      return;
    }
    log.warn({ reason: parseReason(said), untold }, "telemetry was not sent, or not as it should be");
    untold = 0;
    nextAt = performance.now() + WARN_EVERY_MS;
  };
  const ignore = () => {};
  return { error: tell, warn: tell, info: ignore, debug: ignore, verbose: ignore };
}

/** The SDK logs an error as JSON with everything in it, and a refused header with its value in parentheses: neither may reach the log. */
function parseReason(said: string): string {
  try {
    const { code, message } = JSON.parse(said);
    return String(code ?? message);
  } catch {
    return said.replace(/\(.*\)/s, "(…)");
  }
}
