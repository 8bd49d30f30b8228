import { type Service, startService } from "../../app.ts";
import { readConfig } from "../../core/config/config.ts";
import type { Context } from "../../core/context.ts";
import { createLog } from "../../core/log.ts";
import { startTelemetry, type Telemetry } from "../../core/telemetry/sdk.ts";
import { startEmbedded } from "../../platform/db/embedded.ts";
import { createFirstAdminLink } from "../admin/first-admin.ts";
import { loadDemoAtStart } from "../demo/demo.ts";
import {
  mustConnectToDatabase,
  type OperatorDatabase,
  openOperatorDatabase,
  toConnection,
} from "./operator-database.ts";
import { findOrCreatePrintedKey } from "./printed-key.ts";
import { type ReservedPort, reservePort } from "./reserved-port.ts";
import { renderStartBox } from "./start-box.ts";

const EXIT_TIMEOUT_MS = 14_500;
const MAX_RESTARTS = 3;
const RESTART_WINDOW_MS = 10 * 60_000;

/** `stoa-server start`: runs until SIGTERM or SIGINT. */
export async function start(): Promise<void> {
  const config = readConfig();
  const opened: OpenedResources = { port: null, database: null, service: null, telemetry: null };
  closeOnSignal(opened);
  try {
    opened.port = await reservePort(config);
    printProgress(`starting ${config.databaseUrl ? "with DATABASE_URL" : `PostgreSQL in ${config.dataDir}`}`);
    opened.database = await openOperatorDatabase(config);
    await mustConnectToDatabase(opened.database);
    restartWhenLost(opened.database);
    const log = createLog(config.logLevel);
    opened.telemetry = await startTelemetry(config, log);
    printProgress("the database is up: running migrations");
    opened.service = await startService(config, toConnection(opened.database), {
      log,
      beforeListening: () => opened.port!.release(),
      restart: () => restartService(opened),
    });
    printProgress("the service listens");
    buildWebClient(opened.service);
    await printStartBox(opened.database, opened.service);
  } catch (error) {
    await close(opened);
    throw error;
  }
}

/** Beside the service: the API does not wait for it. */
function buildWebClient({ ctx: { config, webBuilds, log } }: Service): void {
  if (config.roles.api)
    webBuilds.ensureCurrent(log).catch((error) => log.error({ err: error }, "the web client was not built"));
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
    opened.service = await startService(config, toConnection(database), {
      log: service.ctx.log,
      beforeListening: async () => opened.port?.release(),
      restart: () => restartService(opened),
    });
    buildWebClient(opened.service);
    printProgress("the service listens");
  } catch (error) {
    // A supervisor starts it again.
    console.error(error);
    process.exit(1);
  }
}

/** To stderr like logs: stdout has the box. */
const printProgress = (what: string) => console.error(`${elapsedSeconds().padStart(6)} s  ${what}`);
const elapsedSeconds = () => (performance.now() / 1000).toFixed(1);

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
  telemetry: Telemetry | null;
}

async function close({ port, service, database, telemetry }: OpenedResources): Promise<void> {
  await port?.release();
  await service?.close();
  await Promise.all([telemetry?.stop(), database?.close()]);
}

/** On the first start in the test environment, waits for the demo, so that the printed command lists products. */
async function printStartBox(database: OperatorDatabase, { ctx }: Service): Promise<void> {
  const isTest = database.config.environment === "test";
  const stillLoading = isTest && (await loadDemoProducts(ctx));
  const key = isTest ? await findOrCreatePrintedKey(ctx) : null;
  // Without the API the link would have no page.
  const adminLink = database.config.roles.api ? await createFirstAdminLink(ctx) : null;
  const seconds = elapsedSeconds();
  console.log(
    renderStartBox({
      config: database.config,
      origin: ctx.links.origin(),
      key,
      seconds,
      stillLoading,
      adminLink,
    }),
  );
}

/** Waits for the products only; sales load in the background. */
async function loadDemoProducts(ctx: Context): Promise<boolean> {
  printProgress("loading the demo shop if it is missing");
  const shop = loadDemoAtStart(ctx);
  shop.loaded.then(
    (figures) => figures && ctx.log.info(figures, "the demo shop is loaded"),
    (error) => {
      if (!ctx.pool.ending)
        ctx.log.error({ err: error }, "the demo shop was not loaded; the next start tries again");
    },
  );
  // Another process may be loading, or the database may break: the service starts anyway.
  return (await shop.stocked.catch(() => null)) !== null;
}

function closeOnSignal(opened: OpenedResources): void {
  let ending = false;
  const end = async (signal: string) => {
    if (ending) return;
    ending = true;
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
