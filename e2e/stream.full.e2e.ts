import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { toId } from "@stoa/service/core/ids.ts";
import { publishEvent } from "@stoa/service/events/outbox/outbox.ts";
import { createDeliveries } from "@stoa/service/events/webhooks/create-deliveries.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { becomes } from "@stoa/service/test/until.ts";
import type { Browser } from "playwright-core";
import { openBrowser, openContext, openPage } from "./browser.ts";

interface StreamState {
  received: [lastEventId: string, id: string][];
  readyState: number;
}

let market: Market;
let browser: Browser;
let owner: Client;
before(async () => {
  market = await openMarket();
  owner = await market.createUser();
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await market.close();
});

async function publish(): Promise<string> {
  const { ctx } = market.service;
  const id = await ctx.db
    .transaction()
    .execute((tx) => publishEvent(ctx, tx, [owner.userId], "test", { message: "hello" }));
  await createDeliveries(ctx);
  return toId("evt", id);
}

test("event stream in a browser's EventSource: receives events, also those during a disconnect", async () => {
  const context = await openContext(browser);
  const { page } = await openPage(context, market.origin);
  await page.goto(`${market.origin}/dev/hooks`);
  await page.evaluate(`new Promise((resolve) => {
    window.received = [];
    window.source = new EventSource("/v1/events/stream?api_key=${owner.key}");
    source.addEventListener("test", ({ lastEventId, data }) => received.push([lastEventId, JSON.parse(data).id]));
    source.onopen = resolve;
  })`);
  const state = async () =>
    (await page.evaluate("({ received, readyState: source.readyState })")) as StreamState;
  const hasEvents = (count: number) => becomes(state, ({ received }) => received.length >= count);
  // Also disconnected before its first event: it knows where it started.
  const ids = [];
  for (let count = 1; count <= 2; count++) {
    market.service.app.server.closeAllConnections();
    ids.push(await publish());
    await hasEvents(count);
  }
  ids.push(await publish());
  await hasEvents(3);
  assert.deepEqual(
    (await state()).received,
    ids.map((id) => [id, id]),
  );
  await context.close();
});
