import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { after, before, test } from "node:test";
import chromium from "@sparticuz/chromium";
import { type Browser, chromium as playwright } from "playwright-core";
import { npmStart, type Started, stop, temporaryFolder } from "./service-process.ts";

/** Set to keep pictures of the pages, to look at them. */
const PICTURES = process.env["STOA_PICTURES"];

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let service: Started;
let browser: Browser;

before(async () => {
  folder = await temporaryFolder();
  service = await npmStart(folder.path);
  browser = await playwright.launch({
    executablePath: process.env["CHROMIUM_PATH"] ?? (await chromium.executablePath()),
    args: [
      // Its one-process mode, made for tiny machines, dies with the first page that is closed.
      ...chromium.args.filter((argument) => argument !== "--single-process"),
      "--disable-background-networking",
      "--disable-component-update",
    ],
  });
});
after(async () => {
  await browser?.close();
  await stop(service);
  await folder.remove();
});

interface Visit {
  path: string;
  scheme?: "light" | "dark";
  width?: number;
}

/** Opens a page and keeps what it asked of others and what it complained of. */
async function visit({ path, scheme = "light", width = 1200 }: Visit) {
  const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 900 } });
  const page = await context.newPage();
  const foreign: string[] = [];
  const complaints: string[] = [];
  page.on("request", (request) => {
    if (!request.url().startsWith(service.origin) && !request.url().startsWith("data:"))
      foreign.push(request.url());
  });
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(service.origin + path, { waitUntil: "networkidle" });
  if (PICTURES) {
    await mkdir(PICTURES, { recursive: true });
    await page.screenshot({ path: `${PICTURES}/${path.replaceAll("/", "_")}-${scheme}-${width}.png` });
  }
  return { page, foreign, complaints, close: () => context.close() };
}

test("the reference tries a call with the key that the box shows, and asks nobody else", async () => {
  const { page, foreign, complaints, close } = await visit({ path: "/docs" });
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
  assert.deepEqual(foreign, []);
  assert.deepEqual(complaints, []);
  await close();
});

for (const scheme of ["light", "dark"] as const) {
  for (const width of [1200, 360]) {
    test(`the pages hold at ${width} pixels, ${scheme}`, async () => {
      for (const path of ["/docs", "/docs/errors"]) {
        const { page, foreign, complaints, close } = await visit({ path, scheme, width });
        const overflow = await page.evaluate(
          "document.documentElement.scrollWidth - document.documentElement.clientWidth",
        );
        assert.ok(Number(overflow) <= 0, `${path} is ${overflow} px too wide`);
        assert.deepEqual([...foreign, ...complaints], []);
        await close();
      }
    });
  }
}
