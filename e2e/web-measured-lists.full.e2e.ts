import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startEvaluation, storeTestSet, untilEvaluated } from "@stoa/service/test/evaluations.ts";
import { createProduct } from "@stoa/service/test/factories.ts";
import { type Market, openMarket } from "@stoa/service/test/market.ts";
import { startWorker } from "@stoa/service/test/workflows.ts";
import type { Browser } from "playwright-core";
import { looks, openBrowser, openContext, takePicture } from "./browser.ts";
import { openAt } from "./members.ts";
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

test("search by measured quality: filters in the address, scores with intervals on cards and rows", async () => {
  const seller = await market.createUser();
  const measured = await createProduct(seller, { title: "Measured haiku" });
  await createProduct(seller, { title: "Bare haiku" });
  await storeTestSet(seller, measured);
  await untilEvaluated(market, seller, await startEvaluation(seller, measured));
  for (const look of looks) {
    const context = await openContext(browser, look);
    const visit = await openAt(context, market, "/search?sort=passRate");
    const { page } = visit;
    const products = page.locator(".results .grid > a");
    await products.first().getByText("Measured haiku").waitFor();
    await products.nth(1).getByText("Bare haiku").waitFor();
    await products
      .first()
      .getByRole("img", { name: /^Pass rate .+, 95 % interval .+ to / })
      .waitFor();
    await products.first().getByText("sandbox-echo (practice)").waitFor();
    await products
      .first()
      .getByText(/, n = 6$/)
      .waitFor();
    await page.getByRole("link", { name: /^sandbox\/sandbox-echo/ }).click();
    await page.waitForURL(/testedOn=sandbox%2Fsandbox-echo/);
    await page.getByText("1 result", { exact: true }).waitFor();
    await page.getByRole("link", { name: /^Remove the filter tested on/ }).waitFor();
    await mustBeSound(visit, "search by measured quality");
    await page.getByRole("link", { name: "List", exact: true }).click();
    await page
      .locator(".row-score")
      .getByText(/a run$/)
      .waitFor();
    await mustBeSound(visit, "list of measured products");
    await takePicture(page, "measured list");
    const home = await openAt(context, market, "/");
    const best = home.page.locator("section", {
      has: home.page.getByRole("heading", { name: "Measured best" }),
    });
    await best
      .getByRole("link", { name: /Measured haiku/ })
      .getByRole("img", { name: /^Pass rate .+, 95 % interval .+ to / })
      .waitFor();
    assert.equal(await best.getByText("Bare haiku").count(), 0);
    await mustBeSound(home, "home with measured products");
    await takePicture(home.page, "home with measured products");
    await best.getByRole("link", { name: "See all 1" }).click();
    await home.page.getByText("1 result", { exact: true }).waitFor();
    await home.page.close();
    await page.goto(`${market.origin}/search?minPassRate=0.9`);
    await page.getByText("Nothing matches", { exact: true }).waitFor();
    await context.close();
  }
});
