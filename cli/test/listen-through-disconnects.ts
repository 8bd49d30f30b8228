import assert from "node:assert/strict";
import { type Service, startService } from "@stoa/service/app.ts";
import { toId } from "@stoa/service/core/ids.ts";
import { publishEvent } from "@stoa/service/events/outbox/outbox.ts";
import { createDeliveries } from "@stoa/service/events/webhooks/create-deliveries.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { drain, until } from "@stoa/service/test/until.ts";
import { startCuttingProxy } from "./cutting-proxy.ts";
import { startEventReceiver } from "./event-receiver.ts";
import { openCommandLine } from "./stoa.ts";

const BATCH = 50;

/** Events of an account, written and numbered as the service does it. */
export async function publishEvents({ ctx }: Service, { userId }: Client, count: number): Promise<void> {
  for (let at = 0; at < count; at += BATCH)
    await ctx.db.transaction().execute(async (tx) => {
      for (let n = at; n < Math.min(at + BATCH, count); n++)
        await publishEvent(ctx, tx, [userId], "test", { message: `Event ${n}` });
    });
  await drain(() => createDeliveries(ctx));
}

/** The ids of an account's events, in the order of their numbers. */
export async function listEventIds(market: Market, { userId }: Client): Promise<string[]> {
  const { rows } = await market.query(
    "select event_id from event_recipients where user_id = $1 order by seq",
    [userId],
  );
  return rows.map(({ event_id }) => toId("evt", event_id));
}

/**
 * `stoa listen` gets events while its connection breaks again and again: once because the service restarts, once because the command
 * itself is killed, and otherwise by a cut. Returns the events in order, and what arrived.
 */
export async function listenThroughDisconnects({
  events,
  disconnects,
}: {
  events: number;
  disconnects: number;
}) {
  const market = await openMarket();
  const { config, now, log } = market.service.ctx;
  const startServing = () => startService(config, { target: market.target, maxConnections: 4 }, { now, log });
  let serving = await startServing();
  const proxy = await startCuttingProxy(serving.origin);
  const receiver = await startEventReceiver();
  const owner = await market.createUser();
  const stoa = await openCommandLine({ origin: proxy.origin, key: owner.key });
  const listen = () => stoa.start(["listen", "--forward-to", receiver.address]);
  let command = listen();
  await until("the command listens", () => command.output.stderr.includes("Waiting"));

  const part = Math.ceil(events / disconnects);
  for (let published = 0, n = 0; published < events; published += part, n++) {
    const count = Math.min(part, events - published);
    await publishEvents(market.service, owner, count);
    // Cuts in the middle of what is on its way.
    await until("half of the new events arrive", () => receiver.received.length >= published + count / 2);
    if (n === Math.floor(disconnects / 3)) {
      await serving.close();
      serving = await startServing();
      proxy.moveTo(serving.origin);
    } else if (n === Math.floor((disconnects * 2) / 3)) {
      command.child.kill("SIGKILL");
      await command.ended;
      command = listen();
    } else proxy.cut();
  }
  const sent = await listEventIds(market, owner);
  await until("all events arrive", () => new Set(receiver.ids()).size === sent.length);
  command.child.kill("SIGINT");
  assert.equal((await command.ended).code, 130);
  await Promise.all([receiver.close(), proxy.close(), stoa.remove()]);
  await serving.close();
  await market.close();
  return { sent, received: receiver.ids() };
}

/** At least once: the event that was on its way at kill -9 may come again. */
export function assertInOrder({ sent, received }: { sent: string[]; received: string[] }): void {
  const again = received.filter((id, at) => received.indexOf(id) !== at);
  assert.ok(again.length <= 1, `${again.length} events came again`);
  assert.deepEqual(
    received.filter((id, at) => received[at - 1] !== id),
    sent,
  );
}
