import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import chromium from "@sparticuz/chromium";
import { startSession } from "@stoa/service/accounts/sessions/sessions.ts";
import type { Context } from "@stoa/service/core/context.ts";
import { toId } from "@stoa/service/core/ids.ts";
import { createLog } from "@stoa/service/core/log.ts";
import { foldRuns } from "@stoa/service/execution/executions/run-sums.ts";
import { startEmbedded } from "@stoa/service/platform/db/embedded.ts";
import { WebBuilds } from "@stoa/service/web/builds/web-builds.ts";
import { type Browser, chromium as browsers, type Page } from "playwright-core";
import { clickData, ENDPOINT, MEMBER_EMAIL } from "../click-data.ts";
import { filledDataFolder } from "../data-folder.ts";
import { fillDatabase, rebuildAnalytics } from "../ledger-data.ts";
import type { Options } from "../options.ts";
import { atEnd } from "../processes.ts";
import { comparedWithAim, ms, type Report } from "../report.ts";
import { fillProducts, makersOf, startService, WITHOUT_LIMITS, withBase } from "../shop.ts";

const PRODUCTS = 1_000_000;
const SIZE = { orders: 1_000_000, deliveries: 500_000, runs: 20_000, requests: 200_000 };
const ROUNDS = 3;
const REPEATS = 5;
const AIM_MS = 200;
const TIMEOUT_MS = 20_000;

interface Click {
  name: string;
  /** Where it begins. */
  at: string;
  /** What is clicked, or chosen in. Each repetition takes the next match if `isEach`. */
  on: string;
  isEach?: true;
  /** Of a select. */
  value?: string;
}

interface Scene {
  origin: string;
  session: string;
  endpoint: string;
  /** The member's id. */
  seller: string;
  /** The id of a product on sale. */
  product: string;
}

/** Clicks in a browser, from the click to the first frame with the new content, in a large market. */
export async function measureClicks(options: Options): Promise<Report> {
  await new WebBuilds().ensureCurrent(createLog("warn"));
  const scene = await openScene(options);
  const browser = await openBrowser();
  const clicks = clicksOf(scene).filter(({ name }) => options.questions.test(name));
  const times = new Map(clicks.map(({ name }) => [name, [] as number[]]));
  const roundsP95: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const all: number[] = [];
    for (const click of clicks) {
      const measured = await timesOf(browser, scene, click, round * REPEATS);
      times.get(click.name)?.push(...measured);
      all.push(...measured);
      console.error(`${click.name}: ${measured.map((time) => Math.round(time)).join(" ")}`);
    }
    roundsP95.push(percentile(all, 0.95));
  }
  return reportOf(times, roundsP95);
}

function reportOf(times: Map<string, number[]>, roundsP95: number[]): Report {
  const p95 = percentile(roundsP95, 0.5);
  const rows = [...times].map(([name, each]) => [
    name,
    ms(percentile(each, 0.5)),
    ms(Math.max(...each)),
    ...comparedWithAim("", `≤ ${AIM_MS} ms`, percentile(each, 0.5) <= AIM_MS).slice(1),
  ]);
  const all = [...times.values()].flat();
  rows.push([
    "all, p95 (the median of the rounds)",
    ms(percentile(all, 0.5)),
    ms(p95),
    ...comparedWithAim("", `≤ ${AIM_MS} ms`, p95 <= AIM_MS).slice(1),
  ]);
  return {
    columns: ["click", "median ms", "slowest ms", "aim", "met"],
    rows,
    notes: [
      `${PRODUCTS.toLocaleString("en")} products, ${SIZE.orders.toLocaleString("en")} orders and ${SIZE.deliveries.toLocaleString("en")} deliveries are loaded. The member sells a tenth of the orders, bought every 500th, has all deliveries and ${SIZE.requests.toLocaleString("en")} logged requests, and made half of the ${SIZE.runs.toLocaleString("en")} runs of its products. Each click is made ${ROUNDS * REPEATS} times, each on a page that was opened anew, without the pointer resting on the link first, which would load the page ahead. p95 of each round: ${roundsP95.map((time) => ms(time)).join(", ")} ms.`,
    ],
  };
}

const percentile = (values: number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.ceil(values.length * share) - 1] ?? Number.NaN;

async function openScene(options: Options): Promise<Scene> {
  const data = new URL("../click-data.ts", import.meta.url);
  const { dataDir } = await filledDataFolder(options, "clicks", [...makersOf(options), data], (dataDir) =>
    fill(dataDir, options),
  );
  const database = await startEmbedded(dataDir);
  atEnd(() => database.stop());
  const prepared = await withBase(dataDir, { target: database.connection }, ({ ctx }) => prepare(ctx));
  const plansFile = join(dataDir, "plans.json");
  await writeFile(plansFile, JSON.stringify(WITHOUT_LIMITS));
  const settings = { STOA_DATA_DIR: dataDir, STOA_PLANS_FILE: plansFile };
  const { origin } = await startService(options.profile, settings);
  return { origin, ...prepared };
}

async function fill(dataDir: string, { prompts }: Options): Promise<string> {
  await fillProducts(dataDir, prompts, PRODUCTS);
  await fillDatabase(dataDir, clickData(SIZE));
  await rebuildAnalytics(dataDir);
  return "";
}

/** The member is an administrator, too, who signed in with a second factor. */
async function prepare(ctx: Context) {
  // The job of a running service has done it within the hour.
  await foldRuns(ctx);
  const { rows } = await ctx.pool.query<Record<"id" | "endpoint" | "email" | "name" | "product", string>>(
    `update users set plan = 'enterprise', role = 'admin' where email = $1
     returning id, ${ENDPOINT} as endpoint, email, name,
               (select id from products where status = 'published' limit 1) as product`,
    [MEMBER_EMAIL],
  );
  const [member] = rows;
  if (!member) throw new Error(`There is no ${MEMBER_EMAIL}`);
  const { endpoint, product, ...user } = member;
  const source = { ip: "127.0.0.1", userAgent: "bench", requestId: "" };
  return {
    session: await startSession(ctx, ctx.db, { user, via: "password", secondFactor: true, source }),
    endpoint: toId("whk", endpoint),
    seller: toId("usr", member.id),
    product: toId("prod", product),
  };
}

async function openBrowser(): Promise<Browser> {
  // The graphics card is emulated slowly, and no page needs it.
  chromium.setGraphicsMode = false;
  const executablePath = process.env["CHROMIUM_PATH"] ?? (await chromium.executablePath());
  const browser = await browsers.launch({
    executablePath,
    args: chromium.args.filter((argument) => argument !== "--single-process"),
    headless: true,
  });
  atEnd(() => browser.close());
  return browser;
}

function clicksOf({ endpoint, seller, product }: Scene): Click[] {
  const log = `/settings/webhooks/${endpoint}`;
  return [
    { name: "home: a product", at: "/", on: 'main a[href^="/p/"]', isEach: true },
    { name: "home: market", at: "/", on: 'nav.areas a[href="/search"]' },
    { name: "market: a filter", at: "/search", on: "#filters li a", isEach: true },
    { name: "market: newest", at: "/search", on: "select.sort", value: "publishedAt" },
    { name: "market: cheapest", at: "/search", on: "select.sort", value: "price" },
    { name: "market: next page", at: "/search", on: "a[rel=next]" },
    { name: "market: a product", at: "/search", on: '.results a[href^="/p/"]', isEach: true },
    { name: "search results: a filter", at: "/search?q=email", on: "#filters li a", isEach: true },
    { name: "search results: next page", at: "/search?q=write", on: "a[rel=next]" },
    { name: "product: its seller", at: `/p/${product}`, on: 'main a[href^="/u/"]' },
    { name: "seller: next page", at: `/u/${seller}`, on: "a[rel=next]" },
    { name: "library: orders", at: "/library", on: 'a[href="/orders"]' },
    { name: "orders: next page", at: "/orders", on: "a[rel=next]" },
    { name: "orders: a status", at: "/orders", on: 'a.chip[href*="refunded"]' },
    { name: "orders: an order", at: "/orders", on: 'main a[href^="/orders/"]', isEach: true },
    { name: "runs: next page", at: "/runs", on: "a[rel=next]" },
    { name: "runs: workflows", at: "/runs", on: 'a[href*="type=workflow"]' },
    { name: "runs: a run", at: "/runs", on: 'main a[href^="/runs/"]', isEach: true },
    { name: "webhooks: an endpoint", at: "/settings/webhooks", on: `a[href="${log}"]` },
    { name: "deliveries: failed", at: log, on: 'select[aria-label="Status"]', value: "failed" },
    { name: "deliveries: a type", at: log, on: 'select[aria-label="Event type"]', value: "review.created" },
    { name: "deliveries: older", at: log, on: "a[rel=next]" },
    { name: "deliveries: one", at: log, on: "a[data-row]", isEach: true },
    // Not 2xx, which may show the same rows.
    {
      ...{ name: "request log: errors", at: "/settings/logs", on: "button.chip:not(:first-child)" },
      isEach: true,
    },
    { name: "request log: a method", at: "/settings/logs", on: 'select[aria-label="Method"]', value: "POST" },
    { name: "request log: older", at: "/settings/logs", on: "a[rel=next]" },
    { name: "studio: products", at: "/studio", on: 'nav.side a[href="/studio/products"]' },
    { name: "studio: sales", at: "/studio", on: 'nav.side a[href="/studio/sales"]' },
    { name: "studio: analytics", at: "/studio", on: 'nav.side a[href="/studio/analytics"]' },
    { name: "analytics: 12 months", at: "/studio/analytics", on: ".analytics-presets button:last-child" },
    { name: "analytics: prove it", at: "/studio/analytics", on: 'a[href*="/analytics/entries"]' },
    { name: "products: next page", at: "/studio/products", on: "a[rel=next]" },
    {
      name: "products: a status",
      at: "/studio/products",
      on: 'nav[aria-label="Status"] a[href*="status=draft"]',
    },
    { name: "products: the editor", at: "/studio/products", on: "a[data-row]", isEach: true },
    { name: "sales: next page", at: "/studio/sales", on: "a[rel=next]" },
    { name: "sales: a status", at: "/studio/sales", on: 'select[aria-label="Status"]', value: "refunded" },
    { name: "sales: a sale", at: "/studio/sales", on: "a[data-row]", isEach: true },
    { name: "studio: runs", at: "/studio", on: 'nav.side a[href="/studio/runs"]' },
    { name: "studio: refunds", at: "/studio", on: 'nav.side a[href="/studio/refunds"]' },
    { name: "studio: payouts", at: "/studio", on: 'nav.side a[href="/studio/payouts"]' },
    { name: "administration: products", at: "/admin", on: 'nav.side a[href="/admin/moderation"]' },
    { name: "administration: users", at: "/admin", on: 'nav.side a[href="/admin/users"]' },
    { name: "users: next page", at: "/admin/users", on: "a[rel=next]" },
    { name: "users: a role", at: "/admin/users", on: 'select[aria-label="Role"]', value: "seller" },
    { name: "users: a user", at: "/admin/users", on: "a[data-row]", isEach: true },
    { name: "administration: orders", at: "/admin", on: 'nav.side a[href="/admin/orders"]' },
    { name: "all orders: next page", at: "/admin/orders", on: "a[rel=next]" },
    {
      name: "all orders: a status",
      at: "/admin/orders",
      on: 'select[aria-label="Status"]',
      value: "failed",
    },
    { name: "all orders: an order", at: "/admin/orders", on: "a[data-row]", isEach: true },
    { name: "administration: webhooks", at: "/admin", on: 'nav.side a[href="/admin/webhooks"]' },
    { name: "administration: health", at: "/admin", on: 'nav.side a[href="/admin/health"]' },
    { name: "administration: jobs", at: "/admin", on: 'nav.side a[href="/admin/jobs"]' },
  ];
}

async function timesOf(browser: Browser, scene: Scene, click: Click, from: number): Promise<number[]> {
  const context = await browser.newContext({ viewport: { width: 1_280, height: 900 } });
  context.setDefaultTimeout(TIMEOUT_MS);
  const { hostname } = new URL(scene.origin);
  const cookie = { name: "__Host-session", value: scene.session, domain: hostname, path: "/" };
  await context.addCookies([{ ...cookie, secure: true, httpOnly: true, sameSite: "Lax" }]);
  const times: number[] = [];
  for (let nth = 0; nth < REPEATS; nth++) {
    const page = await context.newPage();
    times.push(await timeOf(page, scene, click, click.isEach ? from + nth : 0));
    await page.close();
  }
  await context.close();
  return times;
}

async function timeOf(page: Page, { origin }: Scene, { at, on, value }: Click, nth: number): Promise<number> {
  await page.goto(origin + at);
  await page.locator(on).first().waitFor();
  await page.waitForLoadState("load");
  const given = JSON.stringify({ on, value, nth, timeout: TIMEOUT_MS });
  return page.evaluate(`(${CLICK})(${given})`);
}

/**
 * Runs in the page. Public pages start after their first paint, and until then a link loads another document: the click waits until React
 * has attached its handlers. The content is new when the address and the text changed and nothing is busy; it is shown by the frame
 * after that.
 */
const CLICK = `async ({ on, value, nth, timeout }) => {
  const frame = () => new Promise(requestAnimationFrame);
  const content = () => document.querySelector("main")?.textContent ?? "";
  const isBusy = () => document.querySelector(".skeleton, main [aria-busy=true], .loading") !== null;
  const hasStarted = (one) => Object.keys(one).some((key) => key.startsWith("__reactProps"));
  while (![...document.querySelectorAll(on)].some(hasStarted)) await frame();
  await new Promise((done) => requestIdleCallback(done, { timeout: 2000 }));
  const found = [...document.querySelectorAll(on)].filter((one) => one.offsetParent !== null);
  const target = found[nth % found.length];
  const [address, before, start] = [location.href, content(), performance.now()];
  if (value === undefined) target.click();
  else {
    Object.getOwnPropertyDescriptor(HTMLSelectElement.prototype, "value").set.call(target, value);
    target.dispatchEvent(new Event("change", { bubbles: true }));
  }
  while (location.href === address || content() === before || isBusy()) {
    if (performance.now() - start > timeout) throw new Error("nothing changed after a click on " + on);
    await frame();
  }
  await frame();
  return performance.now() - start;
}`;
