import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { DeliveryWorker } from "@stoa/service/events/webhooks/delivery-worker.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { deliverAll } from "@stoa/service/test/webhooks.ts";
import type { Browser } from "playwright-core";
import { mustBeFit } from "./accessible.ts";
import { click, looks, openBrowser, openContext, openPage, sees } from "./browser.ts";

let market: Market;
let browser: Browser;
let owner: Client;
before(async () => {
  market = await openMarket();
  owner = await market.createUser();
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await market.close();
});

async function createEndpoint(url: string): Promise<{ id: string; secret: string }> {
  const reply = await owner.post("/v1/webhooks", { url });
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data;
}

async function sendTest({ id }: { id: string }): Promise<void> {
  await owner.post(`/v1/webhooks/${id}/test`);
  const worker = new DeliveryWorker(market.service.ctx, { random: () => 0 });
  await deliverAll(worker);
}

test("webhook inbox: a new user creates one, sees a signed delivery, and checks its secret", async () => {
  const context = await openContext(browser);
  const { page, foreign, complaints } = await openPage(context, market.origin);
  await page.goto(`${market.origin}/dev/hooks`);
  await page.getByRole("link", { name: "A new inbox" }).click();
  await sees(page, "Nothing has come in yet.");
  await page.evaluate("window.notReloaded = true");
  const endpoint = await createEndpoint(page.url());
  await sendTest(endpoint);
  await sees(page, "signature right");
  assert.equal(await page.evaluate("window.notReloaded"), true);
  await page.getByRole("link", { name: "test" }).click();
  await sees(page, "The signature is valid.");
  await page.getByLabel("Secret").fill(endpoint.secret);
  await click(page, "Check");
  await sees(page, "This secret signed it.");
  assert.deepEqual([...foreign, ...complaints], []);
  await context.close();
});

for (const { scheme, width } of looks) {
  test(`webhook inboxes, ${width} pixels, ${scheme}: no overflow and no complaints`, async () => {
    const url = `${market.origin}/dev/hooks/${scheme}-${width}`;
    await sendTest(await createEndpoint(url));
    await market.as(null).request("POST", url, { body: `{"a-rather-long-word":"${"x".repeat(200)}"}` });
    const context = await openContext(browser, { scheme, width });
    const { page, foreign, complaints } = await openPage(context, market.origin);
    await page.goto(`${market.origin}/dev/hooks`);
    await mustBeFit(page, "inboxes");
    for (const [name, link] of [
      ["post", "A post"],
      ["delivery", "test"],
    ] as const) {
      await page.goto(url);
      await mustBeFit(page, "inbox");
      await page.getByRole("link", { name: link }).click();
      await sees(page, "Check the signature");
      await mustBeFit(page, name);
    }
    await page.getByLabel("Secret").fill("whsec_none");
    await click(page, "Check");
    await sees(page, "The signature was made with another secret.");
    await mustBeFit(page, "checked");
    assert.deepEqual([...foreign, ...complaints], []);
    await context.close();
  });
}
