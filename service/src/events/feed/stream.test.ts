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
import { statementsOfProcess } from "../../../test/statements.ts";
import { becomes, drain, until } from "../../../test/until.ts";
import { DAY_MS } from "../../core/dates.ts";
import { newUuid, toId } from "../../core/ids.ts";
import { publishEvent } from "../outbox/outbox.ts";
import { createDeliveries } from "../webhooks/create-deliveries.ts";
import { deleteOldEvents } from "./events.ts";

const BEGINNING = "evt_00000000000000000000000000";

let market: Market;
let owner: Client;
/** A stream begins with the values of that moment. */
const streamTimeouts = { pingMs: 40, authCheckMs: 40, stallMs: 30_000 };
/** Open streams of this test, and the number of all that were opened. */
const open: EventReader[] = [];
let opened = 0;
before(async () => {
  market = await openMarket({ streamTimeouts });
});
beforeEach(async () => {
  owner = await market.createUser();
});
afterEach(async () => {
  for (const listener of open.splice(0)) listener.close();
  await untilOpen(0);
});
after(() => market.close());

async function openStream(query = "", headers: Record<string, string> = {}, who = owner, at = market.origin) {
  const listener = await openEventStream(at, who.key, `/v1/events/stream${query}`, headers);
  open.push(listener);
  if (listener.status === 200) opened++;
  return listener;
}

/** Resolves when the service has at most this many open streams. */
async function untilOpen(count: number): Promise<void> {
  const over = () => market.logs.filter((line) => line.includes("a stream is over")).length;
  await until("the streams are over", () => opened - over() <= count);
}
const after_ = (id: string) => ({ "last-event-id": id });

/** Publishes an event directly and returns its id. */
async function publishReview(comment = "hello", who = owner, pause = 0): Promise<string> {
  const { ctx } = market.service;
  const review = { id: "rev_1", productId: "prod_1", rating: 5, comment, authorId: "usr_1" };
  const id = await ctx.db.transaction().execute(async (tx) => {
    const written = await publishEvent(ctx, tx, [who.userId], "review.created", { review });
    if (pause > 0) await sleep(pause);
    return written;
  });
  return toId("evt", id);
}

/** Publishes an event of another type. */
async function publishType(type: EventType, who = owner): Promise<string> {
  const { ctx } = market.service;
  return toId(
    "evt",
    await ctx.db
      .transaction()
      .execute((tx) => publishEvent(ctx, tx, [who.userId], type as "test", { message: type })),
  );
}

const fanOut = () => drain(() => createDeliveries(market.service.ctx));
const idsOf = ({ events }: Pick<EventReader, "events">) => events.map(({ id }) => id);

/** The ids of an account's events, in the order of their numbers. */
async function inOrder(who = owner): Promise<string[]> {
  const { rows } = await market.query(
    `select e.id from events e join event_recipients r on r.event_id = e.id where r.user_id = $1 order by e.seq`,
    [who.userId],
  );
  return rows.map(({ id }) => toId("evt", id));
}

test("new event: is sent with id, type and the webhook's bytes, and no event of others", async () => {
  const listener = await openStream();
  const { "content-type": type, "cache-control": caching, "x-accel-buffering": buffering } = listener.headers;
  assert.deepEqual([listener.status, type, caching, buffering], [200, "text/event-stream", "no-store", "no"]);
  await publishReview("of another", await market.createUser());
  const id = await publishReview("Schön\n— “wirklich” \u2028\r ✓");
  await fanOut();
  const [event] = await listener.waitForEvents(1);
  const { rows } = await market.query("select body from events where body like $1", [`%${id}%`]);
  assert.deepEqual(event, { id, type: "review.created", data: rows[0].body });
});

test("older events: are not sent; events without a number are", async () => {
  for (const comment of ["first", "second"]) await publishReview(comment);
  await fanOut();
  const id = await publishReview("under way");
  const listener = await openStream();
  await fanOut();
  await listener.waitForEvents(1);
  assert.deepEqual(idsOf(listener), [id]);
});

test("event numbered by another process: is sent", async () => {
  const { origin } = await market.startNode();
  const listener = await openStream("", {}, owner, origin);
  const id = await publishReview();
  await fanOut();
  await listener.waitForEvents(1);
  assert.deepEqual(idsOf(listener), [id]);
});

test("Last-Event-ID: resumes after that event", async () => {
  const ids = [await publishReview("1"), await publishReview("2"), await publishReview("3")];
  await fanOut();
  for (const [query, headers] of [
    ["", after_(ids[0]!)],
    [`?lastEventId=${ids[0]}`, {}],
    // A browser repeats its first URL, with the id of the last event.
    [`?lastEventId=${ids[1]}`, after_(ids[0]!)],
    [`?lastEventId=${ids[0]}`, after_("")],
  ] as const) {
    const listener = await openStream(query, headers);
    assert.deepEqual(idsOf({ events: await listener.waitForEvents(2) }), ids.slice(1), query);
  }
  assert.deepEqual(idsOf({ events: await (await openStream("", after_(BEGINNING))).waitForEvents(3) }), ids);
});

test("stream lost before its first event: can be resumed", async () => {
  for (const input of ["an account without events", "an account with events"]) {
    const listener = await openStream();
    await listener.until(() => listener.lastEventId !== "");
    listener.close();
    const id = await publishReview(input);
    await fanOut();
    const back = await openStream("", after_(listener.lastEventId));
    assert.deepEqual(idsOf({ events: await back.waitForEvents(1) }), [id], input);
  }
});

test("Last-Event-ID of an event without a number: is not sent again", async () => {
  await publishReview("handed out");
  await fanOut();
  const [earlier, read, later] = [
    await publishReview("1"),
    await publishReview("2"),
    await publishReview("3"),
  ];
  const listener = await openStream("", after_(read));
  await fanOut();
  await listener.waitForEvents(2);
  assert.deepEqual(idsOf(listener), [earlier, later]);
});

test("unknown, deleted or another user's Last-Event-ID: is refused", async () => {
  const others = await publishReview("of another", await market.createUser());
  const old = await publishReview("old");
  await fanOut();
  market.clock.forward(30 * DAY_MS + 1);
  await deleteOldEvents(market.service.ctx);
  for (const id of [others, old, toId("evt", newUuid(market.clock.now)), "nonsense", "17"]) {
    const reply = await owner.get("/v1/events/stream", after_(id));
    assertError(reply, 404, "EVENT_NOT_FOUND");
    assert.match(reply.body.error.message, /reconnect without it/);
    assertError(await owner.get(`/v1/events/stream?lastEventId=${id}`), 404, "EVENT_NOT_FOUND");
  }
  const long = `/v1/events/stream?lastEventId=${"x".repeat(101)}`;
  assertError(await owner.get(long), 400, "INVALID_REQUEST", "lastEventId");
});

test("types: only these are sent, whatever lies between", async () => {
  const first = await publishReview("first");
  for (let many = 0; many < 250; many++) await publishType("purchase.completed");
  const [test_, last] = [await publishType("test"), await publishReview("last")];
  await fanOut();
  for (const query of ["?types=review.created,test", "?types=review.created&types=test"]) {
    const listener = await openStream(query, after_(BEGINNING));
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

test("large events: are read in pages, and all are sent", async () => {
  const ids = [];
  for (let at = 0; at < 12; at++) ids.push(await publishReview(String(at).repeat(120_000)));
  await fanOut();
  const listener = await openStream("", after_(BEGINNING));
  await listener.waitForEvents(12);
  assert.deepEqual(idsOf(listener), ids);
});

test("random reconnects with concurrent writers: no event is lost or repeated", async () => {
  const plan = fc.record({
    writers: fc.array(fc.array(fc.nat({ max: 15 }), { minLength: 1, maxLength: 8 }), {
      minLength: 2,
      maxLength: 6,
    }),
    // After how many events the stream breaks, again and again.
    losses: fc.array(fc.nat({ max: 4 }), { minLength: 1, maxLength: 6 }),
  });
  await fc.assert(
    fc.asyncProperty(plan, async ({ writers, losses }) => {
      const who = await market.createUser();
      const total = writers.flat().length;
      let isWriting = true;
      const received: string[] = [];
      const hearing = (async () => {
        let last = BEGINNING;
        for (let at = 0; received.length < total; at++) {
          const listener = await openStream("", after_(last), who);
          const most = losses[at % losses.length]! + 1;
          await listener.waitForEvents(Math.min(most, total - received.length));
          listener.close();
          received.push(...idsOf(listener));
          last = received.at(-1)!;
        }
      })();
      const handingOut = (async () => {
        while (isWriting) await Promise.all([fanOut(), fanOut()]);
      })();
      await Promise.all(
        writers.map(async (pauses) => {
          for (const pause of pauses) await publishReview("x", who, pause);
        }),
      ).finally(() => {
        isWriting = false;
      });
      await handingOut;
      await fanOut();
      await hearing;
      assert.deepEqual(received, await inOrder(who));
    }),
    { numRuns: runs(12), endOnFailure: true },
  );
});

test("silent stream: gets pings", { timeout: 20_000 }, async () => {
  const listener = await openStream();
  await listener.until(() => listener.pings >= 3);
  assert.deepEqual(listener.events, []);
});

test("client that does not read: is not polled for, disconnected, and can resume", async () => {
  const { feed } = market.service.ctx;
  const COUNT = 120;
  for (let at = 0; at < COUNT; at++) await publishReview("x".repeat(200_000));
  await fanOut();
  let read = 0;
  const next = feed.next;
  feed.next = async (...args) => {
    const page = await next.apply(feed, args);
    read += page.length;
    return page;
  };
  // No other stream may stall while the machine is busy.
  const { stallMs } = streamTimeouts;
  streamTimeouts.stallMs = 400;
  const listener = await openStream("", after_(BEGINNING)).finally(() => {
    streamTimeouts.stallMs = stallMs;
  });
  listener.pause();
  await untilOpen(0);
  feed.next = next;
  // The operating system buffers some of a connection, but far less than all events.
  assert.ok(read < COUNT / 2, `${read} were read without a reader`);
  listener.resume();
  assert.equal(await listener.ended, false);
  assert.ok(listener.events.length < COUNT / 2);
  const back = await openStream("", after_(listener.lastEventId));
  await back.waitForEvents(COUNT - listener.events.length);
  assert.deepEqual([...idsOf(listener), ...idsOf(back)], await inOrder());
});

test("client that disconnects: frees its stream", async () => {
  const listener = await openStream();
  listener.close();
  await untilOpen(0);
  await publishReview();
  await fanOut();
  // A request does not wait for this write.
  await until("the last use is stored", async () => {
    const { rows } = await market.query("select last_used_at from api_keys where user_id = $1", [
      owner.userId,
    ]);
    return rows[0].last_used_at;
  });
  assert.deepEqual(await statementsOfProcess(() => sleep(500)), []);
});

test("key, session or permission ends: the stream ends within seconds", async () => {
  const [key, less, others] = [
    await market.createUser(),
    await market.createUser(),
    await market.createUser(),
  ];
  const session = await market.createSession((await market.createUser()).userId);
  const listeners = [];
  for (const who of [key, less, session]) listeners.push(await openStream("", {}, who));
  const undisturbed = await openStream("", {}, others);
  await market.query("update api_keys set revoked_at = $2 where user_id = $1", [
    key.userId,
    market.clock.now,
  ]);
  await market.query("update api_keys set permissions = '{products:read}' where user_id = $1", [less.userId]);
  assert.equal((await session.post("/api/auth/logout")).status, 200);
  for (const listener of listeners) assert.equal(await listener.ended, true);
  const id = await publishReview("still received", others);
  await fanOut();
  assert.deepEqual(idsOf({ events: await undisturbed.waitForEvents(1) }), [id]);
});

test("ten streams: the limit of an account", async () => {
  const other = await market.createUser();
  const attempts = await Promise.all(Array.from({ length: 25 }, () => openStream()));
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
  assert.equal((await openStream("", {}, other)).status, 200);
  attempts.find(({ status }) => status === 200)!.close();
  await untilOpen(10);
  assert.equal((await openStream()).status, 200);
});

test("many idle streams: one small query several times a second", async () => {
  const others = await Promise.all(Array.from({ length: 5 }, () => market.createUser()));
  for (const who of others) for (let at = 0; at < 5; at++) await openStream("", {}, who);
  const pollsDuring = async (ms: number): Promise<string[]> =>
    (await statementsOfProcess(() => sleep(ms))).filter(
      (text) => text.includes("from events") || text.includes("event_recipients"),
    );
  const isSmall = (text: string) => text.includes("max(seq)");
  // The first poll of a stream reads the events since its start. Two small ones show that none is behind.
  await becomes(
    () => pollsDuring(500),
    (polls) => polls.length >= 2 && polls.every(isSmall),
    "only small polls",
  );
  const pollForASecond = async (): Promise<number> => {
    const begun = performance.now();
    const polls = await pollsDuring(1_000);
    const most = 1 + Math.floor((performance.now() - begun) / 200);
    assert.ok(polls.length <= most, `${polls.length} polls, at most ${most}`);
    assert.ok(polls.every(isSmall));
    return polls.length;
  };
  // A busy machine delays polls; it never adds any.
  await becomes(pollForASecond, (polls) => polls >= 3, "three polls in a second");
});

test("database outage: streams continue, also those whose credential was checked meanwhile", async () => {
  const listeners = [await openStream(), await openStream("", {}, await market.createSession(owner.userId))];
  const { pool, notifications } = market.service.ctx;
  const { query } = pool;
  const refused = { polls: 0, authChecks: 0 };
  // Without a connection, cached sessions are not trusted.
  notifications.areCurrent = () => false;
  pool.query = (async ({ name }: { name?: string }) => {
    refused[name === "find_session" ? "authChecks" : "polls"]++;
    throw Object.assign(new Error("away"), { code: "ECONNREFUSED" });
  }) as unknown as typeof query;
  try {
    await until("queries have failed", () => refused.polls >= 2 && refused.authChecks >= 2);
  } finally {
    pool.query = query;
    Reflect.deleteProperty(notifications, "areCurrent");
  }
  const id = await publishReview();
  await fanOut();
  for (const listener of listeners)
    assert.deepEqual(idsOf({ events: await listener.waitForEvents(1) }), [id]);
});

test("shutdown: all streams end at once, also those without a reader", async (t) => {
  // Closing that waits for a reader never ends.
  const closing = await openMarket({ graceMs: DAY_MS, streamTimeouts: { stallMs: DAY_MS } });
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
  // Without the time in which the market drops its database.
  let closingMs = Number.POSITIVE_INFINITY;
  const close = closing.service.close.bind(closing.service);
  t.mock.method(closing.service, "close", async () => {
    const begun = performance.now();
    await close();
    closingMs = performance.now() - begun;
  });
  await closing.close();
  assert.ok(closingMs < 2_000, "closing waits for no reader");
  assert.equal(await silent.ended, true);
  unread.resume();
  assert.equal(await unread.ended, false);
});
