/** The canvas of the workflow editor by pointer, and the cost before a test run. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Market, openMarket } from "@stoa/service/test/market.ts";
import { becomes } from "@stoa/service/test/until.ts";
import { createWorkflow, promptStep, transformStep } from "@stoa/service/test/workflows.ts";
import type { Browser, Page } from "playwright-core";
import { openBrowser, sees, takePicture } from "./browser.ts";
import { openAt, openMember } from "./members.ts";
import { buildWebClient } from "./web.ts";

let market: Market;
let browser: Browser;
before(async () => {
  await buildWebClient();
  market = await openMarket();
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await market?.close();
});

const CHAIN = {
  steps: Array.from({ length: 5 }, (_, at) =>
    transformStep(`step${at}`, '"x"', at > 0 ? { needs: [`step${at - 1}`] } : {}),
  ),
};

const boxOf = async (page: Page, selector: string) => {
  const box = await page.locator(selector).boundingBox();
  assert.ok(box, `${selector} is shown`);
  return box;
};

/** Runs in the page: how many of the lines that are shown begin or end at the border of a step. */
const COUNT_LINES = `(selector) => {
  const box = document.querySelector(selector).getBoundingClientRect();
  const isAtBorder = ({ x, y }) => {
    const outside = Math.max(box.left - x, x - box.right, box.top - y, y - box.bottom);
    return Math.abs(outside) < 3;
  };
  return [...document.querySelectorAll(".react-flow__edge-path")].filter((path) => {
    const toScreen = (point) => point.matrixTransform(path.getScreenCTM());
    const ends = [path.getPointAtLength(0), path.getPointAtLength(path.getTotalLength())];
    return path.checkVisibility({ visibilityProperty: true }) && ends.map(toScreen).some(isAtBorder);
  }).length;
}`;
const countLines = (page: Page, selector: string) =>
  page.evaluate(`(${COUNT_LINES})(${JSON.stringify(selector)})`);

test("canvas: a step that gets the focus right after another one was removed keeps it", async () => {
  const { context, session } = await openMember(market, browser, { look: { width: 1400 } });
  const id = await createWorkflow(session, CHAIN);
  const { page } = await openAt(context, market, `/studio/workflows/${id}`);
  await page.locator('[data-step="step3"]').focus();
  await page.getByRole("region", { name: "Step step3" }).waitFor();
  await page.evaluate(REMOVE_AND_FOCUS);
  await page.getByRole("region", { name: "Step step0" }).waitFor();
  assert.equal(await page.locator('[data-step="step3"]').count(), 0);
  await context.close();
});

/** Runs in the page, within one frame. Resolves after the next ones. */
const REMOVE_AND_FOCUS = `(async () => {
  const step = (id) => document.querySelector('[data-step="' + id + '"]');
  step("step3").dispatchEvent(new KeyboardEvent("keydown", { key: "Delete", bubbles: true }));
  step("step0").focus();
  for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
})()`;

test("canvas: a step that is dragged takes its lines along and stays there, and Undo brings them back", async () => {
  const { context, session } = await openMember(market, browser, { look: { width: 1400 } });
  const id = await createWorkflow(session, CHAIN);
  const { page } = await openAt(context, market, `/studio/workflows/${id}`);
  const step = '[data-step="step2"]';
  await page.locator(step).waitFor();
  const from = await boxOf(page, step);
  const [x, y] = [from.x + from.width / 2, from.y + from.height / 2];
  /** Lines are drawn a frame after their steps. */
  const showsLines = (when: string) =>
    becomes(
      () => countLines(page, step),
      (count) => count === 2,
      `lines ${when}`,
    );
  await showsLines("at first");
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + 60, y + 30, { steps: 5 });
  await page.mouse.move(x + 120, y + 60, { steps: 5 });
  const isMoved = ({ x, y }: { x: number; y: number }) => x > from.x + 100 && y > from.y + 40;
  await becomes(() => boxOf(page, step), isMoved);
  await showsLines("while it moves");
  await page.mouse.up();
  assert.ok(isMoved(await boxOf(page, step)));
  await showsLines("where it was dropped");
  await page.getByRole("button", { name: "Undo" }).click();
  await becomes(
    () => boxOf(page, step),
    (box) => Math.abs(box.x - from.x) < 1 && Math.abs(box.y - from.y) < 1,
  );
  await showsLines("after Undo");
  await context.close();
});

for (const { width, maps } of [
  { width: 1400, maps: 1 },
  { width: 900, maps: 0 },
])
  test(`canvas: at ${width} px in the split view no step lies under the minimap`, async () => {
    const { context, session } = await openMember(market, browser, { look: { width } });
    const id = await createWorkflow(session, CHAIN);
    const { page } = await openAt(context, market, `/studio/workflows/${id}?view=split`);
    await page.locator('[data-step="step4"]').waitFor();
    await takePicture(page, `workflow-split-${width}`);
    const minimaps = await page.locator(".react-flow__minimap").all();
    assert.equal(minimaps.length, maps);
    for (const minimap of minimaps) {
      const map = await minimap.boundingBox();
      assert.ok(map);
      for (let at = 0; at < CHAIN.steps.length; at++) {
        const box = await boxOf(page, `[data-step="step${at}"]`);
        const isBeside = box.x >= map.x + map.width || box.x + box.width <= map.x;
        const isOverOrBelow = box.y >= map.y + map.height || box.y + box.height <= map.y;
        assert.ok(isBeside || isOverOrBelow, `step${at}: ${JSON.stringify({ box, map })}`);
      }
    }
    await context.close();
  });

test("test run: shows the expected cost of the steps that it runs, and none in the sandbox", async () => {
  const { context, session } = await openMember(market, browser, { look: { width: 1400 } });
  const steps = [promptStep("write", "Write a poem."), transformStep("two", "1", { needs: ["write"] })];
  const id = await createWorkflow(session, { steps });
  const { page } = await openAt(context, market, `/studio/workflows/${id}`);
  await page.getByRole("button", { name: "Test run" }).click();
  await sees(page, /Estimate: nothing is charged/);
  await session.post("/v1/ai/keys", { provider: "openai", name: "Own", key: "sk-test-0123456789abcdef" });
  await page.reload();
  await page.getByRole("button", { name: "Test run" }).click();
  await sees(page, /Estimate: about \$0\.00\d+, for answers of 500 tokens/);
  await context.close();
});
