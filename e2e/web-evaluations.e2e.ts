import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before } from "node:test";
import { startEvaluation, storeTestSet, untilEvaluated } from "@stoa/service/test/evaluations.ts";
import { createProduct } from "@stoa/service/test/factories.ts";
import { type Market, openMarket } from "@stoa/service/test/market.ts";
import { createWorkflow, echoStep, startWorker } from "@stoa/service/test/workflows.ts";
import type { Browser, Page } from "playwright-core";
import { click, looks, openBrowser, openContext, sees } from "./browser.ts";
import { everyRun, test } from "./full-run.ts";
import { openAt, openMember } from "./members.ts";
import { buildWebClient, mustBeSound } from "./web.ts";

let market: Market;
let browser: Browser;
let worker: ReturnType<typeof startWorker>;
before(async () => {
  await buildWebClient();
  market = await openMarket();
  worker = startWorker(market);
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await worker?.stop();
  await market.close();
});

everyRun("a seller adds tests and evaluates the product; visitors see the score card", async () => {
  const { session, context } = await openMember(market, browser);
  const productId = await createProduct(session, {
    ...{ title: "Measured haiku", description: "Three lines. More at https://example.com/haiku" },
  });
  const editor = await openAt(context, market, `/studio/products/${productId}?tab=tests`);
  const { page } = editor;
  const dialog = page.getByRole("dialog");
  await click(page, "Add a test");
  await dialog.getByLabel("What it tests", { exact: true }).fill("Names the topic");
  await dialog.getByLabel("topic", { exact: true }).fill("rain");
  await dialog.getByLabel("Check 1: value").fill("rain");
  await click(page, "Save the test");
  await page.getByRole("cell", { name: "Names the topic", exact: true }).waitFor();
  await click(page, "Add a test");
  await dialog.getByLabel("What it tests", { exact: true }).fill("Is a list");
  await dialog.getByLabel("topic", { exact: true }).fill("snow");
  await dialog.getByLabel("Check 1: kind").selectOption("is-json");
  await dialog.getByLabel("Check 1: value").fill("{");
  await dialog.getByLabel("Hidden: buyers see only what it tests").check();
  await click(page, "Save the test");
  await sees(page, /This is not JSON/);
  await dialog.getByLabel("Check 1: value").fill('{"type":"array"}');
  await click(page, "Save the test");
  await page.getByRole("cell", { name: "The title", exact: true }).waitFor();

  await page.getByLabel("Model", { exact: true }).selectOption({ label: "Another model…" });
  await page.getByLabel("Name of the model").fill("sandbox-echo");
  await sees(page, /^\d+ runs, about/);
  await click(page, "Evaluate");
  await page.getByText("Running", { exact: true }).waitFor();
  const [{ id }] = (await session.get(`/v1/products/${productId}/evaluations`)).body.data;
  await untilEvaluated(market, session, id);
  await page.getByText("Complete", { exact: true }).waitFor();
  await page.getByRole("button", { name: /^Is a list, sandbox-echo \(practice\): 0 of 3/ }).click();
  await sees(page, "Run 1: did not pass");
  await mustBeSound(editor, "tests of a product");

  for (const look of looks) {
    const visitor = await openContext(browser, look);
    const listing = await openAt(visitor, market, `/p/${productId}`);
    const card = listing.page.getByRole("region", { name: "Score card" });
    await card.getByRole("img", { name: /^Pass rate 50/ }).waitFor();
    await sees(listing.page, "Practice provider, not a model");
    await sees(listing.page, /^One case is hidden/);
    assert.deepEqual(await listing.page.locator(".scan-badges li").allInnerTexts(), [
      "No hidden characters",
      "No known commands that run downloads",
      "No known orders to deceive you or send your data away",
    ]);
    await sees(listing.page, "An automatic scan can miss things.");
    // Wilson's intervals of one of two cases are 9 to 91 %, with and without the product.
    const gain = card.locator(".gain");
    assert.equal(await gain.innerText(), "0 −57 to +57, n = 6 and 6");
    await card.getByText("Verify the receipts of 12 runs", { exact: true }).click();
    await sees(listing.page, `stoa verify-evaluation ${id}-proof.json --base-url ${market.origin}/v1`);
    assert.deepEqual(await downloadProof(listing.page, id), [id, 2]);
    const guide = card.getByRole("link", { name: "How scores are made" });
    assert.equal(
      (await visitor.request.get(market.origin + (await guide.getAttribute("href")))).status(),
      200,
    );
    await mustBeSound(listing, "product with a score card");
    await visitor.close();
  }
});

test("a seller tests a workflow beside its canvas; visitors see what it adds to its last model", async () => {
  const { session, context } = await openMember(market, browser);
  const productId = await createWorkflow(
    session,
    {
      input: {
        type: "object",
        required: ["topic"],
        properties: { topic: { type: "string" }, lines: { type: "integer", minimum: 1 } },
      },
      steps: [echoStep("poem", "A poem about {{topic}}", { vars: { topic: "input.topic" } })],
      result: "steps.poem.output",
    },
    { compatibility: ["openai"] },
  );
  const editor = await openAt(context, market, `/studio/workflows/${productId}`);
  const { page } = editor;
  await page.getByRole("link", { name: "Tests" }).click();
  const dialog = page.getByRole("dialog");
  await click(page, "Add a test");
  await dialog.getByLabel("What it tests", { exact: true }).fill("Is a poem");
  await dialog.getByLabel("topic", { exact: true }).fill("rain");
  await dialog.getByLabel(/^lines/).fill("many");
  await dialog.getByLabel("Check 1: value").fill("poem about {{topic}}");
  await click(page, "Save the test");
  await sees(page, /Enter a whole number from 1/);
  await dialog.getByLabel(/^lines/).fill("4");
  await click(page, "Save the test");
  await page.getByRole("cell", { name: "Is a poem", exact: true }).waitFor();
  const { cases } = (await session.get(`/v1/products/${productId}/test-set`)).body.data;
  assert.deepEqual(cases[0].input, { topic: "rain", lines: 4 });
  const repeats = page.getByLabel("Runs of each test");
  await repeats.selectText();
  await repeats.pressSequentially("4");
  await repeats.press("Control+z");
  assert.equal(await repeats.inputValue(), "3", "the field's own undo, not that of the workflow");

  assert.equal((await session.post(`/v1/products/${productId}/publish`)).status, 200);
  await sees(page, /^6 runs, about/);
  await click(page, "Evaluate");
  await page.getByText("Running", { exact: true }).waitFor();
  const [{ id }] = (await session.get(`/v1/products/${productId}/evaluations`)).body.data;
  await untilEvaluated(market, session, id);
  await page.getByRole("button", { name: /^Is a poem, As its steps say \(practice\): 3 of 3/ }).waitFor();
  await page.getByRole("button", { name: /^Is a poem, sandbox-echo \(practice\), bare: 0 of 3/ }).click();
  await sees(page, "Run 1: did not pass");
  await mustBeSound(editor, "tests of a workflow");
  const narrow = await openMember(market, browser, { session, look: { width: 320 } });
  const small = await openAt(narrow.context, market, `/studio/workflows/${productId}?view=tests`);
  await small.page.getByRole("cell", { name: "Is a poem", exact: true }).first().waitFor();
  await mustBeSound(small, "tests of a workflow on a narrow screen");

  const listing = await openAt(await openContext(browser), market, `/p/${productId}`);
  const card = listing.page.getByRole("region", { name: "Score card" });
  await card.getByText("sandbox-echo without this product").waitFor();
  await card.getByText("Practice provider, not a model").waitFor();
  await mustBeSound(listing, "workflow with a score card");
});

/** The evaluation that the downloaded file proves, and its number of receipts. */
async function downloadProof(page: Page, evaluationId: string): Promise<[id: string, receipts: number]> {
  const downloads = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download the signed proof" }).click();
  const file = await downloads;
  assert.equal(file.suggestedFilename(), `${evaluationId}-proof.json`);
  const { statement, receipts } = JSON.parse(await readFile(await file.path(), "utf8")).data;
  const payload = JSON.parse(Buffer.from(statement.split(".")[1], "base64url").toString());
  return [payload.evaluation.id, receipts.filter(Boolean).length];
}

test("a version passes fewer tests: the product's page says so with numbers; the seller has it evaluated again", async () => {
  const { session, context } = await openMember(market, browser);
  const productId = await createProduct(session, { title: "Haiku that got worse" });
  const cases = ["rain", "snow", "sun"].map((topic) => ({
    ...{ title: topic, input: { topic } },
    assert: [{ type: "contains", value: "haiku" }],
  }));
  await storeTestSet(session, productId, cases);
  await untilEvaluated(market, session, await startEvaluation(session, productId));
  const content = "Write a song about {{topic}} in {{language=English}}.";
  await session.patch(`/v1/products/${productId}`, { content });
  await untilEvaluated(market, session, await startEvaluation(session, productId));
  for (const look of looks) {
    const visitor = await openContext(browser, look);
    const listing = await openAt(visitor, market, `/p/${productId}`);
    await sees(
      listing.page,
      /^sandbox-echo of Sandbox passes 0 % .* of the same tests since .*; version 1\.0\.0 passed 100 %/,
    );
    await mustBeSound(listing, "product with a regression");
    await visitor.close();
  }
  const editor = await openAt(context, market, `/studio/products/${productId}?tab=tests`);
  await editor.page.getByLabel("One evaluation, in USD").fill("2");
  await editor.page.getByLabel("A month, in USD").fill("1");
  await click(editor.page, "Turn on");
  await sees(editor.page, /must be at least maxCost/i);
  assert.match(editor.complaints.splice(0).join(), /status of 422/);
  await editor.page.getByLabel("A month, in USD").fill("4");
  await click(editor.page, "Turn on");
  await sees(editor.page, "Used this month: $0.0000");
  await mustBeSound(editor, "tests with limits of repeated evaluations");
  await click(editor.page, "Turn off");
  await editor.page.getByRole("button", { name: "Turn on", exact: true }).waitFor();
});

test("a version that is measured worse before its release: the seller must tell buyers", async () => {
  const { session, context } = await openMember(market, browser);
  const productId = await createProduct(session, { title: "Haiku or song" });
  const cases = ["rain", "snow", "sun"].map((topic) => ({
    ...{ title: topic, input: { topic } },
    assert: [{ type: "contains", value: "haiku" }],
  }));
  const haiku = "Write a haiku about {{topic}} in {{language=English}}.";
  const song = "Write a song about {{topic}} in {{language=English}}.";
  for (const content of [haiku, song, haiku]) {
    const changed = await session.patch(`/v1/products/${productId}`, { content });
    assert.equal(changed.status, 200, changed.text);
    await storeTestSet(session, productId, cases);
    await untilEvaluated(market, session, await startEvaluation(session, productId));
  }
  const editor = await openAt(context, market, `/studio/products/${productId}`);
  const { page } = editor;
  await page.getByRole("textbox", { name: "Prompt text" }).fill(song);
  await click(page, "Publish a version");
  await click(page, "Publish 1.3.0");
  await sees(page, /sandbox sandbox-echo passes 0 of 6 runs instead of 6 of 6/);
  await page.getByLabel(/tells buyers that this version passes fewer tests/).check();
  await click(page, "Publish 1.3.0");
  await sees(page, /tell buyers what the version does worse/i);
  await page.getByLabel("What is new").fill("Songs, not haiku.");
  await click(page, "Publish 1.3.0");
  await page.getByRole("button", { name: "Published" }).waitFor();
  const { data } = (await session.get(`/v1/products/${productId}/versions`)).body;
  assert.deepEqual([data[0].version, data[0].acknowledgesRegression], ["1.3.0", true]);
  assert.ok(editor.complaints.splice(0).every((complaint) => complaint.includes("status of 422")));
});

test("a seller lets a model judge the rubrics; the studio and visitors see its verdicts apart", async () => {
  const { session, context } = await openMember(market, browser);
  const productId = await createProduct(session, { title: "Judged haiku" });
  const rubric = { type: "llm-rubric", value: 'Names "rain"' };
  const similar = { type: "similar", value: "Write in English a haiku about {{topic}}" };
  await storeTestSet(session, productId, [
    {
      ...{ title: "Rain", input: { topic: "rain" } },
      assert: [{ type: "contains", value: "never" }, rubric, similar],
    },
    { title: "Snow", input: { topic: "snow" }, assert: [rubric] },
  ]);
  const editor = await openAt(context, market, `/studio/products/${productId}?tab=tests`);
  const { page } = editor;
  await page.getByLabel("Model", { exact: true }).selectOption({ label: "Another model…" });
  await page.getByLabel("Name of the model").fill("sandbox-echo");
  await sees(page, "Without a judge, rubrics have no verdict.");
  await page.getByLabel(/^A model judges the rubrics/).check();
  await sees(page, /^30 runs, about/);
  await page.getByLabel(/^An embedding model compares texts/).uncheck();
  await sees(page, /^24 runs, about/);
  await page.getByLabel(/^An embedding model compares texts/).check();
  await sees(page, /^30 runs, about/);
  await click(page, "Evaluate");
  await page.getByText("Running", { exact: true }).waitFor();
  const [{ id }] = (await session.get(`/v1/products/${productId}/evaluations`)).body.data;
  await untilEvaluated(market, session, id);
  await page.getByText("Complete", { exact: true }).waitFor();
  await page.getByRole("button", { name: /^Rain, sandbox-echo \(practice\): 0 of 3, judged 3 of 3/ }).click();
  await sees(page, "Judged: passed");
  await page
    .getByRole("button", { name: /^Snow, sandbox-echo \(practice\): not counted, judged 0 of 3/ })
    .waitFor();
  await mustBeSound(editor, "judged tests of a product");

  for (const look of looks) {
    const visitor = await openContext(browser, look);
    const listing = await openAt(visitor, market, `/p/${productId}`);
    const card = listing.page.getByRole("region", { name: "Score card" });
    await card.getByRole("img", { name: /^Pass rate 0/ }).waitFor();
    const judged = listing.page.getByRole("region", { name: "Judged by sandbox" });
    await judged.getByRole("img", { name: /^Judged pass rate 50/ }).waitFor();
    await sees(listing.page, /^A practice provider, not a model, judged.*found by counting words/);
    await mustBeSound(listing, "product with a judged score card");
    await visitor.close();
  }
});
