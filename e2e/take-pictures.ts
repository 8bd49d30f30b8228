/** Takes pictures of the web client's pages in the demo shop, for docs/pictures: `node e2e/take-pictures.ts`. */
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ProductCard, ProductDetail } from "@stoa/contract";
import workflows from "@stoa/service/backoffice/demo/workflows.json" with { type: "json" };
import { codeAt } from "@stoa/service/test/authenticator.ts";
import type { BrowserContext, Page } from "playwright-core";
import type { Started } from "./service-process.ts";

const PICTURES = new URL("../docs/pictures/", import.meta.url).pathname;
const LOOKS = [
  { name: "wide", width: 1280, height: 800, scheme: "light" },
  { name: "narrow", width: 360, height: 740, scheme: "dark" },
] as const;
const QUALITY = 60;
const IDLE_MS = 4_000;
const BUYER = "buyer1@example.com";
const SELLER = "ada@example.com";
const OPERATOR = "operator@example.com";

const folder = await mkdtemp(join(tmpdir(), "stoa-pictures-"));
// The helpers of the tests share their work in this folder, whose name they read when they are loaded.
process.env["STOA_TEST_SHARED"] = join(folder, "shared");
const { click, launchBrowser, openContext, sees } = await import("./browser.ts");
const { copyDemoData, npmStart, stop } = await import("./service-process.ts");
const { buildWebClient } = await import("./web.ts");

async function takeAll(): Promise<void> {
  for (const name of ["shared", "data"]) await mkdir(join(folder, name));
  await buildWebClient();
  await copyDemoData(join(folder, "data"));
  const service = await npmStart(join(folder, "data"));
  const browser = await launchBrowser();
  try {
    await rm(PICTURES, { recursive: true, force: true });
    await mkdir(PICTURES, { recursive: true });
    const { origin } = service;
    const buyer = await signIn(await openContext(browser), origin, BUYER);
    await takePictures(buyer, origin, await prepareBuyerPages(buyer, origin));
    const seller = await signIn(await openContext(browser), origin, SELLER);
    await takePictures(seller, origin, await listSellerPages(seller, origin));
    const operator = await signIn(await openContext(browser), origin, OPERATOR);
    await becomeAdministrator(operator, service);
    await takePictures(operator, origin, await listAdministrationPages(operator, buyer, origin));
    console.log(`${(await readdir(PICTURES)).length} pictures in docs/pictures`);
  } finally {
    await browser.close();
    await stop(service);
  }
}

async function takePictures(page: Page, origin: string, pages: Record<string, string>): Promise<void> {
  for (const { name, width, height, scheme } of LOOKS) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height });
    for (const [title, path] of Object.entries(pages)) {
      await page.goto(origin + path);
      // The page of live events never becomes idle.
      await page.waitForLoadState("networkidle", { timeout: IDLE_MS }).catch(() => {});
      await writeFile(join(PICTURES, `${title}-${name}.webp`), await capture(page));
    }
  }
}

async function capture(page: Page): Promise<Buffer> {
  const devTools = await page.context().newCDPSession(page);
  const { data } = await devTools.send("Page.captureScreenshot", { format: "webp", quality: QUALITY });
  await devTools.detach();
  return Buffer.from(data, "base64");
}

/** By the mailed link. */
async function signIn(context: BrowserContext, origin: string, email: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`${origin}/auth/sign-in`);
  await page.getByLabel("Email address").fill(email);
  await click(page, "Mail me a link");
  await page.waitForURL("**/auth/check-mail*");
  await page.goto(`${origin}/dev/mail`);
  await page.getByRole("listitem").getByRole("link").first().click();
  const opened = context.waitForEvent("page");
  await page.frameLocator("iframe").getByRole("link", { name: "Sign in" }).first().click();
  const tab = await opened;
  await click(tab, "Sign in");
  await tab.waitForURL("**/auth/signed-in*");
  return tab;
}

type Send = <T>(method: string, path: string, body?: object) => Promise<T>;

/** Sends requests with the session of a page. */
async function openApi(page: Page, origin: string): Promise<Send> {
  const cookies = await page.context().cookies(origin);
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
  return async (method, path, body) => {
    const headers = { cookie, "content-type": "application/json", "sec-fetch-site": "same-origin" };
    const request = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const response = await fetch(`${origin}/v1${path}`, request);
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${text}`);
    return JSON.parse(text).data;
  };
}

/** By the link that the service prints, and with the two factors that administration needs. */
async function becomeAdministrator(page: Page, { origin, stdout }: Started): Promise<void> {
  const [, token] = /\/auth\/first-admin#token=([\w-]+)/.exec(stdout) ?? [];
  if (token === undefined) throw new Error("The service printed no link of the first administrator");
  const send = await openApi(page, origin);
  const { secret } = await send<{ secret: string }>("POST", "/account/two-factor");
  await send("POST", "/account/two-factor/confirm", { code: codeAt(secret, Date.now()) });
  await page.goto(`${origin}/auth/first-admin#token=${token}`);
  await click(page, "Become the administrator");
  await page.getByRole("heading", { name: "You are the administrator" }).waitFor();
}

/** Reports a product, and names the pages. */
async function listAdministrationPages(
  page: Page,
  buyer: Page,
  origin: string,
): Promise<Record<string, string>> {
  const [send, sendAsBuyer] = [await openApi(page, origin), await openApi(buyer, origin)];
  const [product] = await send<ProductCard[]>("GET", "/products?sort=rating&limit=1");
  const [order] = await send<{ orderId: string }[]>("GET", "/admin/orders?limit=1");
  if (!product || !order) throw new Error("The demo shop is empty");
  await sendAsBuyer("POST", `/products/${product.id}/report`, {
    reasonCode: "misleading",
    comment: "The description promises a table, and it writes none.",
  });
  return {
    administration: "/admin",
    moderation: `/admin/moderation/${product.id}?queue=reported`,
    users: "/admin/users",
    user: `/admin/users/${product.author.id}`,
    orders: "/admin/orders",
    "admin-order": `/admin/orders/${order.orderId}`,
    "audit-log": "/admin/audit",
    health: "/admin/health",
    jobs: "/admin/jobs",
    backups: "/admin/backups",
    configuration: "/admin/configuration",
  };
}

/** Gives the account a workflow, and names the pages. */
async function listSellerPages(page: Page, origin: string): Promise<Record<string, string>> {
  const send = await openApi(page, origin);
  const products = await send<ProductCard[]>("GET", "/products?author=me&limit=100");
  const [{ title, description, category, definition }] = workflows as [(typeof workflows)[0]];
  const content = JSON.stringify(definition);
  const workflow = await send<{ id: string }>("POST", "/products", {
    ...{ title, description, category, content, type: "WORKFLOW", price: 5 },
  });
  return {
    studio: "/studio",
    "studio-products": "/studio/products",
    analytics: "/studio/analytics?preset=90d",
    sales: "/studio/sales",
    payouts: "/studio/payouts",
    "product-editor": `/studio/products/${products.find(({ type }) => type === "PROMPT")?.id}`,
    "workflow-editor": `/studio/workflows/${workflow.id}`,
  };
}

/** Gives the account a run and a webhook, and names the pages. */
async function prepareBuyerPages(page: Page, origin: string): Promise<Record<string, string>> {
  const send = await openApi(page, origin);
  const [order] = await send<{ orderId: string; product: { id: string } }[]>("GET", "/purchases?limit=1");
  const [trending] = await send<ProductCard[]>("GET", "/products?sort=trending&limit=1");
  if (!order || !trending) throw new Error("The demo shop is empty");
  const { variables } = await send<ProductDetail>("GET", `/products/${order.product.id}`);
  const { executionId } = await send<{ executionId: string }>("POST", "/ai/execute", {
    productId: order.product.id,
    apiKeyId: "sandbox",
    variables: Object.fromEntries(variables.map(({ name }) => [name, "A small bakery in Izmir"])),
  });
  const webhook = await send<{ id: string }>("POST", "/webhooks", {
    url: `${origin}/dev/hooks/pictures`,
    description: "Orders of the bakery",
  });
  await send("POST", `/webhooks/${webhook.id}/test`);
  await page.goto(`${origin}/settings/webhooks/${webhook.id}`);
  await sees(page, /succeeded/i);
  return {
    home: "/",
    search: "/search?q=writer",
    product: `/p/${trending.id}`,
    seller: `/u/${trending.author.handle ?? trending.author.id}`,
    checkout: `/checkout/${trending.id}`,
    library: "/library",
    order: `/orders/${order.orderId}`,
    run: `/run/${order.product.id}?run=${executionId}`,
    runs: "/runs",
    account: "/account",
    security: "/account/security",
    plan: "/account/plan",
    notifications: "/notifications",
    "api-keys": "/settings/api",
    webhook: `/settings/webhooks/${webhook.id}`,
    events: "/settings/events",
    "request-log": "/settings/logs",
    "signature-debugger": "/settings/signatures",
  };
}

try {
  await takeAll();
} finally {
  await rm(folder, { recursive: true, force: true });
}
