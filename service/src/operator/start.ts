import { permissions } from "@stoa/contract";
import { firstAdminLink } from "../admin/first-admin.ts";
import { type Service, startService } from "../app.ts";
import type { Context } from "../context.ts";
import { openShop } from "../demo/demo.ts";
import { replaceKey } from "../keys/keys.ts";
import { createLog } from "../log.ts";
import { createUser, findUser } from "../people/users.ts";
import { startTelemetry, type Telemetry } from "../telemetry.start.ts";
import { welcome } from "./box.ts";
import { connectionOf, mustAnswer, openPlace, type Place } from "./place.ts";

const HARD_END_MS = 14_500;
const NEWCOMER = { email: "newcomer@stoa.example", name: "Newcomer", plan: "business" } as const;
const PRINTED_KEY = "printed at the start";
const PRINTED_KEY_HOURS = 24;

/** `stoa-server start`: runs until SIGTERM or SIGINT. */
export async function start(): Promise<void> {
  const startedAt = performance.now();
  const opened: Opened = { place: null, service: null, telemetry: null };
  endOnSignal(opened);
  try {
    opened.place = await openPlace();
    await mustAnswer(opened.place);
    opened.place.embedded?.onLost((why) => {
      console.error(why);
      process.exit(1);
    });
    const { config } = opened.place;
    const log = createLog(config.logLevel);
    opened.telemetry = await startTelemetry(config, log);
    opened.service = await startService(config, connectionOf(opened.place), { log });
    await greet(opened.place, opened.service, startedAt);
  } catch (error) {
    await close(opened);
    throw error;
  }
}

/** What a signal has to close, however far the start has come. */
interface Opened {
  place: Place | null;
  service: Service | null;
  telemetry: Telemetry | null;
}

async function close({ service, place, telemetry }: Opened): Promise<void> {
  await service?.close();
  await Promise.all([telemetry?.stop(), place?.leave()]);
}

/** On a first start in the test environment the shop is filled first, so that the line in the box lists products. */
async function greet(place: Place, { ctx }: Service, startedAt: number): Promise<void> {
  const isTest = place.config.environment === "test";
  const stillLoading = isTest && (await fillShop(ctx));
  const key = isTest ? await printedKey(ctx) : null;
  // Where no door is, nobody could open it.
  const adminLink = place.config.roles.api ? await firstAdminLink(ctx) : null;
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(
    welcome({ config: place.config, origin: ctx.links.origin(), key, seconds, stillLoading, adminLink }),
  );
}

/** Waits for the products alone; whether sales still come in behind. */
async function fillShop(ctx: Context): Promise<boolean> {
  const shop = openShop(ctx);
  shop.done.then(
    (figures) => figures && ctx.log.info(figures, "the demo shop is loaded"),
    (error) => {
      if (!ctx.pool.ending)
        ctx.log.error({ err: error }, "the demo shop was not loaded; the next start goes on with it");
    },
  );
  return (await shop.stocked) !== null;
}

/** A fresh key for the newcomer; the one of the last start stops working. */
async function printedKey(ctx: Context): Promise<string> {
  const account = await findUser(ctx, NEWCOMER.email).catch(() => null);
  const userId = account?.id ?? (await createUser(ctx, NEWCOMER));
  const expiresAt = new Date(ctx.now().getTime() + PRINTED_KEY_HOURS * 3_600_000);
  const { key } = await replaceKey(ctx, {
    userId,
    name: PRINTED_KEY,
    permissions: [...permissions],
    expiresAt,
  });
  return key;
}

function endOnSignal(opened: Opened): void {
  let ending = false;
  const end = async (signal: string) => {
    if (ending) return;
    ending = true;
    opened.service?.ctx.log.info({ signal }, "shutting down");
    const drainMs = (opened.place?.config.drainSeconds ?? 0) * 1_000;
    setTimeout(() => process.exit(1), drainMs + HARD_END_MS).unref();
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
