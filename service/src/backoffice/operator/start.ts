import type { Service } from "../../app.ts";
import { readConfig } from "../../core/config/config.ts";
import { createLog } from "../../core/log.ts";
import { startTelemetry, type Telemetry } from "../../core/telemetry/sdk.ts";
import { startEmbedded } from "../../platform/db/embedded.ts";
import { collectGarbageWhenIdle } from "./collect-garbage.ts";
import { loadService } from "./load-service.ts";
import {
  mustConnectToDatabase,
  type OperatorDatabase,
  openOperatorDatabase,
  toConnection,
} from "./operator-database.ts";
import { printProgress } from "./progress.ts";
import { type ReservedPort, reservePort } from "./reserved-port.ts";
import type { Supervisor } from "./supervisor.ts";

const EXIT_TIMEOUT_MS = 14_500;
const MAX_RESTARTS = 3;
const RESTART_WINDOW_MS = 10 * 60_000;

/** `stoa-server start`: runs until SIGTERM or SIGINT. */
export async function start(): Promise<void> {
  const config = readConfig();
  const opened: OpenedResources = {
    ...{ port: null, database: null, service: null, supervisor: null, telemetry: null },
    isEnding: false,
  };
  closeOnSignal(opened);
  try {
    opened.port = await reservePort(config);
    printProgress(`starting ${config.databaseUrl ? "with DATABASE_URL" : `PostgreSQL in ${config.dataDir}`}`);
    opened.database = await openOperatorDatabase(config, {
      // The error comes to who awaits the service below.
      onWaiting: () => void (config.processes > 1 || loadService().catch(() => {})),
    });
    await mustConnectToDatabase(opened.database);
    restartWhenLost(opened.database);
    if (config.processes > 1) await startProcesses(opened, opened.port, opened.database);
    else await startInThisProcess(opened, opened.port, opened.database);
  } catch (error) {
    // The reason of the end is the signal.
    if (opened.isEnding) return;
    await close(opened);
    throw error;
  }
}

async function startInThisProcess(
  opened: OpenedResources,
  port: ReservedPort,
  database: OperatorDatabase,
): Promise<void> {
  const { config } = database;
  const log = createLog(config.logLevel);
  opened.telemetry = await startTelemetry(config, log);
  printProgress("the database is up: running migrations");
  const { startService, buildWebClient, printStartBox } = await loadService();
  opened.service = await startService(config, toConnection(database), {
    log,
    beforeListening: () => port.release(),
    restart: () => restartService(opened),
  });
  printProgress("the service listens");
  const { ctx } = opened.service;
  if (config.roles.api) buildWebClient(ctx);
  await printStartBox(ctx, performance.timeOrigin);
  collectGarbageWhenIdle();
}

/** SIGHUP replaces them in turn. */
async function startProcesses(
  opened: OpenedResources,
  port: ReservedPort,
  database: OperatorDatabase,
): Promise<void> {
  const { config } = database;
  const { Supervisor } = await import("./supervisor.ts");
  const supervisor = new Supervisor({
    ...{ config, database, port },
    onFailed(error) {
      console.error(error.message);
      close(opened).then(
        () => process.exit(1),
        () => process.exit(1),
      );
    },
  });
  opened.supervisor = supervisor;
  process.on("SIGHUP", () => supervisor.restart());
  printProgress(
    `the database is up: running migrations, starting ${config.processes} processes for requests${config.roles.worker ? " and one for background work" : ""}`,
  );
  await supervisor.start();
}

/** After a restore. The settings are read again, because it may have replaced the keys of the data folder. */
async function restartService(opened: OpenedResources): Promise<void> {
  const { service, database } = opened;
  if (!service || !database) throw new Error("There is no service to start again.");
  printProgress("starting again after a restore");
  try {
    opened.service = null;
    await service.close();
    opened.port = await reservePort(database.config);
    const config = readConfig();
    const { startService, buildWebClient } = await loadService();
    opened.service = await startService(config, toConnection(database), {
      log: service.ctx.log,
      beforeListening: async () => opened.port?.release(),
      restart: () => restartService(opened),
    });
    if (config.roles.api) buildWebClient(opened.service.ctx);
    printProgress("the service listens");
  } catch (error) {
    // The system's supervisor starts it again.
    console.error(error);
    process.exit(1);
  }
}

/** Restarts a killed embedded database at the same address. Exits when that fails or happens repeatedly, so that a supervisor notices. */
function restartWhenLost(database: OperatorDatabase, lostBefore: number[] = []): void {
  database.embedded?.onLost((why) => {
    console.error(why);
    const lately = [...lostBefore, Date.now()].filter((at) => at > Date.now() - RESTART_WINDOW_MS);
    const restart = async () => {
      // A regular shutdown is intended.
      if (!why.includes("ended unexpectedly")) process.exit(1);
      if (lately.length > MAX_RESTARTS) throw new Error("PostgreSQL was lost too often to be started again.");
      const starting = startEmbedded(database.config.dataDir);
      // Set before the restart ends: a signal meanwhile must stop the new database too.
      database.close = async () => (await starting).stop();
      database.embedded = await starting;
      console.error("PostgreSQL runs again.");
      restartWhenLost(database, lately);
    };
    restart().catch((error) => {
      console.error((error as Error).message);
      process.exit(1);
    });
  });
}

/** Resources to close on a signal, as far as the start has come. */
interface OpenedResources {
  port: ReservedPort | null;
  database: OperatorDatabase | null;
  service: Service | null;
  /** In the place of a service in this process. */
  supervisor: Supervisor | null;
  telemetry: Telemetry | null;
  isEnding: boolean;
}

async function close({ port, service, supervisor, database, telemetry }: OpenedResources): Promise<void> {
  await port?.release();
  await service?.close();
  await supervisor?.close();
  await Promise.all([telemetry?.stop(), database?.close()]);
}

function closeOnSignal(opened: OpenedResources): void {
  const end = async (signal: string) => {
    if (opened.isEnding) return;
    opened.isEnding = true;
    opened.service?.ctx.log.info({ signal }, "shutting down");
    const drainMs = (opened.database?.config.drainSeconds ?? 0) * 1_000;
    setTimeout(() => process.exit(1), drainMs + EXIT_TIMEOUT_MS).unref();
    await close(opened);
    process.exit(0);
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => {
      end(signal).catch((error) => {
        console.error(error);
        process.exit(1);
      });
    });
  }
}
