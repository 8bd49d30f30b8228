import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { ProcessPool } from "../../platform/processes/process-pool.ts";

const ROLES = ["api", "worker"] as const;

/** What the supervisor counts itself; API processes show it at /metrics. */
export class SupervisorMetrics {
  readonly registry = new Registry();
  readonly lost: Counter<"role">;

  constructor(pool: ProcessPool) {
    const ofRole = { labelNames: ["role"] as const, registers: [this.registry] };
    collectDefaultMetrics({ register: this.registry });
    new Gauge({
      name: "processes_running",
      help: "Processes of this node that are ready",
      ...ofRole,
      collect() {
        for (const role of ROLES) this.set({ role }, pool.listReady(role).length);
      },
    });
    this.lost = new Counter({
      name: "processes_lost_total",
      help: "Processes of this node that ended by themselves and were started again",
      ...ofRole,
    });
    for (const role of ROLES) this.lost.inc({ role }, 0);
  }
}
