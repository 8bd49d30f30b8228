/** The workflow editor in a browser: built by keyboard, run, approved; errors; undo; conflicts; its looks. */
import assert from "node:assert/strict";
import { after, before, suite } from "node:test";
import { firstOf } from "@stoa/service/core/required.ts";
import { createProduct } from "@stoa/service/test/factories.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { type ProviderServer, startProviderServer } from "@stoa/service/test/provider-server.ts";
import { createProviderKey, providersAt } from "@stoa/service/test/runs.ts";
import { becomes } from "@stoa/service/test/until.ts";
import {
  createWorkflow,
  definitionOf,
  echoStep,
  executeWorkflow,
  promptStep,
  startExecution,
  startWorker,
  transformStep,
  untilStatus,
} from "@stoa/service/test/workflows.ts";
import fc from "fast-check";
import type { Browser, Page } from "playwright-core";
import { openBrowser, sees } from "./browser.ts";
import { EditLog, StoredTexts } from "./edit-log.ts";
import { everyRun, test } from "./full-run.ts";
import { INTERLEAVINGS } from "./interleavings.ts";
import { openAt, openMember } from "./members.ts";
import { buildWebClient, mustBeSound } from "./web.ts";

let provider: ProviderServer;
let market: Market;
let worker: ReturnType<typeof startWorker>;
let browser: Browser;
before(async () => {
  await buildWebClient();
  provider = await startProviderServer();
  market = await openMarket({ providers: providersAt(provider) });
  worker = startWorker(market);
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await worker?.stop();
  await market?.close();
  await provider?.close();
});

const START = {
  input: { type: "object", properties: { topic: { type: "string" } }, required: ["topic"] },
  steps: [echoStep("outline", "On {{topic}}", { vars: { topic: "input.topic" } })],
  result: "steps.outline.output",
};
const LONGER = {
  ...START,
  steps: [
    ...START.steps,
    transformStep("parts", "[steps.outline.output, 'two']", { needs: ["outline"] }),
    {
      ...{ id: "drafts", type: "map", needs: ["parts"], items: "steps.parts.output" },
      do: { type: "transform", value: "item + string(index)" },
    },
    { id: "check", type: "approval", needs: ["outline"], timeoutSeconds: 86_400 },
  ],
  result: "steps.drafts.output",
};

const delayStep = (id: string) => ({ id, type: "delay", seconds: 60 });
const contentOf = async (author: Client, id: string): Promise<string> =>
  (await author.get(`/v1/products/${id}`)).body.data.content;
const stepsOf = async (author: Client, id: string): Promise<{ id: string; needs?: string[] }[]> =>
  JSON.parse(await contentOf(author, id)).steps;
const openEditor = (context: Awaited<ReturnType<typeof openMember>>["context"], id: string, search = "") =>
  openAt(context, market, `/studio/workflows/${id}${search}`);
const nodeOf = (page: Page, id: string) => page.locator(`[data-step="${id}"]`);
const focusOf = (page: Page, id: string) => nodeOf(page, id).and(page.locator(":focus"));

suite("workflow editor", () => {
  everyRun("built from nothing by keyboard only, run, approved, and undone", async () => {
    const { context, session } = await openMember(market, browser, { look: { width: 1400 } });
    const id = await createWorkflow(session, { steps: [transformStep("first", '"x"')] });
    const { page, ...watched } = await openEditor(context, id);
    const { keyboard } = page;
    await nodeOf(page, "first").focus();
    await keyboard.press("Delete");
    await sees(page, "0 steps");
    await sees(page, "1 problem");
    await keyboard.press("a");
    await keyboard.press("t");
    // A new step takes the focus a frame after its dialog has closed.
    await focusOf(page, "transform").waitFor();
    await page.keyboard.press("Escape");
    // The new step is open: its value is the first text that a person changes.
    await page.getByLabel("Value").focus();
    await keyboard.press("Control+a");
    await keyboard.type('"Hello "');
    await nodeOf(page, "transform").focus();
    await keyboard.press("a");
    await keyboard.press("a");
    await focusOf(page, "approval").waitFor();
    await keyboard.press("a");
    await keyboard.press("t");
    await focusOf(page, "transform2").waitFor();
    await page.getByLabel("Value").focus();
    await keyboard.press("Control+a");
    await keyboard.type("steps.tra");
    // Of two steps that begin so only the one before can be read.
    await page.getByRole("option", { name: "transform" }).waitFor();
    await keyboard.press("Enter");
    await keyboard.type(' + "you"');
    // The port of the first step leads to the third.
    await nodeOf(page, "transform").focus();
    await keyboard.press("Tab");
    await keyboard.press("Enter");
    await sees(page, "Choose the step that needs transform");
    await nodeOf(page, "transform2").focus();
    await keyboard.press("Enter");
    await page.getByRole("button", { name: "Result" }).focus();
    await keyboard.press("Enter");
    await page.getByLabel("Value").focus();
    await keyboard.press("Control+a");
    await keyboard.type("steps.transform2.output");
    await keyboard.press("Escape");
    await sees(page, "No problems");
    await keyboard.press("Control+s");
    const saved = await becomes(
      () => stepsOf(session, id),
      (steps) => steps.length === 3 && steps[2]?.needs?.length === 2,
    );
    assert.deepEqual(
      saved.map(({ id }) => id),
      ["transform", "approval", "transform2"],
    );
    await page.getByRole("button", { name: "Test run" }).focus();
    await keyboard.press("Enter");
    await page.getByRole("button", { name: "Run", exact: true }).focus();
    await keyboard.press("Enter");
    await nodeOf(page, "approval").and(page.locator(".is-asking")).waitFor();
    await nodeOf(page, "approval").focus();
    await keyboard.press("Enter");
    // Enter opens the fields of the step, and the focus follows a frame later.
    await page.locator('[data-field="id"] input:focus').waitFor();
    await page.getByRole("button", { name: "Approve" }).focus();
    await keyboard.press("Enter");
    await nodeOf(page, "transform2").and(page.locator(".is-done")).waitFor();
    // The end of the approval removes the focused button.
    await page.getByRole("button", { name: "Approve" }).waitFor({ state: "hidden" });
    await nodeOf(page, "transform2").focus();
    await keyboard.press("Enter");
    await sees(page, /"Hello you"/);
    for (let count = 0; count < 40; count++) await keyboard.press("Control+z");
    await nodeOf(page, "first").waitFor();
    await becomes(
      () => stepsOf(session, id),
      (steps) => steps[0]?.id === "first",
    );
    await mustBeSound({ page, ...watched }, "workflow-undone");
    await context.close();
  });

  test("an expression: the caret is behind a chosen name at once, before the next key", async () => {
    const { context, session } = await openMember(market, browser, { look: { width: 1400 } });
    const steps = [transformStep("first", '"x"'), transformStep("second", '"y"', { needs: ["first"] })];
    const { page } = await openEditor(context, await createWorkflow(session, { steps }), "?step=second");
    const value = page.getByLabel("Value");
    await value.fill('"y" + steps.fir + "z"');
    await value.evaluate(
      (field, at) => (field as unknown as Field).setSelectionRange(at, at),
      '"y" + steps.fir'.length,
    );
    await page.keyboard.press("Control+ ");
    await page.getByRole("option", { name: "first" }).waitFor();
    assert.deepEqual(await page.evaluate(CHOOSE_AND_READ), [
      '"y" + steps.first.output + "z"',
      '"y" + steps.first.output'.length,
    ]);
    await context.close();
  });

  test("an error at its four places: node, field, problem bar and source, with its fix", async () => {
    const { context, session } = await openMember(market, browser, { look: { width: 1400 } });
    const id = await createWorkflow(session, LONGER);
    const watched = await openEditor(context, id, "?step=drafts");
    const { page } = watched;
    await page.getByLabel("At a time").fill("400");
    const sentence = "MaxConcurrency must be at most 50";
    await nodeOf(page, "drafts").and(page.locator(".is-failed")).waitFor();
    await page.locator(".workflow-node-error", { hasText: sentence }).waitFor();
    await page.locator(".ferr", { hasText: sentence }).waitFor();
    await mustBeSound(watched, "workflow-errors");
    await page.getByRole("button", { name: "Input" }).click();
    await page.locator(".workflow-problems").getByRole("button", { name: sentence }).click();
    await becomes(
      () => page.evaluate('document.activeElement?.closest("[data-field]")?.getAttribute("data-field")'),
      (field) => field === "maxConcurrency",
    );
    await page.getByRole("link", { name: "Source" }).click();
    await page.locator(".cm-problem", { hasText: "400" }).waitFor();
    await sees(page, /Line \d+, drafts:/);
    await mustBeSound(watched, "workflow-source");
    await page.getByRole("button", { name: "Set to 50" }).click();
    await page.locator(".cm-content", { hasText: '"maxConcurrency": 50' }).waitFor();
    await sees(page, "No problems");
    // Source and canvas in step: what is typed in one changes the other.
    await page.getByRole("link", { name: "Split" }).click();
    await page.locator(".cm-content").click();
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText(definitionOf(START));
    await sees(page, "1 step");
    await page.keyboard.press("Control+z");
    await sees(page, "4 steps");
    await page.locator(".cm-content", { hasText: '"maxConcurrency": 50' }).waitFor();
    await mustBeSound(watched, "workflow-split");
    await context.close();
  });

  test("a step alone: values of the last run, pinned outputs, and a step that was renamed", async () => {
    const { context, session } = await openMember(market, browser, { look: { width: 1400 } });
    const id = await createWorkflow(session, { ...LONGER, steps: LONGER.steps.slice(0, 3) });
    await executeWorkflow(session, id, { input: { topic: "rain" } });
    const watched = await openEditor(context, id, "?step=drafts");
    const { page } = watched;
    await sees(page, '["[sandbox] On rain","two"]');
    await sees(page, '"[sandbox] On rain0"');
    await page.getByLabel("Name", { exact: true }).fill("texts");
    await page.keyboard.press("Enter");
    await nodeOf(page, "texts").waitFor();
    await page.getByRole("button", { name: "Run step" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("parts", { exact: true }).fill('["a", "b"]');
    await mustBeSound(watched, "workflow-run-step");
    await dialog.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByLabel("Last run of texts").getByText('"a0"').waitFor();
    await becomes(
      () => stepsOf(session, id),
      (steps) => steps[2]?.id === "texts",
    );
    assert.equal(JSON.parse(await contentOf(session, id)).result, "steps.texts.output");
    // The result has the value of that run, too.
    await page.getByRole("button", { name: "Result" }).click();
    await page.getByRole("region", { name: "Result" }).getByText('["a0","b1"]').waitFor();
    await context.close();
  });

  test("a real run is replayed on the draft: its input and outputs are pinned, and only what changed runs", async () => {
    const { context, session } = await openMember(market, browser, { look: { width: 1400 } });
    const id = await createWorkflow(session, { ...LONGER, steps: LONGER.steps.slice(0, 3) });
    await session.post(`/v1/products/${id}/publish`);
    const first = await executeWorkflow(session, id, { input: { topic: "rain" } });
    await executeWorkflow(session, id, { input: { topic: "snow" } });
    const watched = await openEditor(context, id, "?step=drafts");
    const { page } = watched;
    await sees(page, "[sandbox] On snow");
    await page.getByLabel("Value").fill("item + '!'");
    await sees(page, "No problems");
    await page.getByRole("button", { name: "Test run" }).click();
    const dialog = page.getByRole("dialog");
    await sees(page, "Each step runs once");
    await dialog.getByLabel("Replay an earlier run").selectOption(first.executionId);
    await sees(page, "1 of 3 steps run, at your providers' prices: drafts.");
    assert.equal(await dialog.getByLabel("topic").inputValue(), "rain");
    assert.match(await dialog.getByLabel("outline", { exact: true }).inputValue(), /On rain/);
    await mustBeSound(watched, "workflow-replay");
    await dialog.getByRole("button", { name: "Run it instead for parts" }).click();
    await sees(page, "2 of 3 steps run");
    await dialog.getByRole("button", { name: "Pin the recorded one for parts" }).click();
    await dialog.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByLabel("Last run of drafts").getByText('"[sandbox] On rain!"').waitFor();
    const [latest] = (await session.get(`/v1/ai/executions?productId=${id}&limit=1`)).body.data;
    const { data: steps } = (await session.get(`/v1/ai/executions/${latest.id}/steps`)).body;
    assert.deepEqual(new Set(steps.map(({ stepId }: { stepId: string }) => stepId)), new Set(["drafts"]));
    await context.close();
  });

  test("a step that runs a product, and keys that run every model: a test run has a key for each", async () => {
    const { context, session } = await openMember(market, browser, { look: { width: 1400 } });
    const own = await createProviderKey(session);
    await createProviderKey(session, { provider: "openai-compatible", baseUrl: provider.url });
    const poem = { id: "poem", type: "product", productId: await createProduct(session) };
    const product = { ...poem, variables: { topic: "'rain'" } };
    const byProduct = await createWorkflow(session, { steps: [product] });
    const both = await createWorkflow(session, { steps: [product, promptStep("title", "A title.")] });
    const { page } = await openEditor(context, both);
    await page.getByRole("button", { name: "Test run" }).click();
    assert.equal(await page.getByRole("dialog").getByLabel("Key for OpenAI").inputValue(), own);
    await page.goto(`${market.origin}/studio/workflows/${byProduct}?step=poem`);
    await page.getByRole("button", { name: "Test run" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Run", exact: true }).click();
    await page.getByLabel("Last run of poem").getByText("An answer.").waitFor();
    await context.close();
  });

  test("two tabs on one workflow, random interleavings: no edit is lost without a choice", async () => {
    const { context, session } = await openMember(market, browser, { look: { width: 1400 } });
    const id = await createWorkflow(session, { steps: ["a", "b", "c"].map(delayStep) });
    const path = `/v1/products/${id}`;
    const opened = await session.get(path);
    const etag = opened.headers.get("etag") ?? "";
    const stored = new StoredTexts(etag, opened.body.data.content);
    const tabs = await Promise.all(
      [0, 1].map(async () => {
        const watched = await openEditor(context, id);
        await nodeOf(watched.page, "a").waitFor();
        return { ...watched, log: new EditLog(watched, path, etag, stored) };
      }),
    );
    let count = 0;
    const cases = fc.record({
      edits: fc.array(
        fc.record({
          tab: fc.constantFrom<0 | 1>(0, 1),
          edit: fc.constantFrom<Edit | "save">("add", "rename", "change", "remove", "save"),
          at: fc.nat(MAX_STEPS),
        }),
        { minLength: 2, maxLength: 3 },
      ),
      side: fc.constantFrom<Side>("mine", "theirs"),
    });
    const property = fc.asyncProperty(cases, async ({ edits, side }) => {
      for (const { tab: index, edit, at } of edits) {
        const tab = tabs[index] ?? firstOf(tabs);
        if (edit === "save") await settle(tab, side);
        else {
          // A conflict may open by itself, since an edit is saved after a moment.
          if (await isInConflict(tab)) await choose(tab, side);
          await editSteps(tab, edit, at, count++);
        }
      }
      for (const tab of tabs) await settle(tab, side);
      // The browser reports a response later than the page shows its effect.
      await becomes(
        () => tabs.flatMap(({ log }) => log.unsaved),
        (steps) => steps.length === 0,
        "each edit stored or given up by a choice",
        REPORT_MS,
      );
      stored.mustBeSeen();
    });
    await fc.assert(property, { numRuns: INTERLEAVINGS, endOnFailure: true });
    await context.close();
  });

  test("a choice for the other tab's text: undo leads back to the own one", async () => {
    const { context, session } = await openMember(market, browser, { look: { width: 1400 } });
    const id = await createWorkflow(session, { steps: [delayStep("a")] });
    const { page } = await openEditor(context, id);
    await nodeOf(page, "a").waitFor();
    await session.patch(`/v1/products/${id}`, { content: definitionOf({ steps: [delayStep("theirs")] }) });
    await page.getByRole("button", { name: "Add transform" }).click();
    await page.locator(".workflow-conflict").getByRole("button", { name: "Take theirs" }).click();
    await nodeOf(page, "theirs").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await nodeOf(page, "transform").waitFor();
    await becomes(
      () => stepsOf(session, id),
      (steps) => steps.length === 2,
    );
    await context.close();
  });

  test("a version on sale: changes stay in the browser, are compared, and are published as the next one", async () => {
    const { context, session } = await openMember(market, browser, { look: { width: 1400 } });
    const id = await createWorkflow(session, LONGER);
    await session.post(`/v1/products/${id}/publish`);
    const run = await startExecution(session, id, { input: { topic: "rain" } });
    await untilStatus(session, run, "waiting");
    const watched = await openEditor(context, id, "?step=parts");
    const { page } = watched;
    await sees(page, /\[sandbox\] On rain/);
    await page.getByLabel("Value").fill("[steps.outline.output, 'three']");
    await sees(page, "Kept in this browser until you publish");
    await page.reload();
    await page.getByLabel("Value").and(page.locator("text=three")).waitFor();
    await page.getByRole("button", { name: "Publish" }).click();
    await page.locator(".workflow-diff ins", { hasText: "three" }).waitFor();
    await mustBeSound(watched, "workflow-publish", { isLive: true });
    await page.getByRole("dialog").getByRole("button", { name: "Publish" }).click();
    await sees(page, "Version 1.1.0 is on sale");
    assert.match(await contentOf(session, id), /three/);
    await context.close();
  });

  for (const look of [
    { scheme: "dark", width: 1400 },
    { scheme: "dark", width: 900 },
    { scheme: "light", width: 320 },
  ] as const)
    test(`${look.scheme} at ${look.width} px: canvas or list, forms and source are sound`, async () => {
      const { context, session } = await openMember(market, browser, { look });
      const id = await createWorkflow(session, LONGER);
      const watched = await openEditor(context, id, "?step=drafts");
      const { page } = watched;
      await page.getByLabel("At a time").fill("400");
      await sees(page, "MaxConcurrency must be at most 50");
      const name = `workflow-${look.scheme}-${look.width}`;
      await mustBeSound(watched, name);
      await page.getByRole("link", { name: "Source" }).click();
      await page.locator(".cm-line").first().waitFor();
      await mustBeSound(watched, `${name}-source`);
      await page.getByRole("link", { name: "Canvas" }).click();
      await page.getByRole("button", { name: "Test run" }).click();
      await page.getByRole("dialog").waitFor();
      await mustBeSound(watched, `${name}-test`);
      await context.close();
    });
});

interface Field {
  setSelectionRange(start: number, end: number): void;
}

/** Runs in the page, within one frame: presses Enter, and returns text and caret once React has rendered. */
const CHOOSE_AND_READ = `(async () => {
  const field = document.activeElement;
  field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
  for (let turn = 0; turn < 5; turn++) await null;
  return [field.value, field.selectionStart];
})()`;

interface EditedTab {
  page: Page;
  log: EditLog;
}

type Edit = "add" | "rename" | "change" | "remove";
type Side = "mine" | "theirs";

const REPORT_MS = 10_000;
/** A longer workflow takes longer to draw. */
const MAX_STEPS = 6;

/** One edit by the form or the canvas, with a text that no other edit writes. `at` chooses the step. */
async function editSteps({ page, log }: EditedTab, wanted: Edit, at: number, count: number): Promise<void> {
  const ids = await listSteps(page);
  const edit = ids.length <= 1 ? "add" : ids.length >= MAX_STEPS && wanted === "add" ? "remove" : wanted;
  const id = ids[at % ids.length] ?? "";
  const name = `w${count}`;
  if (edit === "add") {
    await page.getByRole("button", { name: "Add delay" }).click();
    await rename(page, name);
    log.added(name);
    return;
  }
  await nodeOf(page, id).focus();
  await page.locator(`section[aria-label="Step ${id}"]`).waitFor();
  if (edit === "rename") {
    await rename(page, name);
    log.renamed(id, name);
  } else if (edit === "change") {
    const seconds = String(count + MIN_TOKEN);
    await page.getByLabel("Seconds").fill(seconds);
    log.changed(id, seconds);
  } else {
    await page.keyboard.press("Delete");
    await nodeOf(page, id).waitFor({ state: "detached" });
    log.removed(id);
  }
}

/** Above the seconds of new steps. */
const MIN_TOKEN = 1_000;

const listSteps = (page: Page): Promise<string[]> =>
  page
    .locator("[data-step]")
    .evaluateAll((nodes) => nodes.map((node) => node.getAttribute("data-step") ?? ""));

async function rename(page: Page, name: string): Promise<void> {
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.keyboard.press("Enter");
  await nodeOf(page, name).waitFor();
}

const isInConflict = ({ page }: EditedTab) => page.locator(".workflow-conflict").isVisible();

async function choose({ page, log }: EditedTab, side: Side): Promise<void> {
  log.chose(side);
  await page
    .locator(".workflow-conflict")
    .getByRole("button", { name: side === "mine" ? "Keep mine" : "Take theirs" })
    .click();
}

/** Saves the tab; where the other one has saved before, with a choice. */
async function settle(tab: EditedTab, side: Side): Promise<void> {
  const { page } = tab;
  const isSaved = page.locator(".workflow-saved", { hasText: /^\s*Saved/ });
  for (;;) {
    await page.keyboard.press("Control+s");
    await isSaved.or(page.locator(".workflow-conflict")).first().waitFor();
    if (!(await isInConflict(tab))) return;
    await choose(tab, side);
  }
}
