import { collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

export interface Metrics {
  observeRequest(method: string, route: string, status: number, ms: number): void;
  /** In the text format of Prometheus. */
  text(): Promise<string>;
  contentType: string;
}

export function createMetrics(
  countJobs: () => Promise<{ name: string; waiting: number; givenUp: number }[]>,
): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const duration = new Histogram({
    name: "http_request_duration_seconds",
    help: "Time from the request's first byte to the answer's last",
    labelNames: ["method", "route", "status"],
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 120],
    registers: [registry],
  });
  new Gauge({
    name: "jobs",
    help: "Jobs that were asked for: those that wait, and those that were given up in the last week",
    labelNames: ["name", "state"],
    registers: [registry],
    async collect() {
      this.reset();
      // The other figures are wanted most when the database is away.
      for (const { name, waiting, givenUp } of await countJobs().catch(() => [])) {
        this.set({ name, state: "waiting" }, waiting);
        this.set({ name, state: "given up" }, givenUp);
      }
    },
  });
  return {
    observeRequest: (method, route, status, ms) => duration.observe({ method, route, status }, ms / 1000),
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
