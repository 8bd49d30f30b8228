import { fileURLToPath } from "node:url";
import type { Config } from "../../core/config/config.ts";
import type { ProcessMetrics } from "../../platform/http/prometheus.ts";
import type { Readiness } from "../../platform/http/system-pages.ts";
import { PeerLost } from "../../platform/processes/channel.ts";
import { type ProcessName, ProcessPool } from "../../platform/processes/process-pool.ts";
import { COUNT, createCountHandler } from "../../platform/processes/shared-counters.ts";
import { type OperatorDatabase, toConnection } from "./operator-database.ts";
import { printProgress } from "./progress.ts";
import type { ReservedPort } from "./reserved-port.ts";
import type { BoxInput, NodeTask, StartInput } from "./service-process.ts";
import { SupervisorMetrics } from "./supervisor-metrics.ts";

const PROGRAM = fileURLToPath(new URL("../../../bin/stoa-server.mjs", import.meta.url));
/** A process ends itself before this. */
const END_TIMEOUT_MS = 14_300;
const RETRY_BOX_MS = 250;
/** Shorter than a scrape or a health check may take. */
const ASK_TIMEOUT_MS = 2_000;

/** The API processes, and one for background work, so that jobs delay no request. */
const listProcesses = ({ processes, roles }: Config): ProcessName[] => [
  ...Array.from({ length: processes }, (_, index) => ({
    ...{ name: `api-${index + 1}`, role: "api" as const },
  })),
  ...(roles.worker ? [{ name: "worker", role: "worker" as const }] : []),
];

interface SupervisorOptions {
  config: Config;
  database: OperatorDatabase;
  port: ReservedPort;
  onFailed(error: Error): void;
}

/** Starts the processes of STOA_PROCESSES on one port, replaces those that end, and has what only one may do: the port, the database, the counters of rate limits. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #pool: ProcessPool;
  /** The last one: the worker, if there is one, so that loading the demo delays no request. */
  readonly #boxProcess: string;
  readonly #metrics: SupervisorMetrics;
  #hasStarted = false;
  #isEnding = false;

  constructor(options: SupervisorOptions) {
    const { config, port } = options;
    const processes = listProcesses(config);
    const count = createCountHandler();
    this.#options = options;
    this.#boxProcess = processes.at(-1)?.name ?? "";
    this.#pool = new ProcessPool({
      processes,
      program: PROGRAM,
      programArguments: ["process"],
      handlersFor: ({ name }) => ({
        releasePort: () => port.release(),
        [COUNT]: count,
        catchUpSiblings: () => this.#catchUp(name),
        siblingMetrics: () => this.#collectMetrics(name),
        readiness: () => this.#findReadiness(),
      }),
      startInput: (process) => this.#startInputOf(process),
      report: (text) => console.error(text),
      onLost: ({ role }) => this.#metrics.lost.inc({ role }),
    });
    this.#metrics = new SupervisorMetrics(this.#pool);
  }

  /** Resolves when all processes are ready and the box is printed. */
  async start(): Promise<void> {
    await this.#pool.start();
    this.#hasStarted = true;
    this.#pool.failed.catch((error) => this.#options.onFailed(error));
    printProgress("the service listens");
    await this.#printBox();
  }

  restart(): void {
    if (this.#hasStarted) void this.#pool.restart();
  }

  async close(): Promise<void> {
    this.#isEnding = true;
    await this.#pool.end(this.#options.config.drainSeconds * 1_000 + END_TIMEOUT_MS);
  }

  #startInputOf(process: ProcessName): StartInput {
    const { database, port, config } = this.#options;
    const tasks: NodeTask[] = [];
    if (process.name === "api-1") tasks.push("web client");
    if (this.#hasStarted && process.name === this.#boxProcess && config.environment === "test")
      tasks.push("demo");
    return { ...process, connection: toConnection(database), address: port.address, tasks };
  }

  /** Lets the processes that answer requests, except the one that asks, receive all notifications of earlier commits. */
  async #catchUp(asking: string): Promise<void> {
    const others = this.#pool.listReady("api").filter((name) => name !== asking);
    await Promise.all(others.map((process) => this.#ask(process, "catchUp", null)));
  }

  /** Of all processes but the one that asks. One that does not answer is missing. */
  async #collectMetrics(asking: string): Promise<ProcessMetrics[]> {
    const others = this.#pool.listReady().filter((name) => name !== asking);
    const collected = others.map(async (process) => {
      const metrics = await this.#ask<ProcessMetrics["metrics"] | null>(process, "metrics", null);
      return metrics ? [{ process, metrics }] : [];
    });
    const own = { process: "supervisor", metrics: await this.#metrics.registry.getMetricsAsJSON() };
    return [...(await Promise.all(collected)).flat(), own];
  }

  async #findReadiness(): Promise<Readiness> {
    const { processes, roles } = this.#options.config;
    const running = this.#pool.listReady("api").length;
    const warnings =
      running < processes
        ? [`${running} of ${processes} API processes run; the others are being started`]
        : [];
    return { problems: roles.worker ? await this.#findWorkerProblems() : [], warnings };
  }

  async #findWorkerProblems(): Promise<string[]> {
    if (this.#pool.listReady("worker").length === 0)
      return ["the worker process does not run: it is being started"];
    return this.#ask("worker", "problems", ["the worker process does not answer"]);
  }

  #ask<Value>(process: string, method: string, otherwise: Value): Promise<Value> {
    return this.#pool.call<Value>(process, method, null, ASK_TIMEOUT_MS).catch(() => otherwise);
  }

  /** Another process takes its place if the one that loads the demo ends. */
  async #printBox(): Promise<void> {
    const input: BoxInput = { startedAt: performance.timeOrigin };
    while (!this.#isEnding) {
      try {
        return await this.#pool.call(this.#boxProcess, "printBox", input, null);
      } catch (error) {
        if (!(error instanceof PeerLost)) throw error;
        await new Promise((resolve) => setTimeout(resolve, RETRY_BOX_MS));
      }
    }
  }
}
