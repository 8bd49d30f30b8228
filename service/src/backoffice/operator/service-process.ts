import cluster from "node:cluster";
import { type Service, startService } from "../../app.ts";
import { type Config, readConfig } from "../../core/config/config.ts";
import { createLog } from "../../core/log.ts";
import type { ListeningAddress } from "../../core/loopback.ts";
import { startTelemetry, type Telemetry } from "../../core/telemetry/sdk.ts";
import type { Connection } from "../../platform/db/database.ts";
import type { ProcessMetrics } from "../../platform/http/prometheus.ts";
import type { Readiness } from "../../platform/http/system-pages.ts";
import { Channel } from "../../platform/processes/channel.ts";
import type { ProcessName } from "../../platform/processes/process-pool.ts";
import { shareNext } from "../../platform/processes/share-next.ts";
import { SharedCounters } from "../../platform/processes/shared-counters.ts";
import { collectGarbageWhenIdle } from "./collect-garbage.ts";
import { isOperatorError } from "./operator-error.ts";
import { buildWebClient, loadDemoProducts, printStartBox } from "./start-tasks.ts";

/** What a process gets from its supervisor; everything else it reads from the settings itself. */
export interface StartInput extends ProcessName {
  connection: Connection;
  /** All API processes listen there. */
  address: ListeningAddress;
  /** What one process of the node does. */
  tasks: NodeTask[];
}

/** `demo`: loads what the process before, which has ended, has not loaded. */
export type NodeTask = "web client" | "demo";

export interface BoxInput {
  /** Unix time in milliseconds. */
  startedAt: number;
}

const EXIT_TIMEOUT_MS = 14_000;
const RELEASE_TIMEOUT_MS = 10_000;
/** Then no cache is used that could have missed the change. */
const CATCH_UP_TIMEOUT_MS = 1_000;
const SIBLINGS_TIMEOUT_MS = 5_000;
const NO_SUPERVISOR: Readiness = { problems: ["the supervisor does not answer"], warnings: [] };

/** `stoa-server process`: one of the processes of `stoa-server start`, which the supervisor tells what to do. */
export async function runServiceProcess(): Promise<void> {
  if (!cluster.worker) throw new Error("`stoa-server process` is a part of `stoa-server start`: run that.");
  new ServiceProcess().listen(cluster.worker);
}

class ServiceProcess {
  #service: Service | null = null;
  #telemetry: Telemetry | null = null;
  #isEnding = false;

  listen(worker: NonNullable<typeof cluster.worker>): void {
    const channel: Channel = new Channel(worker, {
      start: (input: StartInput) => this.#start(channel, input),
      printBox: ({ startedAt }: BoxInput) => printStartBox(this.#requireService().ctx, startedAt),
      catchUp: () => this.#requireService().ctx.notifications.catchUp(),
      metrics: () => this.#requireService().metrics.own(),
      problems: () => this.#requireService().findProblems(),
      retire: () => this.#retire(),
      end: () => this.#end({ drains: true }),
    });
    // Otherwise node:cluster exits at once when the supervisor is gone, and cuts what runs.
    worker.exitedAfterDisconnect = true;
    process.once("disconnect", () => {
      channel.close("the supervisor has ended");
      void this.#end({ drains: false });
    });
    for (const signal of ["SIGTERM", "SIGINT"] as const)
      process.on(signal, () => void this.#end({ drains: true }));
    // A terminal that closes sends it to all processes; to the supervisor it means a rolling restart.
    process.on("SIGHUP", () => {});
    channel.call("online", null, null).catch(() => {});
  }

  async #start(channel: Channel, input: StartInput): Promise<void> {
    try {
      await this.#startService(channel, input);
    } catch (error) {
      if (!isOperatorError(error)) console.error(error);
      throw error;
    }
  }

  async #startService(channel: Channel, input: StartInput): Promise<void> {
    const config: Config = { ...readConfig(), port: input.address.port };
    const log = createLog(config.logLevel);
    this.#telemetry = await startTelemetry(config, log);
    this.#service = await startService(config, input.connection, {
      log,
      roles: { api: input.role === "api", worker: input.role === "worker" },
      ...(input.role === "worker" && { answeredAt: input.address }),
      createCounters: (now) => new SharedCounters(channel, now),
      siblings: {
        process: input.name,
        catchUp: shareNext(() => channel.call("catchUpSiblings", null, CATCH_UP_TIMEOUT_MS)),
        collectMetrics: () =>
          channel.call<ProcessMetrics[]>("siblingMetrics", null, SIBLINGS_TIMEOUT_MS).catch(() => []),
        findReadiness: () =>
          channel.call<Readiness>("readiness", null, SIBLINGS_TIMEOUT_MS).catch(() => NO_SUPERVISOR),
      },
      beforeListening: () => channel.call("releasePort", null, RELEASE_TIMEOUT_MS),
    });
    const { ctx } = this.#service;
    if (input.tasks.includes("web client")) buildWebClient(ctx);
    if (input.tasks.includes("demo")) void loadDemoProducts(ctx);
    collectGarbageWhenIdle();
  }

  #requireService(): Service {
    if (!this.#service) throw new Error("the service has not started");
    return this.#service;
  }

  async #retire(): Promise<void> {
    await this.#service?.retire();
    await this.#end({ drains: false });
  }

  async #end(how: { drains: boolean }): Promise<void> {
    if (this.#isEnding) return;
    this.#isEnding = true;
    const service = this.#service;
    const drainMs = how.drains ? (service?.ctx.config.drainSeconds ?? 0) * 1_000 : 0;
    setTimeout(() => process.exit(1), drainMs + EXIT_TIMEOUT_MS).unref();
    try {
      await service?.close(how);
      await this.#telemetry?.stop();
      process.exit(0);
    } catch (error) {
      console.error(error);
      process.exit(1);
    }
  }
}
