import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { runs } from "../../../test/full-size.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { startWebhookReceiver, type WebhookReceiver } from "../../../test/webhook-receiver.ts";
import { HOUR_MS, webhookHelpers } from "../../../test/webhooks.ts";
import { DAY_MS } from "../../core/dates.ts";
import { toUuid } from "../../core/ids.ts";
import { checkFailingEndpoints } from "./endpoint-health.ts";
import { runRecovery } from "./recoveries.ts";

let market: Market;
let receiver: WebhookReceiver;
const { deliver, deliveriesOf, forgetAll, happens, hasEndpoint, newDeliveryWorker } = webhookHelpers(
  () => market,
  () => receiver,
);
before(async () => {
  market = await openMarket();
  receiver = await startWebhookReceiver();
});
after(async () => {
  await market.close();
  await receiver.close();
});

const kinds = [
  ...["happens", "happens", "happens", "deliver", "deliver", "reap"],
  ...["off", "on", "on", "types", "all types", "move", "remove", "make"],
  ...["retry", "retry", "recover", "recover", "job", "job", "rotate", "test", "judge", "stats"],
] as const;
const action = fc.record({ kind: fc.constantFrom(...kinds), which: fc.nat({ max: 5 }) });
/** Several sequences of actions that run concurrently. */
const plan = fc.array(fc.array(action, { minLength: 3, maxLength: 8 }), { minLength: 3, maxLength: 5 });
const answers = fc.array(fc.constantFrom(200, 200, 200, 500, 500, 410, 429, 503, 0), {
  minLength: 5,
  maxLength: 20,
});

type Action = { kind: (typeof kinds)[number]; which: number };

/** Actions on one owner's endpoints. */
function createActions(owner: Client, endpoints: { id: string }[]) {
  const recoveries: string[] = [];
  const pick = (which: number) => endpoints[which % endpoints.length]!;
  const change = (which: number, json: object) => owner.patch(`/v1/webhooks/${pick(which).id}`, json);
  const actions: Record<Action["kind"], (which: number) => Promise<unknown>> = {
    happens: (which) => happens(owner, `${which}`),
    deliver: () => deliver(),
    reap: async () => {
      const worker = newDeliveryWorker();
      await worker.reclaimLeases();
      await worker.idle();
    },
    off: (which) => change(which, { enabled: false }),
    on: (which) => change(which, { enabled: true }),
    types: (which) => change(which, { eventTypes: ["payout.completed"] }),
    "all types": (which) => change(which, { eventTypes: null }),
    move: (which) => change(which, { url: `${receiver.url}/moved/${which}` }),
    remove: (which) => owner.delete(`/v1/webhooks/${pick(which).id}`),
    make: async () => endpoints.push(await hasEndpoint(owner)),
    retry: async (which) => {
      const { body } = await owner.get(`/v1/webhooks/${pick(which).id}/deliveries`);
      const some = body.data?.[which % Math.max(1, body.data.length)];
      return some && owner.post(`/v1/deliveries/${some.id}/retry`);
    },
    recover: async (which) => {
      const since = new Date(market.clock.now.getTime() - DAY_MS).toISOString();
      const { body } = await owner.post(`/v1/webhooks/${pick(which).id}/recover`, { since });
      if (body.success) recoveries.push(toUuid("rcv", body.data.id)!);
    },
    // As the job queue runs it: later, and sometimes twice.
    job: () =>
      Promise.all(recoveries.map((id) => runRecovery(market.service.ctx, id, new AbortController().signal))),
    rotate: (which) => owner.post(`/v1/webhooks/${pick(which).id}/rotate-secret`, {}),
    test: (which) => owner.post(`/v1/webhooks/${pick(which).id}/test`),
    judge: () => checkFailingEndpoints(market.service.ctx),
    stats: (which) => owner.get(`/v1/webhooks/${pick(which).id}/stats`),
  };
  return async (one: Action): Promise<void> => {
    const reply = (await actions[one.kind](one.which)) as { status?: number; text?: string } | undefined;
    assert.ok(!reply?.status || reply.status < 500, `${one.kind}: ${reply?.text}`);
  };
}

/** Conditions on every delivery while no worker runs. The first column names the fault. */
const FAULTS = `
  select 'leased' as fault, d.id from webhook_deliveries d where lease_token is not null
  union all select 'ended and due', id from webhook_deliveries where ended_at is not null and due_at is not null
  union all select 'neither ended nor due', id from webhook_deliveries where ended_at is null and due_at is null
  union all select 'waits for nothing', id from webhook_deliveries where status in ('pending', 'retrying') and due_at is null
  union all select 'waits for an endpoint that is off', d.id from webhook_deliveries d join webhook_endpoints e on e.id = d.endpoint_id
             where d.due_at is not null and (e.disabled_by is not null or e.deleted_at is not null)
  union all select 'its queue is not scheduled', d.id from webhook_deliveries d join webhook_queues l using (endpoint_id)
             where d.due_at is not null and greatest(l.next_due, l.blocked_until) > d.due_at + interval '2 seconds' and l.blocked_until <= d.due_at
  union all select 'a gap in its attempts', d.id from webhook_deliveries d
             where d.attempts <> (select count(distinct n) from webhook_attempts a where a.delivery_id = d.id and not is_late)
                or d.attempts <> (select count(*) from webhook_attempts a where a.delivery_id = d.id and not is_late)
                or d.attempts <> (select coalesce(max(n), 0) from webhook_attempts a where a.delivery_id = d.id and not is_late)
  union all select 'secrets of a removed endpoint', e.id from webhook_endpoints e join webhook_secrets s on s.endpoint_id = e.id
             where e.deleted_at is not null`;

async function assertNoFaults(when: string): Promise<void> {
  const { rows } = await market.query(FAULTS);
  assert.deepEqual(rows, [], when);
}

test("random actions beside workers: no delivery is stuck, lost or left leased", async () => {
  await fc.assert(
    fc.asyncProperty(plan, answers, async (sequences, replies) => {
      await forgetAll();
      let at = 0;
      receiver.answer = (response) => {
        const status = replies[at++ % replies.length]!;
        // 0: the receiver closes the connection.
        if (status === 0) response.destroy();
        else response.writeHead(status, status === 429 ? { "retry-after": "30" } : {}).end("x");
      };
      const owner = await market.createUser();
      const act = createActions(owner, [await hasEndpoint(owner), await hasEndpoint(owner)]);
      const perform = async (sequence: Action[]) => {
        for (const one of sequence) await act(one);
      };
      await Promise.all(sequences.map(perform));
      await act({ kind: "job", which: 0 });
      await deliver();
      await assertNoFaults("after all that");
      receiver.answer = 500;
      for (const hours of [0.1, 0.2, 1, 3, 8, 16, 32, 32]) {
        market.clock.forward(hours * HOUR_MS);
        await deliver();
      }
      await assertNoFaults("two days later");
      const { rows } = await market.query("select status from webhook_deliveries where due_at is not null");
      assert.deepEqual(rows, [], "no delivery is scheduled");
    }),
    { numRuns: runs(25) },
  );
  assert.deepEqual(
    market.logs.filter((line) =>
      /deadlock|run of the delivery worker failed|not be recorded|not attempted|"level":50/.test(line),
    ),
    [],
  );
});

test("endpoint disabled and enabled beside workers: every missed delivery can be recovered", async () => {
  await forgetAll();
  receiver.answer = 200;
  receiver.received.length = 0;
  const owner = await market.createUser();
  const endpoint = await hasEndpoint(owner);
  let isOver = false;
  const toggles = async () => {
    try {
      for (let n = 0; n < 10; n++) await owner.patch(`/v1/webhooks/${endpoint.id}`, { enabled: n % 2 === 1 });
    } finally {
      isOver = true;
    }
  };
  const courses = async () => {
    const worker = newDeliveryWorker();
    while (!isOver) await deliver(worker);
    await worker.idle();
  };
  await Promise.all([
    toggles(),
    courses(),
    courses(),
    ...Array.from({ length: 60 }, (_, n) => happens(owner, `${n}`)),
  ]);
  await deliver();
  await assertNoFaults("after the toggles");
  const since = new Date(market.clock.now.getTime() - HOUR_MS).toISOString();
  const { body } = await owner.post(`/v1/webhooks/${endpoint.id}/recover`, { since });
  await runRecovery(market.service.ctx, toUuid("rcv", body.data.id)!, new AbortController().signal);
  await deliver();
  const statuses = (await deliveriesOf(owner, endpoint)).map(({ status }: { status: string }) => status);
  assert.deepEqual([...new Set(statuses)], ["succeeded"]);
  assert.equal(statuses.length, 60);
  const ids = new Set(receiver.received.map(({ headers }) => headers["webhook-id"]));
  assert.equal(ids.size, 60, "every event is delivered");
});
