import type { SettingsReader } from "./settings-reader.ts";

/** What is known here of settings that OpenTelemetry's SDK reads by itself. */
export interface TelemetrySettings {
  /** null: the operator has set the service's name. */
  serviceName: string | null;
  /** The destination of each signal, for people: an origin, or the name of another exporter. */
  traces: string;
  metrics: string;
}

/** Any of these variables names a destination. */
const ENABLING_VARIABLES = [
  "OTEL_EXPORTER_OTLP_ENDPOINT",
  "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
  "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
  "OTEL_TRACES_EXPORTER",
  "OTEL_METRICS_EXPORTER",
];
const URLS = ["http:", "https:"];
const PROTOCOLS = ["http/protobuf", "http/json", "grpc"] as const;

/** null: telemetry is off. Platforms give every process a name and attributes: these alone turn nothing on. */
export function readTelemetrySettings(read: SettingsReader): TelemetrySettings | null {
  const isDisabled = read.text("OTEL_SDK_DISABLED")?.toLowerCase() === "true";
  const isWished = ENABLING_VARIABLES.some((name) => read.text(name) !== null);
  if (isDisabled || !isWished) return null;
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

/** Only the origin of an address: the rest may contain a secret. */
function readDestination(read: SettingsReader, signal: "TRACES" | "METRICS", common: Common): string {
  // Prometheus has /metrics; the exporter's own port would be open to all.
  const exporter = read.choice(`OTEL_${signal}_EXPORTER`, ["otlp", "console", "none"], "otlp");
  const endpoint = read.url(`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`, URLS) ?? common.endpoint;
  const protocol = read.choice(`OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`, PROTOCOLS, common.protocol);
  if (exporter !== "otlp") return exporter;
  const usual = `http://localhost:${protocol === "grpc" ? 4317 : 4318}`;
  return URL.parse(endpoint ?? usual)?.origin ?? "";
}
