import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { Agent, type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createUser } from "@stoa/service/accounts/people/users.ts";
import type { Context, Member } from "@stoa/service/core/context.ts";
import { newUuid, toId } from "@stoa/service/core/ids.ts";
import { publishEvent } from "@stoa/service/events/outbox/outbox.ts";
import { deleteWebhooksOnAccountClosed } from "@stoa/service/events/webhooks/closed-account.ts";
import { claimDeliveries } from "@stoa/service/events/webhooks/delivery-queries.ts";
import { createEndpoint } from "@stoa/service/events/webhooks/endpoints.ts";
import { startEmbedded } from "@stoa/service/platform/db/embedded.ts";
import { cpuOfFamily, parentOf } from "../cpu.ts";
import type { Options } from "../options.ts";
import { atEnd, startScript } from "../processes.ts";
import { median, type Quantiles, quantilesOf } from "../quantile.ts";
import { comparedWithAim, ms, type Report } from "../report.ts";
import { type Node, startService, withBase } from "../shop.ts";

const BENCH = { ip: "127.0.0.1", userAgent: null, requestId: "bench" };

const ACCOUNTS = 50;
const BACKLOG = 10_000;
const ROUNDS = 3;
/** Connections of the bare client. */
const BARE_AT_ONCE = 64;
const STEADY_PER_SECOND = 200;
const STEADY_SECONDS = 20;
/** After a load, the database runs maintenance for a while. */
const SETTLE_MS = 5_000;
const IDLE_SECONDS = 10;
const ENDPOINTS = 5_000;
const FUTURE_RETRIES = 100_000;
const CLAIMS = 200;
const DUE_EACH = 20;
const HANGING = 5_000;
const AIMS = { perSecond: 2_500, p50: 6, p99: 25, hangingP99: 500, claimMs: 10 };
const LOOK_EVERY_MS = 20;
const GIVE_UP_MS = 120_000;

/** From a committed event to the receiver's answer, with whole services as workers. */
export async function measureWebhooks(_options: Options): Promise<Report> {
  const dataDir = await mkdtemp(join(tmpdir(), "stoa-bench-webhooks-"));
  atEnd(() => rm(dataDir, { recursive: true, force: true }));
  const database = await startEmbedded(dataDir);
  atEnd(() => database.stop());
  const receiver = startScript(new URL("../receiver.ts", import.meta.url), []);
  const [url] = await receiver.waitForLine(/^http:.*/);
  const startWorker = () => startService(undefined, { STOA_DATA_DIR: dataDir, STOA_ROLES: "worker" });
  return withBase(dataDir, { target: database.connection }, async ({ ctx }) => {
    const market = { ctx, url: url!, accounts: await openAccounts(ctx, url!) };
    const one = await startWorker();
    await drain(market);
    const bare = await bareRates(market);
    const before = cpuOfFamily(one.pid);
    const alone = await drains(market);
    const nodeMs = (cpuOfFamily(one.pid) - before) / (ROUNDS * BACKLOG);
    const delays = await steadily(market);
    const besideHanging = await besideOneThatHangs(market);
    const idle = await idleOf(ctx, one);
    const two = await startWorker();
    const together = await drains(market);
    await Promise.all([one.end(), two.end()]);
    return reportOf({
      bare,
      alone,
      nodeMs,
      together,
      delays,
      besideHanging,
      idle,
      claims: await claims(ctx),
    });
  });
}

interface Market {
  ctx: Context;
  url: string;
  /** Each with an endpoint. */
  accounts: string[];
}

async function openAccounts(ctx: Context, url: string): Promise<string[]> {
  const accounts: string[] = [];
  for (let n = 0; n < ACCOUNTS; n++) accounts.push((await openAccount(ctx, `${url}/${n}`)).userId);
  return accounts;
}

let people = 0;
async function openAccount(ctx: Context, url: string): Promise<Member> {
  const userId = await createUser(ctx, { email: `hooks${++people}@bench.example`, name: "Hooks" });
  const caller: Member = {
    ...{ kind: "key", keyId: "bench", userId, role: "user", plan: "free", quota: null },
    permissions: new Set(["webhooks:write"]),
  };
  await createEndpoint(
    ctx,
    caller,
    {
      ...{ url, description: "", eventTypes: null, enabled: true },
      ...{ signatureContent: "timestamp_body", signaturePrefix: false },
    },
    BENCH,
  );
  return caller;
}

const review = (userId: string) => ({
  review: {
    id: toId("rev", newUuid(new Date())),
    productId: toId("prod", newUuid(new Date())),
    rating: 5,
    comment: "It does what it says, and the third example saved me an afternoon.",
    authorId: toId("usr", userId),
  },
});

/** Commits this many events at once. Returns the time of the commit. */
async function happen({ ctx, accounts }: Market, count: number): Promise<number> {
  await ctx.db.transaction().execute(async (tx) => {
    for (let n = 0; n < count; n++) {
      const userId = accounts[n % accounts.length]!;
      await publishEvent(ctx, tx, [userId], "review.created", review(userId));
    }
  });
  return performance.timeOrigin + performance.now();
}

/** Arrival times by event, when all have arrived. */
async function arrivalsOf({ url }: Market, count: number): Promise<Map<string, number>> {
  const arrivals = new Map<string, number>();
  const begun = performance.now();
  while (arrivals.size < count) {
    if (performance.now() - begun > GIVE_UP_MS)
      throw new Error(`${arrivals.size} of ${count} were delivered`);
    await sleep(LOOK_EVERY_MS);
    const deliveries = (await (await fetch(url)).json()) as [id: string, at: number][];
    for (const [id, at] of deliveries) if (!arrivals.has(id)) arrivals.set(id, at);
  }
  return arrivals;
}

/** Deliveries per second, from the commit to the last arrival. */
async function drain(market: Market): Promise<number> {
  const committed = await happen(market, BACKLOG);
  const arrivals = await arrivalsOf(market, BACKLOG);
  return BACKLOG / ((Math.max(...arrivals.values()) - committed) / 1000);
}

/** Requests per second of a client without a database and signatures: what machine and receiver allow. */
async function bareRates(market: Market): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: BARE_AT_ONCE });
  const rates: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const ids = Array.from({ length: BACKLOG }, () => toId("evt", newUuid(new Date())));
    const begun = performance.timeOrigin + performance.now();
    const left = ids.values();
    await Promise.all(
      Array.from({ length: BARE_AT_ONCE }, async () => {
        for (const id of left) await postBare(`${market.url}/0`, agent, id);
      }),
    );
    const arrivals = await arrivalsOf(market, BACKLOG);
    rates.push(BACKLOG / ((Math.max(...arrivals.values()) - begun) / 1000));
  }
  agent.destroy();
  return rates;
}

async function postBare(url: string, agent: Agent, id: string): Promise<void> {
  const headers = { "content-type": "application/json; charset=utf-8", "webhook-id": id };
  const posting = request(url, { method: "POST", agent, headers });
  posting.end(JSON.stringify({ id, type: "review.created", data: review(newUuid(new Date())) }));
  const [response] = (await once(posting, "response")) as [IncomingMessage];
  await once(response.resume(), "end");
}

async function drains(market: Market): Promise<number[]> {
  const rates: number[] = [];
  for (let round = 0; round < ROUNDS; round++) rates.push(await drain(market));
  return rates;
}

/** Milliseconds from each event's commit to its answer, at a steady rate. */
async function steadily(market: Market): Promise<Quantiles> {
  const { ctx, accounts } = market;
  const committed = new Map<string, number>();
  const running: Promise<unknown>[] = [];
  const begun = performance.now();
  for (let n = 0; n < STEADY_PER_SECOND * STEADY_SECONDS; n++) {
    const userId = accounts[n % accounts.length]!;
    const wait = begun + (n * 1000) / STEADY_PER_SECOND - performance.now();
    if (wait > 0) await sleep(wait);
    const happening = ctx.db
      .transaction()
      .execute((tx) => publishEvent(ctx, tx, [userId], "review.created", review(userId)));
    running.push(
      happening.then((id) => committed.set(toId("evt", id), performance.timeOrigin + performance.now())),
    );
  }
  await Promise.all(running);
  const arrivals = await arrivalsOf(market, committed.size);
  return quantilesOf([...arrivals].map(([id, at]) => at - committed.get(id)!));
}

/** The same for other endpoints, beside one that never answers and has thousands due. */
async function besideOneThatHangs(market: Market): Promise<Quantiles> {
  const hanging = await openAccount(market.ctx, `${market.url}/hangs`);
  await happen({ ...market, accounts: [hanging.userId] }, HANGING);
  const delays = await steadily(market);
  await market.ctx.db
    .transaction()
    .execute((tx) => deleteWebhooksOnAccountClosed(market.ctx, tx, hanging.userId));
  return delays;
}

/** CPU milliseconds per second of an idle worker, and of the database for it. */
async function idleOf(ctx: Context, { pid }: Node): Promise<{ node: number; database: number }> {
  const { rows } = await ctx.pool.query<{ pid: number }>("select pg_backend_pid() as pid");
  const postgres = parentOf(rows[0]!.pid);
  await sleep(SETTLE_MS);
  const before = { node: cpuOfFamily(pid), database: cpuOfFamily(postgres) };
  await sleep(IDLE_SECONDS * 1000);
  return {
    node: (cpuOfFamily(pid) - before.node) / IDLE_SECONDS,
    database: (cpuOfFamily(postgres) - before.database) / IDLE_SECONDS,
  };
}

/** Milliseconds for claiming due deliveries, among many idle queues. */
async function claims(ctx: Context): Promise<Quantiles> {
  await fillLanes(ctx);
  const times: number[] = [];
  for (let n = 0; n < CLAIMS; n++) {
    await makeDue(ctx);
    const now = new Date();
    const lease = { now, token: newUuid(now), until: new Date(now.getTime() + 60_000), worker: null };
    const begun = performance.now();
    const claimed = await claimDeliveries(ctx.pool, lease, { isSlow: false, limit: 256, perAccount: 32 });
    times.push(performance.now() - begun);
    if (claimed.length === 0) throw new Error("nothing was handed out");
  }
  return quantilesOf(times);
}

async function fillLanes({ pool }: Context): Promise<void> {
  const id = (what: string, n: string) => `md5('${what}' || ${n})::uuid`;
  await pool.query("truncate webhook_endpoints, events cascade");
  const [{ id: owner }] = (await pool.query("select id from users limit 1")).rows;
  const later = "now() + interval '1 hour' + n * interval '1 second'";
  for (const statement of [
    `insert into webhook_endpoints (id, user_id, url, description, signature_content, signature_prefix, created_at, updated_at)
     select ${id("endpoint", "n")}, '${owner}', 'https://hooks.example', '', 'body', false, now(), now() from generate_series(1, ${ENDPOINTS}) n`,
    // One account each, as five thousand endpoints would have.
    `insert into webhook_queues (endpoint_id, user_id, next_due) select id, id, now() + interval '1 hour' from webhook_endpoints`,
    `insert into events (id, type, body, seq, created_at)
     select ${id("event", "n")}, 'review.created', '{}', n, now() from generate_series(1, ${FUTURE_RETRIES}) n`,
    `insert into webhook_deliveries (id, event_id, endpoint_id, status, attempts, scheduled_attempts, due_at, created_at)
     select ${id("delivery", "n")}, ${id("event", "n")}, ${id("endpoint", `1 + n % ${ENDPOINTS}`)}, 'retrying', 3, 3, ${later}, now()
       from generate_series(1, ${FUTURE_RETRIES}) n`,
    "vacuum analyze",
  ])
    await pool.query(statement);
}

/** Makes one delivery due for some endpoints, and releases earlier claims. */
async function makeDue({ pool }: Context): Promise<void> {
  const { rows } = await pool.query<{ id: string }>(
    `update webhook_deliveries set due_at = now() - interval '1 second', lease_token = null, lease_until = null
      where id in (select id from webhook_deliveries where lease_token is null order by random() limit ${DUE_EACH})
      returning endpoint_id as id`,
  );
  await pool.query(
    "update webhook_deliveries set lease_token = null, lease_until = null, due_at = now() + interval '1 hour' where lease_token is not null",
  );
  await pool.query(
    "update webhook_queues set next_due = now() - interval '1 second' where endpoint_id = any ($1)",
    [rows.map(({ id }) => id)],
  );
}

interface Figures {
  bare: number[];
  alone: number[];
  /** CPU time of the worker's process for a delivery of the backlog. */
  nodeMs: number;
  together: number[];
  delays: Quantiles;
  besideHanging: Quantiles;
  idle: { node: number; database: number };
  claims: Quantiles;
}

function reportOf(figures: Figures): Report {
  const { bare, alone, nodeMs, together, delays, besideHanging, idle, claims: claim } = figures;
  const rate = (rates: number[]) => {
    const middle = median(rates);
    return comparedWithAim(`${middle.toFixed(0)}/s`, `≥ ${AIMS.perSecond}/s`, middle >= AIMS.perSecond);
  };
  const time = (value: number, aim: number) => comparedWithAim(`${ms(value)} ms`, `< ${aim} ms`, value < aim);
  return {
    columns: ["what", "figure", "aim", "met"],
    rows: [
      [
        `a bare client to the same receiver, ${BARE_AT_ONCE} connections`,
        `${median(bare).toFixed(0)}/s`,
        "",
        "",
      ],
      [`${BACKLOG.toLocaleString("en")} events to ${ACCOUNTS} endpoints, one worker`, ...rate(alone)],
      ["one worker, of bare", (median(alone) / median(bare)).toFixed(2), "", ""],
      [`${BACKLOG.toLocaleString("en")} events to ${ACCOUNTS} endpoints, two workers`, ...rate(together)],
      [`commit to acknowledgement at ${STEADY_PER_SECOND}/s, p50`, ...time(delays.p50, AIMS.p50)],
      [`commit to acknowledgement at ${STEADY_PER_SECOND}/s, p99`, ...time(delays.p99, AIMS.p99)],
      [
        `the same beside an endpoint that hangs with ${HANGING.toLocaleString("en")} due, p99`,
        ...time(besideHanging.p99, AIMS.hangingP99),
      ],
      ["handing out what is due, p50", ...time(claim.p50, AIMS.claimMs)],
      ["handing out what is due, p99", `${ms(claim.p99)} ms`, "", ""],
      ["a worker with nothing to do", `${ms(idle.node + idle.database)} ms of CPU a second`, "", ""],
    ],
    notes: [
      `The receiver is another process, which answers at once. Rates are medians of ${ROUNDS} rounds: ${[...bare, ...alone, ...together].map((one) => one.toFixed(0)).join(", ")}. A delivery of the backlog takes one worker ${nodeMs.toFixed(2)} ms of Node's CPU time. The largest delay at ${STEADY_PER_SECOND}/s was ${ms(delays.max)} ms.`,
      `Handed out are ${DUE_EACH} deliveries of as many endpoints, among ${ENDPOINTS.toLocaleString("en")} endpoints and ${FUTURE_RETRIES.toLocaleString("en")} retries of the future. Of the idle worker's computing ${ms(idle.node)} ms are Node's, all its rounds included, and ${ms(idle.database)} ms the database's.`,
    ],
  };
}
