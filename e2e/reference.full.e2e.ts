import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { becomes } from "@stoa/service/test/until.ts";
import type { Browser, Page } from "playwright-core";
import {
  type Look,
  openBrowser,
  openContext,
  openPage,
  overflowOf,
  takePicture,
  type Watched,
} from "./browser.ts";
import { copyDemoData, npmStart, type Started, stop, temporaryFolder } from "./service-process.ts";

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let service: Started;
let browser: Browser;

/** Opened once for all tests that do not change it: rendering takes seconds. */
let reference: Watched;

before(async () => {
  folder = await temporaryFolder();
  await copyDemoData(folder.path);
  service = await npmStart(folder.path);
  browser = await openBrowser();
  reference = await visit("/docs");
});
after(async () => {
  await browser?.close();
  await stop(service);
  await folder.remove();
});
/** After each test: no request to another origin and no console error. */
afterEach(() => {
  assert.deepEqual([...reference.foreign, ...reference.complaints], []);
});

async function visit(path: string, look: Look = {}): Promise<Watched> {
  const context = await openContext(browser, look);
  const watched = await openPage(context, service.origin);
  await watched.page.goto(service.origin + path, { waitUntil: "networkidle" });
  await takePicture(watched.page, path);
  return watched;
}

test("API reference: sends a request with the printed key and contacts no other origin", async () => {
  const { page } = reference;
  await page
    .getByRole("button", { name: /authorize/i })
    .first()
    .click();
  await page.getByLabel(/value/i).first().fill(service.key);
  await page.locator(".auth-btn-wrapper .authorize").first().click();
  await page.locator(".btn-done, .close-modal").first().click();
  const operation = page
    .locator("#operations-products-products\\.list, [id*='products_list'], .opblock-get")
    .first();
  await operation.locator(".opblock-summary-control").first().click();
  await operation.getByRole("button", { name: /^execute$/i }).click();
  await operation.locator(".live-responses-table .response-col_status", { hasText: "200" }).first().waitFor();
  await operation.locator(".opblock-summary-control").first().click();
});

test("API reference: shows the headers and the body of each webhook", async () => {
  const { page } = reference;
  const webhook = page.locator(".webhooks .opblock", { hasText: "product.updated" });
  await webhook.locator(".opblock-summary-control").click();
  await webhook.getByText("X-Service-Signature-Previous").first().waitFor();
  await webhook.locator(".opblock-section-request-body", { hasText: '"changes"' }).waitFor();
  await webhook.locator(".opblock-summary-control").click();
});

for (const path of ["/docs", "/docs/errors", "/docs/guides", "/docs/guides/webhooks", "/nothing"])
  test(`${path}: no overflow and no complaints, narrow or wide, light or dark`, async () => {
    const { page, foreign, complaints } = path === "/docs" ? reference : await visit(path);
    for (const width of [360, 1200])
      for (const colorScheme of ["dark", "light"] as const) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 900 });
        await takePicture(page, path);
        const overflow = await overflowOf(page);
        assert.ok(overflow <= 0, `${path} is ${overflow} px too wide at ${width} px, ${colorScheme}`);
      }
    // The browser logs the 404 of this page.
    const expected = path === "/nothing" ? /404/ : /^$/;
    assert.deepEqual([...foreign, ...complaints.filter((text) => !expected.test(text))], []);
    if (path !== "/docs") await page.context().close();
  });

/** Method and path of each operation in order. Scrolls, since Swagger UI renders only those near the window. */
async function listOperations(page: Page): Promise<string[]> {
  const operations = page.locator("#reference .operations-virtual .opblock-summary");
  await operations.first().waitFor();
  const drawn = new Set<string>();
  for (let isAtEnd = false; !isAtEnd; ) {
    const texts = await operations.evaluateAll((summaries) =>
      summaries.map(
        (summary) =>
          `${summary.querySelector(".opblock-summary-method")!.textContent} ${summary.querySelector("[data-path]")!.getAttribute("data-path")}`,
      ),
    );
    for (const text of texts) drawn.add(text);
    isAtEnd = Boolean(await page.evaluate(SCROLL_ON));
  }
  return [...drawn];
}

/** Scrolls by half a window and returns whether it was the end. Swagger UI has rendered after two frames. */
const SCROLL_ON = `new Promise((resolve) => {
  scrollBy({ top: innerHeight / 2, behavior: "instant" });
  const { scrollHeight } = document.documentElement;
  const isAtEnd = scrollY + innerHeight >= scrollHeight - 1;
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve, 20, isAtEnd)));
})`;

interface Document {
  paths: Record<string, Record<string, { operationId?: string }>>;
}

test("API reference without a filter: shows every operation", async () => {
  const { page } = reference;
  await page.emulateMedia({ colorScheme: "dark" });
  await page.setViewportSize({ width: 360, height: 900 });
  await page.evaluate("scrollTo({ top: 0, behavior: 'instant' })");
  const { paths } = (await (await fetch(`${service.origin}/v1/openapi.json`)).json()) as Document;
  const expected = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, { operationId }]) =>
      operationId ? [`${method.toUpperCase()} ${path}`] : [],
    ),
  );
  assert.ok(expected.length > 150);
  assert.deepEqual((await listOperations(page)).toSorted(), expected.toSorted());
  // The typed text must be readable: the dark page inverts colors with a filter.
  const color = await page.evaluate(
    "getComputedStyle(document.querySelector('.operation-filter-input')).color",
  );
  assert.equal(color, "rgb(0, 0, 0)");
  const box = await page.getByLabel("Filter operations").boundingBox();
  assert.ok(box!.width > 300, `${box!.width} px wide`);
});

test("API reference with filter words: shows the operations that have all of them", async () => {
  const { page } = reference;
  const operations = page.locator(".opblock-tag-section .opblock");
  await page.getByLabel("Filter operations").fill("post refund");
  // Until the list is filtered, it shows the operations near the window, of which some may have the words.
  const paths = await becomes(
    () => operations.locator(".opblock-summary-path").allTextContents(),
    (paths) => paths.length > 0 && paths.every((path) => path.includes("refund")),
    "operations with the words alone",
  );
  assert.ok(
    paths.some((path) => path.replaceAll("\u200b", "") === "/purchases/{orderId}/refund"),
    paths.join(),
  );
  await page.getByLabel("Filter operations").fill("");
  await page.locator('[data-path="/products"]').first().waitFor();
});

test("/docs/errors: no error code breaks over two lines, however narrow", async () => {
  const { page } = await visit("/docs/errors");
  for (const width of [360, 800, 1200]) {
    await page.setViewportSize({ width, height: 900 });
    const lines = await page
      .locator("td:nth-child(2) code")
      .evaluateAll((codes) => codes.map((code) => code.getClientRects().length));
    assert.ok(lines.length > 50);
    assert.deepEqual([...new Set(lines)], [1], `at ${width} px`);
  }
  await page.context().close();
});
