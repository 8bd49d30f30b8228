import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createUser } from "@stoa/service/accounts/people/users.ts";
import type { Context, Member } from "@stoa/service/core/context.ts";
import { toId } from "@stoa/service/core/ids.ts";
import { listOwnEvents } from "@stoa/service/events/feed/events.ts";
import { deleteEventsBefore } from "@stoa/service/events/outbox/queries.ts";
import { listOwnDeliveries } from "@stoa/service/events/webhooks/deliveries.ts";
import { createEndpoint, listAllEndpointsForAdmin } from "@stoa/service/events/webhooks/endpoints.ts";
import { startEmbedded } from "@stoa/service/platform/db/embedded.ts";
import type { Options } from "../options.ts";
import { atEnd } from "../processes.ts";
import { quantilesOf } from "../quantile.ts";
import { comparedWithAim, ms, type Report } from "../report.ts";
import { LOADING, withBase } from "../shop.ts";

const BENCH = { ip: "127.0.0.1", userAgent: null, requestId: "bench" };

const OWN = 1_000_000;
const ACCOUNTS = 100;
const OF_OTHERS = 200_000;
const ENDPOINTS = 100_000;
const ASKED = 100;
const BATCHES = 100;
const BATCH = 500;
const DAYS = 29;
const AIM_MS = 50;

type Ask = () => Promise<unknown>;

/** Lists of an account with a million events, each delivered once, among others; then retention deletes the oldest. */
export async function measureWebhookLists(_options: Options): Promise<Report> {
  const dataDir = await mkdtemp(join(tmpdir(), "stoa-bench-webhook-lists-"));
  atEnd(() => rm(dataDir, { recursive: true, force: true }));
  const database = await startEmbedded(dataDir, { settings: LOADING });
  atEnd(() => database.stop());
  return withBase(dataDir, { target: database.connection }, async ({ ctx }) => {
    const { owner, endpointId } = await openAccounts(ctx);
    await fill(ctx);
    const rows: string[][] = [];
    for (const [name, ask] of asks(ctx, owner, endpointId)) rows.push(await rowOf(name, ask, ASKED));
    const before = new Date(Date.now() - (DAYS / 2) * 86_400_000);
    const forget = () => deleteEventsBefore(ctx.db, before, BATCH);
    rows.push(await rowOf(`${BATCH} old events are forgotten, with all that hangs on them`, forget, BATCHES));
    return {
      columns: ["what", "p50 ms", "p99 ms", "aim", "met"],
      rows,
      notes: [
        `The account has ${OWN.toLocaleString("en")} events, one delivery of each, beside ${OF_OTHERS.toLocaleString("en")} of ${ACCOUNTS} others and ${ENDPOINTS.toLocaleString("en")} endpoints. Each is asked ${ASKED} times of the service's own verbs, without the door; a page has 20, a total is counted to 10,000.`,
      ],
    };
  });
}

async function openAccounts(ctx: Context): Promise<{ owner: Member; endpointId: string }> {
  const opened: { owner: Member; endpointId: string }[] = [];
  for (let n = 0; n <= ACCOUNTS; n++) {
    const userId = await createUser(ctx, { email: `lists${n}@bench.example`, name: "Lists" });
    const owner: Member = {
      ...{ kind: "key", keyId: "bench", userId, role: "user", plan: "free", quota: null },
      permissions: new Set(["webhooks:write"]),
    };
    const { id } = await createEndpoint(
      ctx,
      owner,
      {
        ...{ url: "https://hooks.example.com/", description: "", eventTypes: null, enabled: true },
        ...{ signatureContent: "timestamp_body", signaturePrefix: false },
      },
      BENCH,
    );
    opened.push({ owner, endpointId: id });
  }
  return opened[0]!;
}

/** In order of time; one event in 5,000 is a payout, one delivery in 100 failed. */
async function fill({ pool }: Context): Promise<void> {
  const all = OWN + OF_OTHERS;
  const at = `now() - interval '${DAYS} days' * (1 - n::float8 / ${all})`;
  const v7 = `(lpad(to_hex((extract(epoch from ${at}) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || '8' || lpad(to_hex(n), 15, '0'))::uuid`;
  const isOwn = `n % ${Math.round(all / OF_OTHERS)} <> 0`;
  for (const statement of [
    `create table made as
       select ${v7} as id, n, ${at} as at, e.id as endpoint_id, e.user_id,
              case when n % 5000 = 7 then 'payout.completed' when n % 3 = 0 then 'review.created' else 'purchase.completed' end as type
         from generate_series(1, ${all}) n
         join (select id, user_id, row_number() over (order by id) - 1 as nth from webhook_endpoints) e
           on e.nth = case when ${isOwn} then 0 else 1 + n / 6 % ${ACCOUNTS} end`,
    `insert into events (id, type, body, seq, created_at)
       select id, type, '{"type":"' || type || '","data":{"comment":"It does what it says, and the third example saved me an afternoon."}}', n, at from made order by n`,
    "insert into event_recipients (user_id, event_id, type, seq) select user_id, id, type, n from made order by n",
    `insert into webhook_deliveries (id, event_id, endpoint_id, status, attempts, scheduled_attempts, created_at, ended_at)
       select id, id, endpoint_id, case when n % 100 = 1 then 'failed' else 'succeeded' end, 1, 1, at, at from made order by n`,
    `insert into webhook_attempts (id, delivery_id, n, is_late, started_at, duration_ms, url, request_headers, status, response_headers, response_body)
       select id, id, 1, false, at, 40, 'https://hooks.example.com/', '{"webhook-id":"evt"}', 200, '{}', 'ok' from made order by n`,
    "drop table made",
    `insert into webhook_endpoints (id, user_id, url, description, signature_content, signature_prefix, disabled_by, failing_since, created_at, updated_at)
       select gen_random_uuid(), (select user_id from webhook_endpoints limit 1), 'https://hooks.example.com/', '', 'body', false,
              case when n % 5000 = 0 then 'failing' end, case when n % 5000 = 1 then now() end, now(), now() from generate_series(1, ${ENDPOINTS}) n`,
    "vacuum analyze",
  ])
    await pool.query(statement);
}

function asks(ctx: Context, owner: Member, endpointId: string): [string, Ask][] {
  const first = { page: 1, limit: 20 };
  const deep = { page: OWN / 40, limit: 20 };
  const events = (query: object, paging = first) => listOwnEvents(ctx, owner, { ...paging, ...query });
  const log = (query: object, paging = first) =>
    listOwnDeliveries(ctx, owner, endpointId, { ...paging, ...query });
  const all = (query: object) => listAllEndpointsForAdmin(ctx, { ...first, ...query });
  return [
    ["events, the first page", () => events({})],
    ["events of a common type", () => events({ type: "review.created" })],
    ["events of a rare type", () => events({ type: "payout.completed" })],
    ["events of a type that there is not", () => events({ type: "product.updated" })],
    ["events, half a million in", () => events({}, deep)],
    ["deliveries to an endpoint, the first page", () => log({})],
    ["deliveries that failed", () => log({ status: "failed" })],
    ["deliveries that wait", () => log({ status: "retrying" })],
    ["deliveries, half a million in", () => log({}, deep)],
    ["endpoints of everybody", () => all({})],
    ["endpoints that are off", () => all({ status: "disabled" })],
    ["endpoints that fail", () => all({ status: "failing" })],
    ["endpoints of one owner", () => all({ owner: toId("usr", owner.userId) })],
  ];
}

async function rowOf(name: string, ask: Ask, times: number): Promise<string[]> {
  const durations: number[] = [];
  for (let n = 0; n < times; n++) {
    const begun = performance.now();
    await ask();
    durations.push(performance.now() - begun);
  }
  const { p50, p99 } = quantilesOf(durations);
  const [figure, aim, met] = comparedWithAim(ms(p50), `p50 < ${AIM_MS} ms`, p50 < AIM_MS);
  return [name, figure!, ms(p99), aim!, met!];
}
