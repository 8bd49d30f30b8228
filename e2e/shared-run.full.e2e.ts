import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createProduct } from "@stoa/service/test/factories.ts";
import { type Market, openMarket } from "@stoa/service/test/market.ts";
import { runToCompletion } from "@stoa/service/test/runs.ts";
import type { Browser } from "playwright-core";
import { mustBeFit } from "./accessible.ts";
import { looks, openBrowser, openContext, openPage, sees } from "./browser.ts";

let market: Market;
let browser: Browser;
let url: string;
before(async () => {
  market = await openMarket();
  const seller = await market.createUser();
  const productId = await createProduct(seller, {
    title: "Poet 👩‍👩‍👧 עברית",
    content: "{{topic}} {{tone}}",
  });
  const variables = { topic: `<script>alert(1)</script> ${"x".repeat(300)}`, tone: "עברית" };
  const { executionId } = await runToCompletion(seller, { productId, variables });
  url = (await seller.post(`/v1/ai/executions/${executionId}/share`)).body.data.url;
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await market.close();
});

for (const { scheme, width } of looks) {
  test(`the page of a shared run, ${width} pixels, ${scheme}: readable, no overflow and no complaints`, async () => {
    const context = await openContext(browser, { scheme, width });
    const { page, foreign, complaints } = await openPage(context, market.origin);
    await page.goto(url);
    await sees(page, /\[sandbox\]/);
    await mustBeFit(page, "shared-run");
    assert.deepEqual([...foreign, ...complaints], []);
    await context.close();
  });
}
