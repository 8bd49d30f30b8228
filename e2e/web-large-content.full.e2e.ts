import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { buyProduct, createDraft, createProduct } from "@stoa/service/test/factories.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { type ProviderServer, startProviderServer } from "@stoa/service/test/provider-server.ts";
import { gatedPieces } from "@stoa/service/test/run-streams.ts";
import { createProviderKey, providersAt } from "@stoa/service/test/runs.ts";
import { until } from "@stoa/service/test/until.ts";
import { createWorkflow, echoStep } from "@stoa/service/test/workflows.ts";
import type { Browser, Locator, Page } from "playwright-core";
import { click, openBrowser, overflowOf, sees } from "./browser.ts";
import { openAt, openMember } from "./members.ts";
import { waitUntilSaved } from "./product-editor.ts";
import { buildWebClient, type WebPage } from "./web.ts";

const MIB = 1024 * 1024;
const TOO_LARGE = 5 * MIB;
/** Of a prompt's content, in the contract. */
const MAX_CONTENT = 200_000;
/** A page that computes for longer looks frozen. Ten times what was measured, since the machine may be busy. */
const FROZEN_MS = 5_000;

/** Markup, scripts, emoji, both directions, variables and one word that fits on no line. */
const LINE = `<script>alert(1)</script> [click](javascript:alert(1)) **bold** 👩‍👩‍👧 שלום עולם {{topic}} ${"x".repeat(300)}\n`;
const textOf = (characters: number): string =>
  LINE.repeat(Math.ceil(characters / LINE.length))
    .slice(0, characters)
    .toWellFormed();

let provider: ProviderServer;
let market: Market;
let browser: Browser;
let seller: Client;
before(async () => {
  await buildWebClient();
  provider = await startProviderServer();
  market = await openMarket({ providers: providersAt(provider) });
  seller = await market.createUser({ name: "The Quiet Editor" });
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await market.close();
  await provider.close();
});

const OBSERVE_TASKS = `window.longestTask = 0;
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) window.longestTask = Math.max(window.longestTask, duration);
}).observe({ type: "longtask", buffered: true });`;

async function openAs(user: Client, path: string, look = {}): Promise<WebPage & { close(): Promise<void> }> {
  const session = await market.createSession(user.userId);
  const { context } = await openMember(market, browser, { session, look });
  await context.addInitScript({ content: OBSERVE_TASKS });
  const watched = await openAt(context, market, path);
  return { ...watched, close: () => context.close() };
}

/** Asserts that the page fits its window, was never frozen, and that nothing of the text ran, loaded or was reported. */
async function mustBeUsable({ page, foreign, complaints }: WebPage, name: string): Promise<void> {
  const blocked = Number(await page.evaluate("window.longestTask"));
  assert.ok(blocked < FROZEN_MS, `${name} was frozen for ${Math.round(blocked)} ms`);
  assert.ok((await overflowOf(page)) <= 0, `${name} is too wide`);
  assert.equal(await page.locator("a[href^='javascript:']").count(), 0, name);
  const unexpected = complaints.filter((text) => !text.startsWith("Failed to load resource"));
  assert.deepEqual([...foreign, ...unexpected], [], name);
}

/** A long text scrolls in itself: what stands below it is near. */
async function mustBeShort(page: Page, name: string): Promise<void> {
  const height = Number(await page.evaluate("document.documentElement.scrollHeight"));
  assert.ok(height < 10_000, `${name} is ${height} pixels high`);
}

/** Counted in the page: its text has megabytes. */
const hasWritten = (page: Page, characters: number) =>
  until("the output", () =>
    page
      .locator(".run-output")
      .evaluate(
        (element, least) => ((element as { textContent?: string }).textContent ?? "").length >= least,
        characters,
      ),
  );

interface Clipboard {
  DataTransfer: new () => { setData(type: string, text: string): void };
  ClipboardEvent: new (type: string, init: object) => Event;
}

/** A paste, as a browser reports it. */
async function paste(page: Page, into: Locator, text: string): Promise<void> {
  await into.focus();
  await into.evaluate((element, pasted) => {
    const { DataTransfer, ClipboardEvent } = globalThis as unknown as Clipboard;
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", pasted);
    (element as unknown as EventTarget).dispatchEvent(
      new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }),
    );
  }, text);
  await page.evaluate("new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown)))");
}

suite("a run that writes more than the service takes", () => {
  const size = 16_384;
  const pieces = Array.from({ length: TOO_LARGE / size }, () => textOf(size));

  test("its stream, and Stop in the middle of it", async () => {
    const poet = await createProduct(seller, { title: "Poet" });
    const ada = await market.createUser({ name: "Ada" });
    await buyProduct(ada, poet);
    await createProviderKey(ada);
    const watched = await openAs(ada, `/run/${poet}`);
    const { page } = watched;
    await page.getByLabel("topic").fill("rain");
    await sees(page, /Run, about/);
    const { gate, allow } = gatedPieces();
    provider.next({ stream: { pieces, gate } });
    await page.keyboard.press("Control+Enter");
    allow(200);
    await page.locator(".run-output pre").waitFor();
    await hasWritten(page, 3_200_000);
    await mustBeUsable(watched, "large output while it streams");
    await page.keyboard.press("Escape");
    await sees(page, "You stopped this run.");
    await mustBeUsable(watched, "large output that was stopped");
    await watched.close();
  });

  for (const look of [
    { width: 1200, scheme: "light" },
    { width: 360, scheme: "dark" },
  ] as const)
    test(`its end, ${look.width} pixels`, async () => {
      const poet = await createProduct(seller, { title: "Poet" });
      const ada = await market.createUser({ name: "Ada" });
      await buyProduct(ada, poet);
      await createProviderKey(ada);
      const watched = await openAs(ada, `/run/${poet}`, look);
      const { page } = watched;
      await page.getByLabel("topic").fill("rain");
      await page
        .getByText(/Run, about/)
        .locator("visible=true")
        .waitFor();
      provider.next({ stream: { pieces } });
      await page.keyboard.press("Control+Enter");
      await sees(page, "Failed");
      await hasWritten(page, 4_000_000);
      await sees(page, "The answer of OpenAI is longer than Stoa takes, and was cut off.");
      await mustBeUsable(watched, "large output that failed");
      await mustBeShort(page, "large output that failed");
      await page.reload();

      await hasWritten(page, 4_000_000);
      await mustBeUsable(watched, "large output read again");
      await watched.close();
    });
});

suite("a prompt as long as the service takes", () => {
  const content = textOf(MAX_CONTENT);

  test("in the editor, on its page, in a run and in the history of versions", async () => {
    const id = await createProduct(seller, { title: "Long", content, preview: content.slice(0, 2_000) });
    for (const [path, text] of [
      ["/studio/products/id", "Form of the prompt"],
      ["/studio/products/id?tab=versions", "compared with"],
      ["/p/id", "Preview"],
      ["/run/id", "topic"],
    ] as const) {
      const watched = await openAs(seller, path.replace("id", id));
      await watched.page.getByText(text).or(watched.page.getByLabel(text)).first().waitFor();
      await watched.page.waitForLoadState("networkidle");
      await mustBeUsable(watched, `long prompt ${path}`);
      await mustBeShort(watched.page, path);
      await watched.close();
    }
  });

  const at = (count: number, write: (at: number) => string) =>
    Array.from({ length: count }, (_, n) => write(n)).join("");
  for (const [name, text] of Object.entries({
    "markup, emoji and both directions": content,
    "thousands of variables": at(25_000, (n) => `{{v${n.toString(36)}}}`).slice(0, MAX_CONTENT),
    "hidden characters": "\u200b\u202e".repeat(MAX_CONTENT / 2),
    "open defaults": `${"{{a=".repeat(MAX_CONTENT / 4 - 1)}}}`,
  }))
    test(`${name}, pasted and then replaced`, async () => {
      const id = await createDraft(seller);
      const watched = await openAs(seller, `/studio/products/${id}`);
      const { page } = watched;
      const box = page.getByRole("textbox", { name: "Prompt text" });
      await box.waitFor();
      await page.keyboard.press("Control+a");
      await paste(page, box, text);
      await mustBeUsable(watched, `pasted ${name}`);
      if (name.endsWith("variables")) await sees(page, "Use at most 100 variables.");
      await box.focus();
      await page.keyboard.press("Control+a");
      await page.keyboard.type("Short {{topic}}");
      await waitUntilSaved(page);
      await mustBeUsable(watched, `replaced ${name}`);
      const { body } = await seller.get(`/v1/products/${id}`);
      assert.equal(body.data.content, "Short {{topic}}");
      await watched.close();
    });
});

suite("5 MB where the service takes less", () => {
  const text = textOf(TOO_LARGE);

  for (const isSold of [false, true])
    test(`pasted into the editor of a product ${isSold ? "on sale" : "that was never on sale"}: refused, and what was there stays`, async () => {
      const id = await (isSold ? createProduct(seller) : createDraft(seller));
      const watched = await openAs(seller, `/studio/products/${id}`);
      const { page } = watched;
      const box = page.getByRole("textbox", { name: "Prompt text" });
      await box.waitFor();
      await paste(page, box, text);
      await sees(page, /^The text was not inserted: .* may have at most 200,000\./);
      assert.match(await box.innerText(), /^Write a haiku/);
      await mustBeUsable(watched, "prompt after a refused paste");
      await watched.close();
    });

  test("pasted into the source of a workflow: refused, and what was there stays", async () => {
    const id = await createWorkflow(seller, { steps: [echoStep("echo", "Echo")] });
    const watched = await openAs(seller, `/studio/workflows/${id}?view=source`);
    const { page } = watched;
    const box = page.getByRole("textbox", { name: "Source" });
    await box.waitFor();
    await paste(page, box, text);
    await sees(page, /^The text was not inserted: .* may have at most 200,000\./);
    await mustBeUsable(watched, "workflow after a refused paste");
    await watched.close();
  });

  test("in the fields of a product and of a run: the field says its limit", async () => {
    const id = await createDraft(seller);
    const details = await openAs(seller, `/studio/products/${id}?tab=details`);
    const features = details.page.getByLabel("Features", { exact: true });
    await features.fill(text);
    await sees(details.page, "Use at most 50 entries.");
    await details.page.keyboard.press("Control+s");
    await sees(details.page, "Not saved: Features");
    await mustBeUsable(details, "features that are too long");
    await features.fill("Three lines.");
    await details.page.keyboard.press("Control+s");
    await waitUntilSaved(details.page);
    await details.close();
    const run = await openAs(seller, `/run/${await createProduct(seller)}`);
    await run.page.getByLabel("topic").fill(text);
    await run.page.keyboard.press("Control+Enter");
    await sees(run.page, "Use at most 32,768 bytes.");
    await mustBeUsable(run, "value that is too long");
    await run.page.getByLabel("topic").fill("rain");
    await run.page.keyboard.press("Control+Enter");
    await sees(run.page, "Completed");
    await run.close();
  });

  test("dropped as a file to import: the fault is named, and another file works", async () => {
    const watched = await openAs(seller, "/studio/products");
    const { page } = watched;
    await click(page, "Import");
    const chooser = page.locator('dialog input[type="file"]');
    const file = (content: string) => ({
      name: "large.md",
      mimeType: "text/markdown",
      buffer: Buffer.from(`---\ntitle: Large\nprice: 5\ntype: PROMPT\n---\n${content}`),
    });
    await chooser.setInputFiles(file(text));
    await sees(page, /is larger than 4194304 bytes/);
    await mustBeUsable(watched, "file that is too large");
    await chooser.setInputFiles(file(textOf(2 * MIB)));
    await sees(page, /200000/);
    await mustBeUsable(watched, "content that is too large");
    await chooser.setInputFiles(file("Write about {{topic}}."));
    await sees(page, "The file is right.");
    await watched.close();
  });
});
