import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Forked, forkProgram } from "../../../test/child.ts";
import type { DeliveryWorkerOptions } from "../../../test/delivery-worker-process.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { urlOf } from "../../../test/temporary-postgres.ts";
import { startWebhookReceiver, type WebhookReceiver } from "../../../test/webhook-receiver.ts";
import { toId } from "../../core/ids.ts";
import { type EmbeddedDatabase, startEmbedded } from "../../platform/db/embedded.ts";
import { publishEvent } from "../outbox/outbox.ts";

const PROGRAM = new URL("../../../test/delivery-worker-process.ts", import.meta.url);
const EVENTS = 10_000;
const ACCOUNTS = 20;
/** Events of one transaction. */
const EVENTS_PER_TRANSACTION = 500;
/** Deliveries of one worker before it is killed. */
const LIFE_DELIVERIES = 800;
const TIMEOUT_MS = 400_000;
/** Deliveries that one worker may have in progress: those of its two pools. */
const WORKER_CAPACITY = 192 + 64;

let folder: string;
let server: EmbeddedDatabase;
let market: Market;
let receiver: WebhookReceiver;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "stoa-webhook-crashes-"));
  server = await startEmbedded(folder);
  const database = { url: urlOf(server, server.connection.database), drop: async () => {} };
  // The real clock, because workers of other processes have no other.
  market = await openMarket({ database, now: () => new Date() });
  receiver = await startWebhookReceiver();
});
after(async () => {
  await market.close();
  await receiver.close();
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

async function startWorker(): Promise<Forked> {
  const input: DeliveryWorkerOptions = { config: market.service.ctx.config, target: market.target };
  const worker = forkProgram(PROGRAM, input);
  await worker.answer();
  return worker;
}

async function kill({ child, ended }: Forked): Promise<void> {
  child.kill("SIGKILL");
  assert.equal(await ended, "SIGKILL", "the process ran until now");
}

/** Kills PostgreSQL as a power failure does, except for unwritten disk caches. */
async function killDatabase(): Promise<void> {
  const pidFile = await readFile(join(folder, "postgres", "postmaster.pid"), "utf8");
  process.kill(Number(pidFile.split("\n")[0]), "SIGKILL");
  await server.stop();
  server = await startEmbedded(folder);
}

async function createEndpoints(): Promise<Client[]> {
  const owners: Client[] = [];
  for (let n = 0; n < ACCOUNTS; n++) {
    const owner = await market.createUser();
    assert.equal((await owner.post("/v1/webhooks", { url: `${receiver.url}/${n}` })).status, 201);
    owners.push(owner);
  }
  return owners;
}

/** Publishes events for all accounts in turn. */
async function publishEvents(owners: Client[], first: number): Promise<void> {
  const { ctx } = market.service;
  await ctx.db.transaction().execute(async (tx) => {
    for (let n = first; n < first + EVENTS_PER_TRANSACTION; n++) {
      const { userId } = owners[n % ACCOUNTS]!;
      const review = { id: `rev_${n}`, productId: "prod_1", rating: 5, comment: "Fine", authorId: "usr_1" };
      await publishEvent(ctx, tx, [userId], "review.created", { review });
    }
  });
}

const open = async (): Promise<number> =>
  (
    await market.query(
      `select (select count(*) from events where seq is null)
            + (select count(*) from webhook_deliveries where due_at is not null) as open`,
    )
  ).rows[0].open;

/** Waits until a worker has delivered enough, or nothing is left. */
async function untilDelivered(): Promise<void> {
  const giveUpAt = Date.now() + TIMEOUT_MS;
  const enough = receiver.received.length + LIFE_DELIVERIES;
  while (receiver.received.length < enough && (await open()) > 0) {
    assert.ok(Date.now() < giveUpAt, `${await open()} are open`);
    await sleep(20);
  }
}

/** The events of the deliveries that were in progress when a worker died. */
async function findLeasedEvents(): Promise<string[]> {
  const { rows } = await market.query(
    "select event_id as event, leased_by as worker from webhook_deliveries where lease_token is not null",
  );
  for (const [worker, leased] of Map.groupBy(rows, (row) => row.worker))
    assert.ok(
      leased.length <= WORKER_CAPACITY,
      `worker ${worker} had ${leased.length} deliveries in progress`,
    );
  return rows.map(({ event }) => toId("evt", event));
}

test("workers killed repeatedly and PostgreSQL once: no delivery is lost, and only those in progress are repeated", async (t) => {
  const owners = await createEndpoints();
  const mayRepeat = new Map<string, number>();
  for (let life = 1, made = 0; made < EVENTS || (await open()) > 0; life++) {
    const worker = await startWorker();
    if (made < EVENTS) await publishEvents(owners, made);
    // While the worker runs, so that some events arrive during its batches.
    if (made < EVENTS)
      await Promise.all([publishEvents(owners, made + EVENTS_PER_TRANSACTION), untilDelivered()]);
    else await untilDelivered();
    made = Math.min(EVENTS, made + 2 * EVENTS_PER_TRANSACTION);
    if (life === 3) await killDatabase();
    await kill(worker);
    for (const event of await findLeasedEvents()) mayRepeat.set(event, (mayRepeat.get(event) ?? 0) + 1);
  }
  const { received } = receiver;
  const times = new Map<string, number>();
  for (const { headers } of received) {
    const event = String(headers["webhook-id"]);
    times.set(event, (times.get(event) ?? 0) + 1);
  }
  assert.equal(times.size, EVENTS, "every delivery arrives");
  const repeated = [...times].filter(([event, count]) => count > 1 + (mayRepeat.get(event) ?? 0));
  assert.deepEqual(repeated, [], "a delivery that no dead worker had in progress is not repeated");
  t.diagnostic(`${received.length - EVENTS} of ${EVENTS} deliveries were repeated`);
  const { rows: gaps } = await market.query(
    `select d.id from webhook_deliveries d left join webhook_attempts a on a.delivery_id = d.id and not a.is_late
      group by d.id having d.status <> 'succeeded' or array_agg(a.n order by a.n) <> array(select generate_series(1, d.attempts))`,
  );
  assert.deepEqual(gaps, [], "attempts are numbered without gaps");
});
