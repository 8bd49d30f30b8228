/** The workflow editor in a browser: built by keyboard, run, approved; errors; undo; conflicts; its looks. */
import assert from "node:assert/strict";
import { after, before, suite } from "node:test";
import { firstOf } from "@stoa/service/core/required.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { type ProviderServer, startProviderServer } from "@stoa/service/test/provider-server.ts";
import { providersAt } from "@stoa/service/test/runs.ts";
import { becomes } from "@stoa/service/test/until.ts";
import {
  createWorkflow,
  definitionOf,
  echoStep,
  executeWorkflow,
  startExecution,
  startWorker,
  transformStep,
  untilStatus,
} from "@stoa/service/test/workflows.ts";
import type { Browser, Page } from "playwright-core";
import { openBrowser, sees } from "./browser.ts";
import { everyRun, test } from "./full-run.ts";
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

const contentOf = async (author: Client, id: string): Promise<string> =>
  (await author.get(`/v1/products/${id}`)).body.data.content;
const stepsOf = async (author: Client, id: string): Promise<{ id: string; needs?: string[] }[]> =>
  JSON.parse(await contentOf(author, id)).steps;
const openEditor = (context: Awaited<ReturnType<typeof openMember>>["context"], id: string, search = "") =>
  openAt(context, market, `/studio/workflows/${id}${search}`);
const nodeOf = (page: Page, id: string) => page.locator(`[data-step="${id}"]`);

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
    await sees(page, "transform");
    await page.keyboard.press("Escape");
    // The new step is open: its value is the first text that a person changes.
    await page.getByLabel("Value").focus();
    await keyboard.press("Control+a");
    await keyboard.type('"Hello "');
    await nodeOf(page, "transform").focus();
    await keyboard.press("a");
    await keyboard.press("a");
    await nodeOf(page, "approval").waitFor();
    await nodeOf(page, "approval").focus();
    await keyboard.press("a");
    await keyboard.press("t");
    await nodeOf(page, "transform2").waitFor();
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
    await dialog.getByLabel("parts").fill('["a", "b"]');
    await mustBeSound(watched, "workflow-run-step");
    await dialog.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByLabel("Last run of texts").getByText('"a0"').waitFor();
    await becomes(
      () => stepsOf(session, id),
      (steps) => steps[2]?.id === "texts",
    );
    assert.equal(JSON.parse(await contentOf(session, id)).result, "steps.texts.output");
    await context.close();
  });

  test("two tabs on one workflow: random interleavings lose no edit", async () => {
    const { context, session } = await openMember(market, browser, { look: { width: 1400 } });
    const random = createRandom(20_261_123);
    const id = await createWorkflow(session, { steps: [transformStep("first", '"x"')] });
    const tabs = [await openEditor(context, id), await openEditor(context, id)];
    for (const { page } of tabs) await nodeOf(page, "first").waitFor();
    const wanted = new Set(["first"]);
    for (let round = 0; round < ROUNDS; round++) {
      const { page } = tabs[random(2)] ?? firstOf(tabs);
      const name = `step${round}`;
      await page.bringToFront();
      await addStep(page, name);
      wanted.add(name);
      // Sometimes the other tab goes on before this one has saved.
      if (random(3) === 0) continue;
      for (const tab of tabs) await settle(tab.page, tab.page === page);
    }
    for (const tab of tabs) await settle(tab.page, tab === tabs[0]);
    for (const tab of tabs) await settle(tab.page, false);
    // An edit is saved, or in the history of its tab: what was taken from the other tab can be undone.
    const saved = new Set((await stepsOf(session, id)).map((step) => step.id));
    for (const { page } of tabs) for (const name of await stepsEver(page)) saved.add(name);
    assert.deepEqual(
      [...wanted].filter((name) => !saved.has(name)),
      [],
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

const ROUNDS = Number(process.env["STOA_INTERLEAVINGS"] ?? 6);

/** mulberry32: the same order in each run. */
function createRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

async function addStep(page: Page, name: string): Promise<void> {
  const strip = page.locator(".workflow-conflict");
  if (await strip.isVisible()) await strip.getByRole("button", { name: "Keep mine" }).click();
  await page.getByRole("button", { name: "Add delay" }).click();
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.keyboard.press("Enter");
  await nodeOf(page, name).waitFor();
}

/** Until the tab has saved, or a conflict was decided. */
async function settle(page: Page, keepsMine: boolean): Promise<void> {
  await page.bringToFront();
  const strip = page.locator(".workflow-conflict");
  await becomes(
    async () => {
      if (await strip.isVisible())
        await strip.getByRole("button", { name: keepsMine ? "Keep mine" : "Take theirs" }).click();
      return await page.locator(".workflow-saved").innerText();
    },
    (text) => /^Saved/.test(text.trim()),
  );
}

/** The steps of every document in the history of a tab. */
async function stepsEver(page: Page): Promise<Set<string>> {
  const found = new Set<string>();
  const undo = page.getByRole("button", { name: "Undo" });
  for (;;) {
    for (const node of await page.locator("[data-step]").all())
      found.add((await node.getAttribute("data-step")) ?? "");
    if (!(await undo.isEnabled())) return found;
    await undo.click();
  }
}
