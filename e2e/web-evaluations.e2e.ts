import { after, before, test } from "node:test";
import { untilEvaluated } from "@stoa/service/test/evaluations.ts";
import { createProduct } from "@stoa/service/test/factories.ts";
import { type Market, openMarket } from "@stoa/service/test/market.ts";
import { startWorker } from "@stoa/service/test/workflows.ts";
import type { Browser } from "playwright-core";
import { click, looks, openBrowser, openContext, sees } from "./browser.ts";
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

test("a seller adds tests and evaluates the product; visitors see the score card", async () => {
  const { session, context } = await openMember(market, browser);
  const productId = await createProduct(session, { title: "Measured haiku" });
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
    await mustBeSound(listing, "product with a score card");
    await visitor.close();
  }
});
