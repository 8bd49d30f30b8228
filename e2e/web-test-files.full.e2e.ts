import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { createDraft } from "@stoa/service/test/factories.ts";
import { type Market, openMarket } from "@stoa/service/test/market.ts";
import type { Browser } from "playwright-core";
import { click, looks, openBrowser } from "./browser.ts";
import { openAt, openMember } from "./members.ts";
import { buildWebClient, mustBeSound } from "./web.ts";

const YAML = `tests:
  - description: Names the topic
    vars: { topic: rain }
    assert:
      - { type: icontains, value: rain }
  - description: Runs code
    vars: { topic: rain }
    assert:
      - { type: javascript, value: "output.length > 3" }
`;

let market: Market;
let browser: Browser;
before(async () => {
  await buildWebClient();
  market = await openMarket();
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await market.close();
});

test("tests of a file: checked first, each line that is left out has its reason; taken back, and exported", async () => {
  for (const look of looks) {
    const { session, context } = await openMember(market, browser, { look });
    const productId = await createDraft(session);
    const titles = async () =>
      (await session.get(`/v1/products/${productId}/test-set`)).body.data.cases.map(
        ({ title }: { title: string }) => title,
      );
    const watched = await openAt(context, market, `/studio/products/${productId}?tab=tests`);
    const { page } = watched;
    const dialog = page.getByRole("dialog");
    await click(page, "Import");
    await dialog.getByLabel("File with tests").setInputFiles({
      name: "promptfooconfig.yaml",
      mimeType: "application/yaml",
      buffer: Buffer.from(YAML),
    });
    await dialog.getByText("1 test can be imported. Nothing is stored yet.").waitFor();
    await dialog.getByRole("row", { name: /^9 .*javascript/ }).waitFor();
    assert.deepEqual(await titles(), [], "the check stores nothing");
    await mustBeSound(watched, "import of tests");
    await click(page, "Import 1 test");
    await page.getByRole("cell", { name: "Names the topic", exact: true }).waitFor();
    assert.deepEqual(await titles(), ["Names the topic"]);

    await click(page, "Import");
    await dialog.getByLabel("Format").selectOption({ label: "promptfoo, CSV" });
    await dialog
      .getByLabel("Or its text")
      .fill("topic,__expected\nsnow,icontains:snow\nsleet,icontains:sleet\nhail,javascript:1\n");
    await click(page, "Check the file");
    await dialog.getByText("The import replaces your 1 test.").waitFor();
    await dialog
      .getByText(/javascript/)
      .last()
      .waitFor();
    await click(page, "Import 2 tests");
    await page.locator(".toast", { hasText: "2 tests imported" }).getByText("Undo").click();
    await page.getByRole("cell", { name: "Names the topic", exact: true }).waitFor();
    assert.deepEqual(await titles(), ["Names the topic"]);

    await click(page, "Import");
    await dialog.getByLabel("Or its text").fill("tests: [");
    await click(page, "Check the file");
    await dialog.getByText("Nothing of this file can be imported.").waitFor();
    await dialog.getByLabel("Format").selectOption({ label: "Agent Skills, evals.json" });
    await dialog.getByText("Nothing of this file can be imported.").waitFor({ state: "detached" });
    await click(page, "Cancel");

    await click(page, "Export");
    await mustBeSoundAfterRefusal();
    const saved = page.waitForEvent("download");
    await click(page, "Save as promptfoo, YAML");
    const file = await saved;
    assert.match(file.suggestedFilename(), /-tests\.yaml$/);
    assert.match(await readFile(await file.path(), "utf8"), /Names the topic/);
    await context.close();

    /** A test that no judge decides has no place in evals.json. */
    async function mustBeSoundAfterRefusal(): Promise<void> {
      await click(page, "Save as Agent Skills, evals.json");
      await dialog.getByText("Agent Skills, evals.json cannot hold these tests:").waitFor();
      const isRefusal = (text: string) => /status of 422/.test(text);
      const others = watched.complaints.filter((text) => !isRefusal(text));
      watched.complaints.splice(0, watched.complaints.length, ...others);
      await mustBeSound(watched, "export of tests that the format cannot hold");
    }
  }
});
