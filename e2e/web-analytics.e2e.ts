import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before } from "node:test";
import { flushViews } from "@stoa/service/catalog/search/views.ts";
import { rollUpSales } from "@stoa/service/commerce/analytics/sales-sums.ts";
import { buyProduct, createProduct } from "@stoa/service/test/factories.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { runToCompletion } from "@stoa/service/test/runs.ts";
import type { Browser, Page } from "playwright-core";
import { looks, openBrowser, sees } from "./browser.ts";
import { everyRun, test } from "./full-run.ts";
import { HOSTILE, openAt, openMember } from "./members.ts";
import { buildWebClient, mustBeSound } from "./web.ts";

const DAY_MS = 86_400_000;

let market: Market;
let browser: Browser;
let seller: Client;
before(async () => {
  await buildWebClient();
  market = await openMarket();
  seller = await market.createUser({ role: "seller", name: "Zeynep" });
  await fill();
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await market.close();
});

async function daysAgo<T>(days: number, work: () => Promise<T>): Promise<T> {
  const { now } = market.clock;
  market.clock.now = new Date(now.getTime() - days * DAY_MS);
  try {
    return await work();
  } finally {
    market.clock.now = now;
  }
}

async function refund(orderId: string, amount: number): Promise<void> {
  const { userId } = await market.createUser({ role: "admin" });
  const admin = await market.createSession(userId, { secondFactor: true });
  const reply = await admin.post(`/v1/admin/orders/${orderId}/refund`, { reason: "other", amount });
  assert.equal(reply.body.data?.status, "succeeded", reply.text);
}

/** Sales of two products over three months and in two currencies, some by the same buyers, with views, runs and refunds. */
async function fill(): Promise<void> {
  const products = await daysAgo(80, () =>
    Promise.all([
      createProduct(seller, { title: HOSTILE.slice(0, 80), price: 19.99, category: "writing" }),
      createProduct(seller, { title: "Essay Writer", price: 7.5, category: "fiction" }),
      createProduct(seller, { title: "In yen", price: 1_200, currency: "JPY" }),
    ]),
  );
  const [dear = "", cheap = "", yen = ""] = products;
  const regular = await market.createUser({ name: "Regular" });
  const sales: [days: number, product: string, buyer: Client][] = [
    [70, cheap, await market.createUser()],
    [66, cheap, regular],
    [41, dear, await market.createUser()],
    [35, dear, regular],
    [20, dear, await market.createUser()],
    [12, cheap, await market.createUser()],
    [5, dear, await market.createUser()],
    [3, yen, await market.createUser()],
    [2, yen, regular],
  ];
  for (const [days, product, buyer] of sales)
    await daysAgo(days, async () => {
      await buyer.get(`/v1/products/${product}`);
      await flushViews(market.service.ctx);
      const order = await buyProduct(buyer, product);
      if (days % 2 === 0) await runToCompletion(buyer, { productId: product });
      if (days === 12) await refund(order, 2.5);
    });
  // One is not rolled up yet.
  await rollUpSales(market.service.ctx);
  await buyProduct(await market.createUser(), cheap);
}

const dayOf = (days: number) =>
  new Date(market.clock.now.getTime() - days * DAY_MS).toISOString().slice(0, 10);
const read = async (path: string) => {
  const reply = await seller.get(`/v1/analytics/${path}`);
  assert.equal(reply.status, 200, reply.text);
  return reply.body;
};
const money = (amount: number, currency = "USD") =>
  new Intl.NumberFormat("en-US", { style: "currency", currency }).format(amount);

const open = async (path: string, look = {}) => {
  const session = await market.createSession(seller.userId);
  const { context } = await openMember(market, browser, { session, look });
  // The page takes the present day from the browser, and midnight may come during the test.
  await context.clock.setFixedTime(market.clock.now);
  return openAt(context, market, path);
};
const figure = (page: Page, label: string) => page.locator(".analytics-figure", { hasText: label });

async function saveCsv(page: Page, title: string): Promise<string[]> {
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: `CSV: ${title}` }).click();
  const text = await readFile(await (await saved).path(), "utf8");
  return text.trim().split("\r\n");
}

everyRun("figures, comparison, tables and CSV equal the API, and the ledger proves them", async () => {
  const watched = await open("/studio/analytics?zone=UTC");
  const { page } = watched;
  const days = `startDate=${dayOf(29)}&endDate=${dayOf(0)}&timezone=UTC`;
  const daysBefore = `startDate=${dayOf(59)}&endDate=${dayOf(30)}&timezone=UTC`;
  const [now, before, funnel] = await Promise.all([
    read(`revenue?${days}`),
    read(`revenue?${daysBefore}`),
    read(`funnel?${days}`),
  ]);
  const { summary, timeline } = now.data;
  assert.ok(summary.netRevenue > 0 && before.data.summary.netRevenue > 0);
  await figure(page, "Net revenue").getByText(money(summary.netRevenue)).waitFor();
  const growth = Math.round((summary.netRevenue / before.data.summary.netRevenue - 1) * 1000) / 10;
  await figure(page, "Net revenue").getByText(`${growth}%`).waitFor();
  await figure(page, "Sales").getByText(String(summary.sales), { exact: true }).waitFor();
  await figure(page, "Runs by buyers").getByText(String(funnel.data.runs), { exact: true }).waitFor();
  await page.getByRole("img", { name: `Net revenue by day: ${money(summary.netRevenue)} from` }).waitFor();
  const { views, purchases, ran, refunded } = funnel.data;
  await page
    .getByRole("img", {
      name: `${views} views, ${purchases} purchases, ${ran} of them run, ${refunded} refunded`,
    })
    .waitFor();
  await mustBeSound(watched, "analytics");

  await page.getByRole("img", { name: /^Net revenue by day/ }).focus();
  await page.keyboard.press("ArrowRight");
  await page.locator(".analytics-tip").waitFor();

  await page.getByRole("button", { name: "Table: Net revenue by day" }).click();
  const row = page.getByRole("row", { name: dayOf(5) });
  const value = timeline.find(({ date }: { date: string }) => date === dayOf(5)).netRevenue;
  await row.getByText(money(value), { exact: true }).first().waitFor();
  await row.getByText(dayOf(35)).waitFor();
  await mustBeSound(watched, "analytics table");
  const csv = await saveCsv(page, "Net revenue by day");
  assert.equal(csv[0], "First day,Net revenue (USD),Day before,Before (USD)");
  assert.deepEqual(
    csv.slice(1).map((line) => line.split(",").slice(0, 2)),
    timeline.map(({ date, netRevenue }: Record<string, unknown>) => [date, String(netRevenue)]),
  );

  await page.getByLabel("Group by").selectOption("category");
  await page.getByText("Fiction").waitFor();
  const groups = await saveCsv(page, "Net revenue by category");
  const { breakdown } = (await read(`revenue?${days}&groupBy=category`)).data;
  assert.deepEqual(
    groups.slice(1).map((line) => line.split(",").slice(1, 4)),
    breakdown.map(({ key, netRevenue }: Record<string, unknown>) => [key, "USD", String(netRevenue)]),
  );

  await page.getByRole("link", { name: "Prove it with the ledger" }).click();
  await sees(page, "Equal to the ledger");
  const entries = await read(`entries?${days}&limit=100`);
  assert.equal(entries.meta.sum, summary.netRevenue);
  await sees(page, `Sum of ${entries.meta.total} entries`);
  const amounts = await page.locator(".analytics-entries tbody td.r").allInnerTexts();
  const cents = amounts.map((text) => Math.round(Number(text.replace(/[$,]/g, "")) * 100));
  assert.equal(
    cents.reduce((sum, each) => sum + each, 0),
    Math.round(summary.netRevenue * 100),
  );
  await page.getByLabel("Figure").selectOption("refunds");
  await page.locator(".analytics-proof").getByText(money(summary.refunds)).first().waitFor();
  await mustBeSound(watched, "analytics entries");
  await page.context().close();
});

test("presets, own days, currency and the address: each view is a link, and Back returns", async () => {
  const watched = await open("/studio/analytics?zone=UTC");
  const { page } = watched;
  const net = async (query: string) => (await read(`revenue?timezone=UTC&${query}`)).data.summary.netRevenue;
  const shows = async (query: string, currency = "USD") =>
    figure(page, "Net revenue")
      .getByText(money(await net(query), currency), { exact: true })
      .waitFor();
  await shows(`startDate=${dayOf(29)}`);
  const days = await page.locator(".analytics-meta > :first-child").innerText();
  const held = Promise.withResolvers<void>();
  await page.route("**/v1/analytics/funnel?*", async (route) => {
    await held.promise;
    await route.continue();
  });
  await page.getByRole("button", { name: "90 d" }).click();
  await page.locator(".analytics-report.loading").waitFor();
  // Until all of the new figures are there, the old ones stay under their own days.
  await shows(`startDate=${dayOf(29)}`);
  assert.equal(await page.locator(".analytics-meta > :first-child").innerText(), days);
  held.resolve();
  await shows(`startDate=${dayOf(89)}`);
  await page.unroute("**/v1/analytics/funnel?*");
  assert.equal(new URL(page.url()).searchParams.get("preset"), "90d");
  await page.getByLabel("Last day").fill(dayOf(31));
  await page.getByLabel("First day").fill(dayOf(45));
  await shows(`startDate=${dayOf(45)}&endDate=${dayOf(31)}`);
  await page.getByLabel("First day").fill(dayOf(1));
  await sees(page, "The first day must not be after the last one.");
  await page.getByRole("button", { name: "7 d" }).click();
  await shows(`startDate=${dayOf(6)}`);
  await page.getByLabel("Currency").selectOption("JPY");
  await shows(`startDate=${dayOf(6)}&currency=JPY`, "JPY");
  await page.getByLabel("Compare with the days before").uncheck();
  // The old figures stay until the new ones are there, here too.
  await page.getByText("than before").first().waitFor({ state: "detached" });
  await page.reload();
  await shows(`startDate=${dayOf(6)}&currency=JPY`, "JPY");
  await page.goBack();
  await page.goBack();
  await shows(`startDate=${dayOf(6)}`);
  await page.getByRole("button", { name: "Conversion" }).click();
  await page.getByRole("img", { name: /^Views by day: 3 from/ }).waitFor();
  await page.getByLabel("Last day").fill("2019-02-01");
  await page.getByLabel("First day").fill("2019-01-01");
  await sees(page, "Nothing in these days");
  await mustBeSound(watched, "analytics empty");
  await page.context().close();
});

test("one product: its figures, its CSV, its entries, and its link", async () => {
  const watched = await open("/studio/analytics?zone=UTC&preset=90d");
  const { page } = watched;
  const days = `startDate=${dayOf(89)}&endDate=${dayOf(0)}&timezone=UTC`;
  const all = (await read(`revenue?${days}`)).data;
  const { key: productId } = all.breakdown.find(({ label }: { label: string }) => label === "Essay Writer");
  const { summary, breakdown } = (await read(`revenue?${days}&productId=${productId}`)).data;
  const funnel = (await read(`funnel?${days}&productId=${productId}`)).data;
  assert.ok(0 < summary.netRevenue && summary.netRevenue < all.summary.netRevenue);
  await sees(page, "Buyers who come back");
  await page.getByRole("combobox", { name: "Product", exact: true }).selectOption("Essay Writer");
  await figure(page, "Net revenue").getByText(money(summary.netRevenue), { exact: true }).waitFor();
  await figure(page, "Runs by buyers").getByText(String(funnel.runs), { exact: true }).waitFor();
  assert.equal(await page.getByText("Buyers who come back").count(), 0, "nobody returns to one product");
  assert.equal(new URL(page.url()).searchParams.get("product"), productId);
  const groups = await saveCsv(page, "Net revenue by product");
  assert.deepEqual(
    groups.slice(1).map((line) => line.split(",").slice(1, 4)),
    breakdown.map(({ key, netRevenue }: Record<string, unknown>) => [key, "USD", String(netRevenue)]),
  );
  await mustBeSound(watched, "analytics of one product");
  await page.getByRole("link", { name: "Prove it with the ledger" }).click();
  await sees(page, "Equal to the ledger");
  const { meta } = await read(`entries?${days}&productId=${productId}`);
  await sees(page, `Sum of ${meta.total} entries`);
  const months = page.locator(".analytics-entries tbody tr");
  const counts = await months.locator("td:nth-child(2)").allInnerTexts();
  assert.equal(
    counts.reduce((sum, count) => sum + Number(count), 0),
    meta.total,
  );
  assert.equal(await months.getByText("Equal", { exact: true }).count(), counts.length);
  await months.first().getByRole("link").click();
  await sees(page, "Equal to the ledger");
  await sees(page, `Sum of ${counts[0]} entries`);
  await page.goBack();
  await sees(page, `Sum of ${meta.total} entries`);
  await page.getByRole("combobox", { name: "Product", exact: true }).selectOption("All products");
  await page.locator(".analytics-proof").getByText(money(all.summary.netRevenue)).first().waitFor();
  await page.goBack();
  await page.goBack();
  await figure(page, "Net revenue").getByText(money(summary.netRevenue), { exact: true }).waitFor();
  await page.context().close();
});

test("every look is sound", async () => {
  for (const look of looks) {
    const name = `${look.scheme} ${look.width}`;
    const watched = await open("/studio/analytics?zone=UTC&preset=90d", look);
    await watched.page.getByRole("img", { name: /^Net revenue by day/ }).waitFor();
    await sees(watched.page, "Buyers who come back");
    await mustBeSound(watched, `analytics ${name}`);
    await watched.page.goto(`${market.origin}/studio/analytics?zone=UTC&table=funnel&group=currency`);
    await sees(watched.page, "Share of the step before");
    await mustBeSound(watched, `analytics funnel ${name}`);
    await watched.page.goto(`${market.origin}/studio/analytics/entries?zone=UTC&preset=90d`);
    await sees(watched.page, "Equal to the ledger");
    await mustBeSound(watched, `analytics entries ${name}`);
    await watched.page.context().close();
  }
});

test("an account that has not sold sees the way to its first sale", async () => {
  const session = await market.createSession((await market.createUser({ role: "user" })).userId);
  const { context } = await openMember(market, browser, { session });
  const watched = await openAt(context, market, "/studio/analytics");
  await sees(watched.page, "No sales yet");
  await mustBeSound(watched, "analytics nothing sold");
  await context.close();
});
