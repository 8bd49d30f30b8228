import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { EventType } from "@stoa/contract";
import fc from "fast-check";
import { type EventReader, openEventStream } from "../../../test/event-stream.ts";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { statementsOf } from "../../../test/statements.ts";
import { drain, until } from "../../../test/until.ts";
import { newUuid, toId } from "../../core/ids.ts";
import { publishEvent } from "../outbox/outbox.ts";
import { createDeliveries } from "../webhooks/create-deliveries.ts";
import { deleteOldEvents } from "./events.ts";

const DAY_MS = 86_400_000;
const BEGINNING = "evt_00000000000000000000000000";

let market: Market;
let owner: Client;
/** Those of this test, and how many there were in all. */
const open: EventReader[] = [];
let opened = 0;
before(async () => {
  market = await openMarket({ streamTimeouts: { pingMs: 40, authCheckMs: 40, stallMs: 400 } });
});
beforeEach(async () => {
  owner = await market.createUser();
});
afterEach(async () => {
  for (const listener of open.splice(0)) listener.close();
  await untilOpen(0);
});
after(() => market.close());

async function opens(query = "", headers: Record<string, string> = {}, who = owner, at = market.origin) {
  const listener = await openEventStream(at, who.key, `/v1/events/stream${query}`, headers);
  open.push(listener);
  if (listener.status === 200) opened++;
  return listener;
}

/** Resolves when the service has no more than so many. */
async function untilOpen(count: number): Promise<void> {
  const over = () => market.logs.filter((line) => line.includes("a stream is over")).length;
  await until("the streams are over", () => opened - over() <= count);
}
const after_ = (id: string) => ({ "last-event-id": id });

/** An event of somebody's, past the rooms; its id is answered. */
async function happens(comment = "hello", who = owner, pause = 0): Promise<string> {
  const { ctx } = market.service;
  const review = { id: "rev_1", productId: "prod_1", rating: 5, comment, authorId: "usr_1" };
  const id = await ctx.db.transaction().execute(async (tx) => {
    const written = await publishEvent(ctx, tx, [who.userId], "review.created", { review });
    if (pause > 0) await sleep(pause);
    return written;
  });
  return toId("evt", id);
}

/** An event of another type. */
async function passes(type: EventType, who = owner): Promise<string> {
  const { ctx } = market.service;
  return toId(
    "evt",
    await ctx.db
      .transaction()
      .execute((tx) => publishEvent(ctx, tx, [who.userId], type as "test", { message: type })),
  );
}

const handOut = () => drain(() => createDeliveries(market.service.ctx));
const idsOf = ({ events }: Pick<EventReader, "events">) => events.map(({ id }) => id);

/** All of an account, in the order in which they were handed out. */
async function inOrder(who = owner): Promise<string[]> {
  const { rows } = await market.query(
    `select e.id from events e join event_recipients r on r.event_id = e.id where r.user_id = $1 order by e.seq`,
    [who.userId],
  );
  return rows.map(({ id }) => toId("evt", id));
}

test("what happens is events with its id, its type and the bytes that webhooks deliver, and nothing of others", async () => {
  const listener = await opens();
  const { "content-type": type, "cache-control": caching, "x-accel-buffering": buffering } = listener.headers;
  assert.deepEqual([listener.status, type, caching, buffering], [200, "text/event-stream", "no-store", "no"]);
  await happens("of another", await market.createUser());
  const id = await happens("Schön\n— “wirklich” \u2028\r ✓");
  await handOut();
  const [event] = await listener.waitForEvents(1);
  const { rows } = await market.query("select body from events where body like $1", [`%${id}%`]);
  assert.deepEqual(event, { id, type: "review.created", data: rows[0].body });
});

test("what happened before is not events, and what was written before but not handed out is", async () => {
  await happens("before");
  await handOut();
  const id = await happens("under way");
  const listener = await opens();
  await handOut();
  await listener.waitForEvents(1);
  assert.deepEqual(idsOf(listener), [id]);
});

test("a stream of one process hears what another one hands out", async () => {
  const { origin } = await market.startNode();
  const listener = await opens("", {}, owner, origin);
  const id = await happens();
  await handOut();
  await listener.waitForEvents(1);
  assert.deepEqual(idsOf(listener), [id]);
});

test("whoever comes back with the last id hears what came after it", async () => {
  const ids = [await happens("1"), await happens("2"), await happens("3")];
  await handOut();
  for (const [query, headers] of [
    ["", after_(ids[0]!)],
    [`?lastEventId=${ids[0]}`, {}],
    // A browser asks its old address again, and brings what it heard since.
    [`?lastEventId=${ids[1]}`, after_(ids[0]!)],
    [`?lastEventId=${ids[0]}`, after_("")],
  ] as const) {
    const listener = await opens(query, headers);
    assert.deepEqual(idsOf({ events: await listener.waitForEvents(2) }), ids.slice(1), query);
  }
  assert.deepEqual(idsOf({ events: await (await opens("", after_(BEGINNING))).waitForEvents(3) }), ids);
});

test("a stream that is lost before its first event can be resumed, too", async () => {
  for (const input of ["a fresh account", "one with a past"]) {
    const listener = await opens();
    await listener.until(() => listener.lastEventId !== "");
    listener.close();
    const id = await happens(input);
    await handOut();
    const back = await opens("", after_(listener.lastEventId));
    assert.deepEqual(idsOf({ events: await back.waitForEvents(1) }), [id], input);
  }
});

test("an id that was read in the list, and not handed out yet, is not told again", async () => {
  await happens("handed out");
  await handOut();
  const [earlier, read, later] = [await happens("1"), await happens("2"), await happens("3")];
  const listener = await opens("", after_(read));
  await handOut();
  await listener.waitForEvents(2);
  assert.deepEqual(idsOf(listener), [earlier, later]);
});

test("an id that is unknown, another's, or older than what is kept is refused", async () => {
  const others = await happens("of another", await market.createUser());
  const old = await happens("old");
  await handOut();
  market.clock.forward(30 * DAY_MS + 1);
  await deleteOldEvents(market.service.ctx);
  for (const id of [others, old, toId("evt", newUuid(market.clock.now)), "nonsense", "17"]) {
    const reply = await owner.get("/v1/events/stream", after_(id));
    assertError(reply, 404, "EVENT_NOT_FOUND");
    assert.match(reply.body.error.message, /begin without Last-Event-ID/);
    assertError(await owner.get(`/v1/events/stream?lastEventId=${id}`), 404, "EVENT_NOT_FOUND");
  }
  const long = `/v1/events/stream?lastEventId=${"x".repeat(101)}`;
  assertError(await owner.get(long), 400, "INVALID_REQUEST", "lastEventId");
});

test("only the types that are asked for are events, however many others lie between", async () => {
  const first = await happens("first");
  for (let many = 0; many < 250; many++) await passes("purchase.completed");
  const [test_, last] = [await passes("test"), await happens("last")];
  await handOut();
  for (const query of ["?types=review.created,test", "?types=review.created&types=test"]) {
    const listener = await opens(query, after_(BEGINNING));
    await listener.waitForEvents(3);
    assert.deepEqual(idsOf(listener), [first, test_, last]);
  }
  assertError(
    await owner.get("/v1/events/stream?types=review.created,nope"),
    400,
    "INVALID_REQUEST",
    "types[1]",
  );
  assertError(await owner.get("/v1/events/stream?type=test"), 400, "INVALID_REQUEST", "type");
});

test("large events are read some at a time, and all are heard", async () => {
  const ids = [];
  for (let at = 0; at < 12; at++) ids.push(await happens(String(at).repeat(120_000)));
  await handOut();
  const listener = await opens("", after_(BEGINNING));
  await listener.waitForEvents(12);
  assert.deepEqual(idsOf(listener), ids);
});

test("nothing is lost or events twice over any reconnects, while several write and hand out at once", async () => {
  const plan = fc.record({
    writers: fc.array(fc.array(fc.nat({ max: 15 }), { minLength: 1, maxLength: 8 }), {
      minLength: 2,
      maxLength: 6,
    }),
    // After how many events the stream is lost, again and again.
    losses: fc.array(fc.nat({ max: 4 }), { minLength: 1, maxLength: 6 }),
  });
  await fc.assert(
    fc.asyncProperty(plan, async ({ writers, losses }) => {
      const who = await market.createUser();
      const total = writers.flat().length;
      let isWriting = true;
      const told: string[] = [];
      const hearing = (async () => {
        let last = BEGINNING;
        for (let at = 0; told.length < total; at++) {
          const listener = await opens("", after_(last), who);
          const most = losses[at % losses.length]! + 1;
          await listener.waitForEvents(Math.min(most, total - told.length));
          listener.close();
          told.push(...idsOf(listener));
          last = told.at(-1)!;
        }
      })();
      const handingOut = (async () => {
        while (isWriting) await Promise.all([handOut(), handOut()]);
      })();
      await Promise.all(
        writers.map(async (pauses) => {
          for (const pause of pauses) await happens("x", who, pause);
        }),
      ).finally(() => {
        isWriting = false;
      });
      await handingOut;
      await handOut();
      await hearing;
      assert.deepEqual(told, await inOrder(who));
    }),
    { numRuns: runs(12), endOnFailure: true },
  );
});

test("a silent stream is pinged", { timeout: 20_000 }, async () => {
  const listener = await opens();
  await listener.until(() => listener.pings >= 3);
  assert.deepEqual(listener.events, []);
});

test("whoever reads nothing is not read for, is cut off, and can go on where it stood", async () => {
  const { feed } = market.service.ctx;
  const COUNT = 120;
  for (let at = 0; at < COUNT; at++) await happens("x".repeat(200_000));
  await handOut();
  let read = 0;
  const next = feed.next;
  feed.next = async (...asked) => {
    const page = await next.apply(feed, asked);
    read += page.length;
    return page;
  };
  const listener = await opens("", after_(BEGINNING));
  listener.pause();
  await untilOpen(0);
  feed.next = next;
  // What the operating system takes of a connection is its own matter, and far less than all.
  assert.ok(read < COUNT / 2, `${read} were read for nobody`);
  listener.resume();
  assert.equal(await listener.ended, false);
  assert.ok(listener.events.length < COUNT / 2);
  const back = await opens("", after_(listener.lastEventId));
  await back.waitForEvents(COUNT - listener.events.length);
  assert.deepEqual([...idsOf(listener), ...idsOf(back)], await inOrder());
});

test("whoever goes away is forgotten", async () => {
  const listener = await opens();
  listener.close();
  await untilOpen(0);
  await happens();
  await handOut();
  assert.deepEqual(await statementsOf(() => sleep(500)), []);
});

test("a stream ends within seconds of the key, the session or the permission that opened it", async () => {
  const [key, less, others] = [
    await market.createUser(),
    await market.createUser(),
    await market.createUser(),
  ];
  const session = await market.createSession((await market.createUser()).userId);
  const listeners = [];
  for (const who of [key, less, session]) listeners.push(await opens("", {}, who));
  const undisturbed = await opens("", {}, others);
  await market.query("update api_keys set revoked_at = $2 where user_id = $1", [
    key.userId,
    market.clock.now,
  ]);
  await market.query("update api_keys set permissions = '{products:read}' where user_id = $1", [less.userId]);
  assert.equal((await session.post("/api/auth/logout")).status, 200);
  for (const listener of listeners) assert.equal(await listener.ended, true);
  const id = await happens("still heard", others);
  await handOut();
  assert.deepEqual(idsOf({ events: await undisturbed.waitForEvents(1) }), [id]);
});

test("an account has ten streams at a time", async () => {
  const other = await market.createUser();
  const attempts = await Promise.all(Array.from({ length: 25 }, () => opens()));
  const refused = attempts.filter(({ status }) => status !== 200);
  assert.deepEqual(
    refused.map(({ status }) => status),
    Array.from({ length: 15 }, () => 429),
  );
  const [first] = refused as [EventReader];
  await first.ended;
  const { error } = JSON.parse(first.text);
  assert.equal(error.code, "RATE_LIMIT_EXCEEDED");
  assert.match(error.message, /10 streams/);
  assert.equal(first.headers["retry-after"], "1");
  assert.equal((await opens("", {}, other)).status, 200);
  attempts.find(({ status }) => status === 200)!.close();
  await untilOpen(10);
  assert.equal((await opens()).status, 200);
});

test("many streams that hear nothing ask the database for one number, a few times a second", async () => {
  const others = await Promise.all(Array.from({ length: 5 }, () => market.createUser()));
  for (const who of others) for (let at = 0; at < 5; at++) await opens("", {}, who);
  await sleep(300);
  const statements = await statementsOf(() => sleep(1_000));
  const looks = statements.filter(
    (text) => text.includes("from events") || text.includes("event_recipients"),
  );
  assert.ok(looks.length >= 3 && looks.length <= 6, `${looks.length} looks`);
  assert.ok(looks.every((text) => text.includes("max(seq)")));
});

test("streams go on when the database was away, also those whose credential was asked for meanwhile", async () => {
  const listeners = [await opens(), await opens("", {}, await market.createSession(owner.userId))];
  const { pool } = market.service.ctx;
  const { query } = pool;
  const refused = { looks: 0, proofs: 0 };
  pool.query = (async ({ name }: { name?: string }) => {
    refused[name === "find_session" ? "proofs" : "looks"]++;
    throw Object.assign(new Error("away"), { code: "ECONNREFUSED" });
  }) as unknown as typeof query;
  try {
    for (let tries = 0; refused.looks < 2 || refused.proofs < 2; tries++) {
      assert.ok(tries < 1_000, `it was asked for too little: ${JSON.stringify(refused)}`);
      await sleep(20);
    }
  } finally {
    pool.query = query;
  }
  const id = await happens();
  await handOut();
  for (const listener of listeners)
    assert.deepEqual(idsOf({ events: await listener.waitForEvents(1) }), [id]);
});

test("all streams end at once when the service does, also those that nobody reads", async () => {
  const closing = await openMarket();
  const who = await closing.createUser();
  const { ctx } = closing.service;
  for (let at = 0; at < 60; at++)
    await ctx.db
      .transaction()
      .execute((tx) => publishEvent(ctx, tx, [who.userId], "test", { message: "x".repeat(250_000) }));
  await drain(() => createDeliveries(ctx));
  const silent = await openEventStream(closing.origin, who.key);
  const sockets: Socket[] = [];
  const note = (message: unknown) => void sockets.push((message as { socket: Socket }).socket);
  subscribe("http.server.request.start", note);
  const unread = await openEventStream(closing.origin, who.key, "/v1/events/stream", after_(BEGINNING));
  unread.pause();
  unsubscribe("http.server.request.start", note);
  await until("a socket is full", () => sockets.some((socket) => socket.writableNeedDrain));
  const begun = performance.now();
  await closing.close();
  assert.ok(performance.now() - begun < 2_000, "it waits for no reader");
  assert.equal(await silent.ended, true);
  unread.resume();
  assert.equal(await unread.ended, false);
});
