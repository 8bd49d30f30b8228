import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { SettingsReader } from "../src/core/config/settings-reader.ts";
import { readTelemetrySettings } from "../src/core/config/telemetry.ts";
import { createLog } from "../src/core/log.ts";
import { startTelemetry } from "../src/core/telemetry/sdk.ts";

/** Values of OTLP. */
export const KIND = { internal: 1, server: 2, client: 3 };
const ERROR = 2;

export interface SentSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  name: string;
  kind: number;
  isError: boolean;
  attributes: Record<string, unknown>;
  links: { traceId: string; spanId: string }[];
}

export interface SentPoint {
  attributes: Record<string, unknown>;
  /** The sum of a histogram. */
  value: number;
  count: number | undefined;
  bounds: number[] | undefined;
}

export interface SentMetric {
  name: string;
  unit: string;
  points: SentPoint[];
}

/** `hang` never answers. */
type Behaviour = "take" | "refuse" | "hang";

/** An OpenTelemetry collector on a loopback port, for traces and metrics over HTTP in JSON or protobuf. */
export interface Collector {
  url: string;
  /** All request bodies, unchanged. */
  bodies: Buffer[];
  behaviour: Behaviour;
  /** The number of requests without an answer. */
  hanging(): number;
  /** All spans that arrived as JSON. */
  spans(): SentSpan[];
  /** The last value of a metric, from JSON. */
  metric(name: string): SentMetric | undefined;
  close(): Promise<void>;
}

export async function startCollector(): Promise<Collector> {
  const received: { path: string; json: unknown }[] = [];
  let hanging = 0;
  const server = createServer(async (request, response) => {
    const body = await bytesOf(request);
    collector.bodies.push(body);
    if (request.headers["content-type"] === "application/json")
      received.push({ path: request.url!, json: JSON.parse(body.toString()) });
    hanging++;
    response.on("close", () => hanging--);
    answer(collector.behaviour, response);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const at = <T>(path: string) => received.filter((one) => one.path === path).map(({ json }) => json as T);
  const collector: Collector = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bodies: [],
    behaviour: "take",
    hanging: () => hanging,
    spans: () => at<Traces>("/v1/traces").flatMap(spansIn),
    metric: (name) =>
      at<Metrics>("/v1/metrics")
        .flatMap(metricsIn)
        .findLast((one) => one.name === name),
    async close() {
      server.closeAllConnections();
      await once(server.close(), "close");
    },
  };
  return collector;
}

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function answer(behaviour: Behaviour, response: ServerResponse): void {
  if (behaviour === "hang") return;
  response.writeHead(behaviour === "take" ? 200 : 400, { "content-type": "application/json" });
  response.end("{}");
}

interface Value {
  stringValue?: string;
  boolValue?: boolean;
  intValue?: number | string;
  doubleValue?: number;
  arrayValue?: { values: Value[] };
}

type Attributes = { key: string; value: Value }[];

function toValue({ stringValue, boolValue, intValue, doubleValue, arrayValue }: Value): unknown {
  if (arrayValue) return arrayValue.values.map(toValue);
  return stringValue ?? boolValue ?? doubleValue ?? Number(intValue);
}

const attributesOf = (attributes: Attributes = []) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, toValue(value)]));

interface Traces {
  resourceSpans: { scopeSpans: { spans: SpanJson[] }[] }[];
}

interface SpanJson extends Pick<SentSpan, "traceId" | "spanId" | "parentSpanId" | "name" | "kind"> {
  attributes: Attributes;
  links?: SentSpan["links"];
  status?: { code?: number };
}

const spansIn = ({ resourceSpans }: Traces): SentSpan[] =>
  resourceSpans
    .flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
    .map(({ traceId, spanId, parentSpanId, name, kind, attributes, links = [], status }) => ({
      ...{ traceId, spanId, parentSpanId: parentSpanId || undefined, name, kind },
      isError: status?.code === ERROR,
      attributes: attributesOf(attributes),
      links: links.map((link) => ({ traceId: link.traceId, spanId: link.spanId })),
    }));

interface Point {
  attributes: Attributes;
  sum?: number;
  count?: number | string;
  explicitBounds?: number[];
  asInt?: number | string;
  asDouble?: number;
}

interface Metrics {
  resourceMetrics: {
    scopeMetrics: {
      metrics: {
        name: string;
        unit: string;
        sum?: { dataPoints: Point[] };
        histogram?: { dataPoints: Point[] };
      }[];
    }[];
  }[];
}

const metricsIn = ({ resourceMetrics }: Metrics): SentMetric[] =>
  resourceMetrics
    .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
    .map(({ name, unit, sum, histogram }) => ({
      ...{ name, unit },
      points: (sum ?? histogram)?.dataPoints.map(toPoint) ?? [],
    }));

const toPoint = ({ attributes, sum, count, explicitBounds, asInt, asDouble }: Point): SentPoint => ({
  attributes: attributesOf(attributes),
  value: sum ?? asDouble ?? Number(asInt),
  count: count === undefined ? undefined : Number(count),
  bounds: explicitBounds,
});

/** Configures telemetry of this process as an operator would. `logs` has its errors. */
export async function sendsTo({ url }: Collector, more: Record<string, string> = {}) {
  Object.assign(process.env, {
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_BSP_SCHEDULE_DELAY: "10",
    OTEL_METRIC_EXPORT_INTERVAL: "100",
    OTEL_METRIC_EXPORT_TIMEOUT: "100",
    ...more,
  });
  const logs: string[] = [];
  const telemetry = readTelemetrySettings(new SettingsReader(process.env));
  const log = createLog("trace", { write: (line: string) => void logs.push(line) });
  return { logs, ...(await startTelemetry({ telemetry }, log)) };
}
