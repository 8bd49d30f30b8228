import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type EventType, eventData } from "@stoa/contract";
import { buyProduct, createDraft, createProduct } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { DAY_MS } from "../../core/dates.ts";
import { newUuid, toId, toUuid } from "../../core/ids.ts";
import { publishEvent } from "../outbox/outbox.ts";
import { deleteOldEvents } from "./events.ts";

let market: Market;
let story: Story;
before(async () => {
  market = await openMarket();
  story = await createStory();
});
after(() => market.close());

const eventsOf = async (who: Client, query = "limit=100") => (await who.get(`/v1/events?${query}`)).body;
const typesOf = async (who: Client, query?: string) =>
  (await eventsOf(who, query)).data.map(({ type }: { type: string }) => type);

interface Story {
  seller: Client;
  buyer: Client;
}

/** A seller with one event of each published type. */
async function createStory(): Promise<Story> {
  const [seller, buyer] = [await market.createUser(), await market.createUser()];
  const productId = await createProduct(seller);
  await seller.patch(`/v1/products/${productId}`, {
    title: "Changed",
    content: "Now {{topic}} in {{language=English}}",
  });
  await buyProduct(buyer, productId);
  await buyer.post(`/v1/products/${productId}/reviews`, {
    rating: 5,
    comment: "Schön — “wirklich” \u2028 ✓",
  });
  await seller.post(`/v1/products/${productId}/unpublish`);
  return { seller, buyer };
}

test("GET /v1/events: own events, newest first", async () => {
  const { seller, buyer } = story;
  assert.deepEqual(await typesOf(seller), [
    "product.unpublished",
    "review.created",
    "purchase.completed",
    "product.updated",
    "product.published",
  ]);
  assert.deepEqual(await typesOf(buyer), ["purchase.completed"]);
});

test("event data: match the schema of their type", async () => {
  const { seller } = story;
  for (const { id, type, created, data, ...others } of (await eventsOf(seller)).data) {
    assert.match(id, /^evt_[0-9a-z]{26}$/);
    assert.equal(created, market.clock.now.toISOString());
    assert.deepEqual(others, {});
    assert.deepEqual(eventData[type as EventType].parse(data), data);
  }
});

test("list and single event: return the stored bytes", async () => {
  const { seller } = story;
  const { text, body } = await seller.get("/v1/events?limit=100");
  for (const event of body.data) {
    const { rows } = await market.query("select body from events where id = $1", [toUuid("evt", event.id)]);
    assert.ok(text.includes(rows[0].body));
    assert.deepEqual(JSON.parse(rows[0].body), event);
    const one = await seller.get(`/v1/events/${event.id}`);
    assert.ok(one.text.includes(`"data":${rows[0].body}`), one.text);
  }
});

test("type and page: filter and page the list", async () => {
  const { seller } = story;
  assert.deepEqual(await typesOf(seller, "type=product.updated"), ["product.updated"]);
  assert.deepEqual(await eventsOf(seller, "type=no.such").then(({ data, meta }) => [data, meta.total]), [
    [],
    0,
  ]);
  const all = (await eventsOf(seller)).data;
  const pages = [await eventsOf(seller, "limit=3"), await eventsOf(seller, "limit=3&page=2")];
  assert.deepEqual(
    pages.flatMap(({ data }) => data),
    all,
  );
  assert.deepEqual([pages[0].meta.total, pages[1].meta.total], [5, 5]);
  assertError(await seller.get("/v1/events?types=x"), 400, "INVALID_REQUEST", "types");
});

test("another user's event: 404", async () => {
  const { seller } = story;
  const stranger = await market.createUser();
  const [event] = (await eventsOf(seller)).data;
  for (const id of [event.id, toId("evt", newUuid(new Date())), "nonsense"]) {
    assertError(await stranger.get(`/v1/events/${id}`), 404, "EVENT_NOT_FOUND");
  }
  assert.deepEqual((await eventsOf(stranger)).data, []);
});

test("key without the events permission: 403", async () => {
  const reader = await market.createUser({ permissions: ["products:read", "purchases:read"] });
  assert.equal(assertError(await reader.get("/v1/events"), 403, "UNAUTHORIZED").required, "webhooks:write");
});

test("change that is rolled back: publishes no event", async () => {
  const { ctx } = market.service;
  const user = await market.createUser();
  const failing = ctx.db.transaction().execute(async (tx) => {
    await publishEvent(ctx, tx, [user.userId], "test", { message: "never" });
    throw new Error("the change failed");
  });
  await assert.rejects(failing, /the change failed/);
  assert.deepEqual((await eventsOf(user)).data, []);
});

test("recipient named twice: gets one event", async () => {
  const { ctx } = market.service;
  const user = await market.createUser();
  await ctx.db
    .transaction()
    .execute((tx) => publishEvent(ctx, tx, [user.userId, user.userId], "test", { message: "hello" }));
  assert.equal((await eventsOf(user)).meta.total, 1);
});

test("events of one moment: are in the order of their creation", async () => {
  const seller = await market.createUser();
  const ids: string[] = [];
  for (let at = 0; at < runs(30); at++) ids.push(await createProduct(seller));
  const listed = (await eventsOf(seller)).data.map(
    (event: { data: { product: { id: string } } }) => event.data.product.id,
  );
  assert.deepEqual(listed.toReversed(), ids);
});

test("draft created: publishes nothing", async () => {
  const seller = await market.createUser();
  await createDraft(seller);
  assert.deepEqual((await eventsOf(seller)).data, []);
});

test("events older than 30 days: are deleted with their recipients", async () => {
  const { seller, buyer } = story;
  const [event] = (await eventsOf(buyer)).data;
  market.clock.forward(30 * DAY_MS);
  await deleteOldEvents(market.service.ctx);
  assert.equal((await eventsOf(seller)).meta.total, 5);
  market.clock.forward(1);
  await deleteOldEvents(market.service.ctx);
  assert.equal((await eventsOf(seller)).meta.total, 0);
  assertError(await buyer.get(`/v1/events/${event.id}`), 404, "EVENT_NOT_FOUND");
  const { rows } = await market.query("select count(*) from event_recipients");
  assert.equal(rows[0].count, 0);
});
