import type { SettingsReader } from "./settings-reader.ts";

export interface TelemetrySettings {
  /** null: the operator has set the service's name. */
  serviceName: string | null;
  /** An origin, or the name of another exporter. */
  traces: string;
  metrics: string;
}

const ENABLING_VARIABLES = [
  "OTEL_EXPORTER_OTLP_ENDPOINT",
  "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
  "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
  "OTEL_TRACES_EXPORTER",
  "OTEL_METRICS_EXPORTER",
];
const URLS = ["http:", "https:"];
const PROTOCOLS = ["http/protobuf", "http/json", "grpc"] as const;

/** null: telemetry is off. Platforms set names and attributes for every process, so these variables do not enable it. */
export function readTelemetrySettings(read: SettingsReader): TelemetrySettings | null {
  const isDisabled = read.text("OTEL_SDK_DISABLED")?.toLowerCase() === "true";
  const isRequested = ENABLING_VARIABLES.some((name) => read.text(name) !== null);
  if (isDisabled || !isRequested) return null;
  const common = {
    endpoint: read.url("OTEL_EXPORTER_OTLP_ENDPOINT", URLS),
    protocol: read.choice("OTEL_EXPORTER_OTLP_PROTOCOL", PROTOCOLS, "http/protobuf"),
  };
  const [traces, metrics] = [
    readDestination(read, "TRACES", common),
    readDestination(read, "METRICS", common),
  ];
  if (traces === "none" && metrics === "none") return null;
  return { serviceName: hasServiceName(read) ? null : "stoa", traces, metrics };
}

const hasServiceName = (read: SettingsReader) =>
  read.text("OTEL_SERVICE_NAME") !== null ||
  /(^|,)\s*service\.name\s*=/.test(read.text("OTEL_RESOURCE_ATTRIBUTES") ?? "");

interface Common {
  endpoint: string | null;
  protocol: (typeof PROTOCOLS)[number];
}

/** Only the origin: the rest of the URL may contain a secret. */
function readDestination(read: SettingsReader, signal: "TRACES" | "METRICS", common: Common): string {
  // Prometheus has /metrics; the exporter's own port would be open to all.
  const exporter = read.choice(`OTEL_${signal}_EXPORTER`, ["otlp", "console", "none"], "otlp");
  const endpoint = read.url(`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`, URLS) ?? common.endpoint;
  const protocol = read.choice(`OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`, PROTOCOLS, common.protocol);
  if (exporter !== "otlp") return exporter;
  const defaultEndpoint = `http://localhost:${protocol === "grpc" ? 4317 : 4318}`;
  return URL.parse(endpoint ?? defaultEndpoint)?.origin ?? "";
}
