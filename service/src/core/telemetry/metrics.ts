import { type Attributes, metrics } from "@opentelemetry/api";
import { Counter, Histogram, Registry } from "prom-client";

/** Records a value for both exports: OpenTelemetry, if enabled, and /metrics (docs/decisions/0056-metrics-of-two-exports.md). */
type RecordValue = (value: number, attributes: Attributes) => void;

interface MetricDefinition {
  name: string;
  /** UCUM, as OpenTelemetry writes units. */
  unit: string;
  description: string;
  /** The attributes at /metrics; more would create too many time series. */
  labels: string[];
}

// Buckets of the GenAI conventions, https://github.com/open-telemetry/semantic-conventions-genai (docs/gen-ai/gen-ai-metrics.md).
const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const TOKENS = Array.from({ length: 14 }, (_, power) => 4 ** power);
const WORKFLOW_SECONDS = [1, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200];

const CALL = ["gen_ai.operation.name", "gen_ai.provider.name"];

export class Metrics {
  readonly registry = new Registry();
  /** Seconds of a provider call, including repeats. */
  readonly callDuration: RecordValue;
  readonly tokens: RecordValue;
  readonly firstChunk: RecordValue;
  readonly circuitOpenings: RecordValue;
  readonly runs: RecordValue;
  /** Seconds from start to end, including waits. */
  readonly workflowDuration: RecordValue;
  /** Only at /metrics. */
  readonly jobRuns: Counter<"name">;
  readonly jobFailures: Counter<"name">;

  constructor() {
    const ofJob = { labelNames: ["name"] as const, registers: [this.registry] };
    this.jobRuns = new Counter({
      name: "job_runs_total",
      help: "Attempts at a job by this process",
      ...ofJob,
    });
    this.jobFailures = new Counter({
      name: "job_failures_total",
      help: "Attempts at a job by this process that failed",
      ...ofJob,
    });
    const histogram = histogramFactory(this.registry);
    const counter = counterFactory(this.registry);
    this.callDuration = histogram(SECONDS, {
      ...{ name: "gen_ai.client.operation.duration", unit: "s", labels: [...CALL, "error.type"] },
      description: "Time of a call of a provider, repeats included",
    });
    this.tokens = histogram(TOKENS, {
      ...{ name: "gen_ai.client.token.usage", unit: "{token}", labels: [...CALL, "gen_ai.token.type"] },
      description: "Tokens of a call that its provider counted",
    });
    this.firstChunk = histogram(SECONDS, {
      ...{ name: "gen_ai.client.operation.time_to_first_chunk", unit: "s", labels: CALL },
      description: "Time from a call of a provider to its first words, where it streams",
    });
    this.circuitOpenings = counter({
      ...{ name: "stoa.provider.circuit.openings", unit: "{opening}" },
      labels: ["gen_ai.provider.name", "server.address"],
      description: "How often a provider that failed again and again was left alone for a while",
    });
    this.runs = counter({
      ...{ name: "stoa.runs", unit: "{run}", labels: ["stoa.execution.type", "stoa.execution.status"] },
      description: "Runs that ended",
    });
    this.workflowDuration = histogram(WORKFLOW_SECONDS, {
      ...{ name: "gen_ai.workflow.duration", unit: "s", labels: ["error.type"] },
      description: "Time from the start of a workflow's run to its end, waits included",
    });
  }
}

const histogramFactory =
  (registry: Registry) =>
  (buckets: number[], { name, unit, description, labels }: MetricDefinition): RecordValue => {
    const otel = metrics
      .getMeter("stoa")
      .createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: buckets } });
    const prometheus = new Histogram({
      ...{ name: prometheusName(name) + (unit === "s" ? "_seconds" : ""), help: description, buckets },
      labelNames: labels.map(prometheusName),
      registers: [registry],
    });
    return (value, attributes) => {
      otel.record(value, attributes);
      prometheus.observe(prometheusLabels(attributes, labels), value);
    };
  };

const counterFactory =
  (registry: Registry) =>
  ({ name, unit, description, labels }: MetricDefinition): RecordValue => {
    const otel = metrics.getMeter("stoa").createCounter(name, { unit, description });
    const prometheus = new Counter({
      ...{ name: `${prometheusName(name)}_total`, help: description },
      labelNames: labels.map(prometheusName),
      registers: [registry],
    });
    return (value, attributes) => {
      otel.add(value, attributes);
      prometheus.inc(prometheusLabels(attributes, labels), value);
    };
  };

/** The name that collectors derive from OpenTelemetry's for Prometheus. */
const prometheusName = (name: string) => name.replaceAll(".", "_");

const prometheusLabels = (attributes: Attributes, labels: string[]): Record<string, string> =>
  Object.fromEntries(
    labels.flatMap((label) => {
      const value = attributes[label];
      return value === undefined ? [] : [[prometheusName(label), String(value)]];
    }),
  );
