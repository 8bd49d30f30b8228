import { type Attributes, metrics } from "@opentelemetry/api";
import { Counter, Histogram, Registry } from "prom-client";

/** One metric, recorded once for both exports: OpenTelemetry where that is on, and /metrics (docs/decisions/0056-metrics-of-two-exports.md). */
type RecordValue = (value: number, attributes: Attributes) => void;

interface MetricDefinition {
  name: string;
  /** UCUM, as OpenTelemetry writes units. */
  unit: string;
  description: string;
  /** The attributes that /metrics shows; the others would make too many rows. */
  labels: string[];
}

// As the GenAI conventions advise, at https://github.com/open-telemetry/semantic-conventions-genai (docs/gen-ai/gen-ai-metrics.md).
const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const TOKENS = Array.from({ length: 14 }, (_, power) => 4 ** power);
const WORKFLOW_SECONDS = [1, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200];

const CALL = ["gen_ai.operation.name", "gen_ai.provider.name"];

/** The metrics of runs and provider calls in this process. */
export class Metrics {
  /** As /metrics shows them. */
  readonly registry = new Registry();
  /** Seconds of a call of a provider, repeats included. */
  readonly callDuration: RecordValue;
  readonly tokens: RecordValue;
  /** Seconds until the first text of a streamed call. */
  readonly firstChunk: RecordValue;
  readonly circuitOpenings: RecordValue;
  readonly runs: RecordValue;
  /** Seconds from its start to its end, all waits included. */
  readonly workflowDuration: RecordValue;
  /** At /metrics alone, by the job's name. */
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
    const sent = metrics
      .getMeter("stoa")
      .createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: buckets } });
    const shown = new Histogram({
      ...{ name: prometheusName(name) + (unit === "s" ? "_seconds" : ""), help: description, buckets },
      labelNames: labels.map(prometheusName),
      registers: [registry],
    });
    return (value, attributes) => {
      sent.record(value, attributes);
      shown.observe(prometheusLabels(attributes, labels), value);
    };
  };

const counterFactory =
  (registry: Registry) =>
  ({ name, unit, description, labels }: MetricDefinition): RecordValue => {
    const sent = metrics.getMeter("stoa").createCounter(name, { unit, description });
    const shown = new Counter({
      ...{ name: `${prometheusName(name)}_total`, help: description },
      labelNames: labels.map(prometheusName),
      registers: [registry],
    });
    return (value, attributes) => {
      sent.add(value, attributes);
      shown.inc(prometheusLabels(attributes, labels), value);
    };
  };

/** As collectors write OpenTelemetry's names for Prometheus. */
const prometheusName = (name: string) => name.replaceAll(".", "_");

const prometheusLabels = (attributes: Attributes, labels: string[]): Record<string, string> =>
  Object.fromEntries(
    labels.flatMap((label) => {
      const value = attributes[label];
      return value === undefined ? [] : [[prometheusName(label), String(value)]];
    }),
  );
