import assert from "node:assert/strict";
import { after, before } from "node:test";
import { buyProduct, createProduct } from "@stoa/service/test/factories.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { openBrowser, openContext, sees } from "./browser.ts";
import { everyRun, test } from "./full-run.ts";
import { buildWebClient, openWebPage, signIn } from "./web.ts";

let market: Market;
let browser: Browser;
let ada: Client;
let ben: Client;
let poet: string;
before(async () => {
  await buildWebClient();
  market = await openMarket();
  const seller = await market.createUser({ name: "The Quiet Editor" });
  ada = await market.createUser({ name: "Ada" });
  ben = await market.createUser({ name: "Ben" });
  poet = await createProduct(seller, { title: "Poet" });
  await buyProduct(ada, poet);
  await buyProduct(ben, poet);
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await market.close();
});

async function openTab(context: BrowserContext, path: string): Promise<Page> {
  const { page } = await openWebPage(context, market.origin);
  await page.goto(market.origin + path);
  return page;
}

const signInAs = async (context: BrowserContext, user: Client) =>
  signIn(context, market.origin, await market.createSession(user.userId));

async function signOutIn(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name: `Account of ${name}` }).click();
  // The strip about an ended session links to the sign-in, too.
  const left = page.waitForURL(`${market.origin}/`, { waitUntil: "commit" });
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await left;
  await page.getByRole("link", { name: "Sign in", exact: true }).first().waitFor();
}

const comeBackTo = (page: Page) => page.evaluate("dispatchEvent(new Event('visibilitychange'))");

everyRun("two tabs: one signs out, the other says so, and shows the next account", async () => {
  const context = await openContext(browser);
  await signInAs(context, ada);
  const [first, second] = [await openTab(context, "/orders"), await openTab(context, "/")];
  await first.getByRole("button", { name: "Account of Ada" }).waitFor();
  await signOutIn(second, "Ada");
  await comeBackTo(first);
  await sees(first, "Your session ended.");
  await signInAs(context, ben);
  await first.getByRole("button", { name: "Go on" }).click();
  await first.getByRole("button", { name: "Account of Ben" }).waitFor();
  await context.close();
});

test("a sign-out after the session ended: leaves the account's pages", async () => {
  const context = await openContext(browser);
  await signInAs(context, ada);
  const [first, second] = [await openTab(context, "/orders"), await openTab(context, "/orders")];
  await signOutIn(second, "Ada");
  await signOutIn(first, "Ada");
  assert.equal(new URL(first.url()).pathname, "/");
  await context.close();
});

test("what one account typed: not in the form of the next one at this browser, nor in its storage", async () => {
  const context = await openContext(browser);
  await signInAs(context, ada);
  const page = await openTab(context, `/run/${poet}`);
  await page.getByLabel("topic").fill("a secret");
  await page.reload();
  assert.equal(await page.getByLabel("topic").inputValue(), "a secret");
  await signOutIn(page, "Ada");
  assert.ok(!String(await page.evaluate("JSON.stringify({ ...sessionStorage })")).includes("a secret"));
  await signInAs(context, ben);
  await page.goto(`${market.origin}/run/${poet}`);
  assert.equal(await page.getByLabel("topic").inputValue(), "");
  await context.close();
});

test("a lost connection while a page opens: the page says so, and opens once there is one", async () => {
  const context = await openContext(browser);
  // From the beginning: requests of the moment in which the interception begins may pass it by.
  let isLost = true;
  await context.route(/\/(client\/(search|shortcut-list)-|healthz)/, (route) =>
    isLost ? route.abort() : route.continue(),
  );
  const page = await openTab(context, "/");
  await page.getByLabel("Search products").waitFor();
  await page.keyboard.press("?");
  await sees(page, "A part of this page did not load.");
  await page.getByRole("link", { name: "Market", exact: true }).click();
  await sees(page, "Check your connection");
  isLost = false;
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("heading", { name: "Search products", level: 1 }).waitFor();
  await context.close();
});

test("a page of an older build whose files are gone: loads the address anew", async () => {
  const context = await openContext(browser);
  const page = await openTab(context, "/");
  await sees(page, "Trending this week");
  await page.evaluate("window.isOld = true");
  // Until the new document, however often the old one asks: pointing at the link asks, too.
  let isGone = true;
  page.on("request", (request) => {
    if (request.isNavigationRequest()) isGone = false;
  });
  await page.route(/\/client\/search-/, (route) =>
    isGone ? route.fulfill({ status: 404 }) : route.continue(),
  );
  const loaded = page.waitForEvent("load");
  await page.getByRole("link", { name: "Market", exact: true }).click();
  await loaded;
  assert.equal(await page.evaluate("window.isOld"), undefined);
  await page.unrouteAll();
  await page.getByRole("heading", { name: "Search products", level: 1 }).waitFor();
  await context.close();
});

test("a browser that forbids storage: the home page works", async () => {
  const context = await openContext(browser);
  await context.addInitScript({
    content: `for (const name of ["localStorage", "sessionStorage"])
      Object.defineProperty(window, name, { get() { throw new DOMException("denied", "SecurityError"); } });`,
  });
  const page = await openTab(context, "/");
  await page.getByRole("button", { name: "Hide the first steps" }).click();
  await sees(page, "Trending this week");
  await context.close();
});

test("a description that would block or break the renderer: its source is shown", async () => {
  const seller = await market.createUser({ role: "seller" });
  const context = await openContext(browser);
  for (const description of [`${">".repeat(3_000)} deep`, `${"*a_".repeat(3_000)} wide`]) {
    const id = await createProduct(seller, { title: "Hostile", description });
    const page = await openTab(context, `/p/${id}`);
    await sees(page, description.slice(-4));
    await page.getByText("Buy").first().waitFor();
    await page.close();
  }
  await context.close();
});
