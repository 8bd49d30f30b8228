import { collectDefaultMetrics, Histogram, Registry } from "prom-client";

export interface Metrics {
  observeRequest(method: string, route: string, status: number, ms: number): void;
  /** In the text format of Prometheus. */
  text(): Promise<string>;
  contentType: string;
}

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const duration = new Histogram({
    name: "http_request_duration_seconds",
    help: "Time from the request's first byte to the answer's last",
    labelNames: ["method", "route", "status"],
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 120],
    registers: [registry],
  });
  return {
    observeRequest: (method, route, status, ms) => duration.observe({ method, route, status }, ms / 1000),
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
