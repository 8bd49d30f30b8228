import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createProduct } from "@stoa/service/test/factories.ts";
import { type Market, openMarket } from "@stoa/service/test/market.ts";
import { until } from "@stoa/service/test/until.ts";
import type { Browser } from "playwright-core";
import { openBrowser, openContext } from "./browser.ts";
import { openAt, openMember } from "./members.ts";
import { buildWebClient, openWebPage } from "./web.ts";

let market: Market;
let browser: Browser;
before(async () => {
  await buildWebClient();
  [market, browser] = await Promise.all([openMarket(), openBrowser()]);
});
after(async () => {
  await browser.close();
  await market.close();
});

const PAGES = [
  ...["/wishlist", "/library", "/orders", "/runs", "/notifications", "/notifications?unread=true"],
  ...[
    "/account",
    "/account/security",
    "/account/connected-apps",
    "/account/plan",
    "/account/payment-methods",
  ],
  ...["/account/provider-keys", "/account/notifications", "/account/referral", "/account/data"],
  ...["/settings", "/settings/oauth-apps?page=2", "/settings/webhooks", "/settings/signatures"],
  ...["/settings/events", "/settings/logs"],
];

test("a page of a member: its first view sends no request", { timeout: 120_000 }, async () => {
  const { context, session } = await openMember(market, browser);
  const id = await createProduct(await market.createUser({ role: "seller" }), { title: "Poet" });
  const created = await session.post("/v1/webhooks", { url: "https://hooks.example.com/" });
  const webhookId = created.body.data.id;
  const webhook = `/settings/webhooks/${webhookId}`;
  const later: Record<string, string[]> = {
    "/settings/webhooks": [`GET /webhooks/${webhookId}/stats`],
    [`/checkout/${id}`]: ["POST /purchases/quote"],
    // The groups of errors above the list.
    "/settings/logs": ["GET /request-logs", "GET /request-logs"],
    "/settings/events": ["GET /events/stream"],
  };
  for (const path of [...PAGES, `/checkout/${id}`, `/run/${id}`, webhook, `${webhook}/edit`]) {
    const { page, calls, complaints } = await openAt(context, market, path);
    // Of the client: the HTML of some pages has a heading, too.
    await page.getByLabel("Search products").waitFor();
    await page.locator("main h1").first().waitFor();
    await page.locator(".skeleton").first().waitFor({ state: "detached" });
    const expected = later[path] ?? [];
    // The browser reports them later than the page sends them.
    await until(`the requests of ${path}`, () => calls.length >= expected.length);
    assert.deepEqual(calls, expected, path);
    assert.deepEqual(complaints, [], path);
    await page.close();
  }
  await context.close();
});

/** A page that is not painted by then loads them all the same. */
const LATEST_SCRIPTS_MS = 2_000;

test("a public page: its scripts do not share a slow line with its first paint", async () => {
  const context = await openContext(browser);
  const { page, complaints } = await openWebPage(context, market.origin);
  const id = await createProduct(await market.createUser({ role: "seller" }), { title: "Poet" });
  for (const path of ["/", "/search", `/p/${id}`, `/checkout/${id}`]) {
    await page.goto(market.origin + path);
    await page.getByLabel("Search products").waitFor();
    const [paint, script] = await page.evaluate<[number, number]>(`[
      performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Infinity,
      Math.min(...performance.getEntriesByType("resource").filter(({ name }) => name.endsWith(".js")).map((file) => file.startTime)),
    ]`);
    assert.ok(
      script > Math.min(paint, LATEST_SCRIPTS_MS),
      `${path}: scripts at ${script} ms, painted at ${paint} ms`,
    );
  }
  assert.deepEqual(complaints, []);
  await context.close();
});

test("a public page in a tab that paints nothing: its scripts come all the same", async () => {
  const context = await openContext(browser);
  await context.addInitScript('Object.defineProperty(document, "hidden", { get: () => true })');
  await context.addInitScript("PerformanceObserver.prototype.observe = () => {}");
  const { page } = await openWebPage(context, market.origin);
  await page.goto(market.origin);
  await page.getByLabel("Search products").waitFor();
  await context.close();
});
