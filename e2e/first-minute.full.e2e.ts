import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { click, openBrowser, openContext, sees, takePicture } from "./browser.ts";
import { copyDemoData, npmStart, type Started, stop, temporaryFolder } from "./service-process.ts";
import { buildWebClient, openWebPage } from "./web.ts";

/** Far more than it takes, so that a busy machine does not fail it. */
const LIMIT_MS = 60_000;
const MAX_MEMORY_BYTES = 250e6;

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let service: Started;
let browser: Browser;
before(async () => {
  await buildWebClient();
  folder = await temporaryFolder();
  await copyDemoData(folder.path);
  service = await npmStart(folder.path);
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await stop(service);
  await folder.remove();
});

/** The memory of the process with the web client in use. */
async function memoryBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) * 1024;
}

test("from the landing page to the first words of a run: a visitor signs in, buys and runs within a minute", async () => {
  const context = await openContext(browser);
  const { page, foreign, complaints } = await openWebPage(context, service.origin);
  const begun = performance.now();
  await page.goto(service.origin);
  await page.locator(".card", { hasText: "Prompt by" }).first().click();
  await page
    .getByRole("link", { name: /^(Buy|Get) for/ })
    .first()
    .click();
  await page.getByRole("link", { name: "Sign in to buy" }).click();
  await page.getByLabel("Email address").fill("newcomer@example.com");
  await click(page, "Mail me a link");
  await page.waitForURL("**/auth/check-mail*");
  const mailbox = await context.newPage();
  await mailbox.goto(`${service.origin}/dev/mail`);
  await mailbox.getByRole("listitem").getByRole("link").first().click();
  const opened = context.waitForEvent("page");
  await mailbox.frameLocator("iframe").getByRole("link", { name: "Sign in" }).first().click();
  const tab = await opened;
  await click(tab, "Sign in");
  await tab.getByRole("link", { name: "Continue" }).click();
  await tab
    .getByRole("button", { name: /^(Pay|Get)/ })
    .first()
    .click();
  await sees(tab, "It is yours.");
  await tab.getByRole("link", { name: /Run it now/ }).click();
  await tab.waitForURL("**/run/*");
  await tab.getByRole("button", { name: /^Run/ }).first().waitFor();
  for (const field of await tab.locator("form").getByRole("textbox").all())
    if ((await field.inputValue()) === "") await field.fill("bread");
  await tab.getByRole("button", { name: /^Run/ }).first().click();
  await sees(tab, /Streaming|Completed/);
  const took = performance.now() - begun;
  await takePicture(tab, "first words");
  assert.ok(took <= LIMIT_MS, `${Math.round(took)} ms`);
  assert.deepEqual([...foreign, ...complaints], []);
  await context.close();
  const bytes = await memoryBytes(service.servicePid);
  assert.ok(bytes <= MAX_MEMORY_BYTES, `${Math.round(bytes / 1e6)} MB`);
  console.log(`${Math.round(took)} ms to the first words, ${Math.round(bytes / 1e6)} MB of memory`);
});
