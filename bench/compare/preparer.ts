/**
 * Fills the database of one side and causes events in it, with that side's own code: its tables and functions may differ
 * from those of this work tree. Runs in its own process, with the folder of the side and a data folder as arguments, owns
 * that side's PostgreSQL, and answers requests until its parent disconnects.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Context, Member } from "@stoa/service/core/context.ts";
import { problemsOf } from "../ledger-problems.ts";
import type { Seeded } from "../seed.ts";

export interface Prepared extends Seeded {
  connection: { host: string; port: number; user: string; password: string; database: string };
}

export type Request =
  | { kind: "open endpoints"; url: string; count: number }
  | { kind: "publish"; count: number }
  | { kind: "publish steadily"; perSecond: number; seconds: number }
  | { kind: "verify ledger" };
/** For published events the time of the commit, in milliseconds since 1970. */
export type Reply = { committed: [id: string, at: number][] };

const PRODUCTS = 2_000;
/** Statements are counted in all databases of the cluster. */
export const SETTINGS = { shared_preload_libraries: "pg_stat_statements", "pg_stat_statements.max": "20000" };
const SENDER = { ip: "127.0.0.1", userAgent: null, requestId: "bench" };

const [root, dataDir] = process.argv.slice(2) as [string, string];
const load = <Module>(path: string) => import(join(root, path)) as Promise<Module>;
const [shop, seeds, base, config, embedded, users, endpoints, outbox, ids, ledger] = await Promise.all([
  load<typeof import("../shop.ts")>("bench/shop.ts"),
  load<typeof import("../seed.ts")>("bench/seed.ts"),
  load<typeof import("@stoa/service/base.ts")>("service/src/base.ts"),
  load<typeof import("@stoa/service/core/config/config.ts")>("service/src/core/config/config.ts"),
  load<typeof import("@stoa/service/platform/db/embedded.ts")>("service/src/platform/db/embedded.ts"),
  load<typeof import("@stoa/service/accounts/people/users.ts")>("service/src/accounts/people/users.ts"),
  load<typeof import("@stoa/service/events/webhooks/endpoints.ts")>(
    "service/src/events/webhooks/endpoints.ts",
  ),
  load<typeof import("@stoa/service/events/outbox/outbox.ts")>("service/src/events/outbox/outbox.ts"),
  load<typeof import("@stoa/service/core/ids.ts")>("service/src/core/ids.ts"),
  load<typeof import("@stoa/service/commerce/ledger/verification.ts")>(
    "service/src/commerce/ledger/verification.ts",
  ),
]);

await shop.fillProducts(dataDir, join(root, "service/src/backoffice/demo/prompts.json"), PRODUCTS);
const database = await embedded.startEmbedded(dataDir, { settings: SETTINGS });
const { ctx, close } = await base.openBase(
  config.readConfig({ STOA_DATA_DIR: dataDir, STOA_LOG_LEVEL: "warn" }),
  { target: database.connection, maxConnections: 4 },
);

/** Accounts with an endpoint. */
const accounts: string[] = [];

async function openEndpoint(url: string): Promise<void> {
  const email = `hooks${accounts.length}@bench.example`;
  const userId = await users.createUser(ctx, { email, name: "Hooks" });
  const caller: Member = {
    ...{ kind: "key", keyId: "bench", userId, role: "user", plan: "free", quota: null },
    permissions: new Set(["webhooks:write"]),
  };
  const endpoint = {
    ...{ url, description: "", eventTypes: null, enabled: true },
    ...{ signatureContent: "timestamp_body" as const, signaturePrefix: false },
  };
  await endpoints.createEndpoint(ctx, caller, endpoint, SENDER);
  accounts.push(userId);
}

const bodyFor = (userId: string) => ({
  review: {
    id: ids.toId("rev", ids.newUuid(new Date())),
    productId: ids.toId("prod", ids.newUuid(new Date())),
    rating: 5,
    comment: "It does what it says, and the third example saved me an afternoon.",
    authorId: ids.toId("usr", userId),
  },
});

/** In one transaction. */
async function publish(context: Context, first: number, count: number): Promise<Reply["committed"]> {
  const published: string[] = [];
  await context.db.transaction().execute(async (tx) => {
    for (let n = first; n < first + count; n++) {
      const userId = accounts[n % accounts.length]!;
      const event = await outbox.publishEvent(context, tx, [userId], "review.created", bodyFor(userId));
      published.push(ids.toId("evt", event));
    }
  });
  const at = performance.timeOrigin + performance.now();
  return published.map((id) => [id, at]);
}

async function publishSteadily(perSecond: number, seconds: number): Promise<Reply["committed"]> {
  const publishing: Promise<Reply["committed"]>[] = [];
  const begun = performance.now();
  for (let n = 0; n < perSecond * seconds; n++) {
    const wait = begun + (n * 1000) / perSecond - performance.now();
    if (wait > 0) await sleep(wait);
    publishing.push(publish(ctx, n, 1));
  }
  return (await Promise.all(publishing)).flat();
}

/** A wrong result may be fast. */
async function mustBalance(): Promise<void> {
  const { problems } = await ledger.verifyLedger(ctx.db);
  const own = problemsOf(problems);
  if (own.length > 0) throw new Error(`The ledger is wrong: ${own.slice(0, 5).join(" ")}`);
}

async function answer(request: Request): Promise<Reply> {
  if (request.kind === "publish") return { committed: await publish(ctx, 0, request.count) };
  if (request.kind === "publish steadily")
    return { committed: await publishSteadily(request.perSecond, request.seconds) };
  if (request.kind === "verify ledger") await mustBalance();
  else for (let n = 0; n < request.count; n++) await openEndpoint(`${request.url}/${n}`);
  return { committed: [] };
}

async function end(): Promise<void> {
  await close();
  await database.stop();
  process.exit(0);
}

// Ctrl-C reaches the whole process group: the parent ends the services first, then disconnects.
process.on("SIGINT", () => {});
process.on("disconnect", () => void end());
process.on("message", (request: Request) => {
  answer(request).then(
    (reply) => process.send!(reply),
    (error: Error) => process.send!({ error: error.stack ?? error.message }),
  );
});
process.send!({ connection: database.connection, ...(await seeds.signInAll(ctx)) } as Prepared);
