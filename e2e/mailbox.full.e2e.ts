import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { queueEmail } from "@stoa/service/platform/email/email-queue.ts";
import { renderEmail } from "@stoa/service/platform/email/render-email.ts";
import { type Market, openMarket } from "@stoa/service/test/market.ts";
import type { Browser } from "playwright-core";
import { mustBeFit } from "./accessible.ts";
import { looks, openBrowser, openContext, openPage } from "./browser.ts";

let market: Market;
let browser: Browser;
before(async () => {
  market = await openMarket();
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await market.close();
});

async function send(to: string, subject: string): Promise<void> {
  const { ctx } = market.service;
  const message = renderEmail({
    subject,
    paragraphs: [
      "Hello Ada,",
      "somebody asked for a link to sign in with this address. It works once, for ten minutes.",
    ],
    action: { label: "Sign in to Stoa", url: `${market.origin}/auth/verify#token=${"Zm9vYmFy".repeat(6)}` },
    footnotes: ["If that was not you, do nothing: without the link nobody gets in."],
  });
  await ctx.db.transaction().execute((tx) => queueEmail(ctx, tx, to, message));
}

test("/dev/mail: a new email appears without a reload", async () => {
  await send("ada@example.com", "The first email");
  const context = await openContext(browser);
  const { page, foreign, complaints } = await openPage(context, market.origin);
  await page.goto(`${market.origin}/dev/mail`);
  await page.evaluate("window.notReloaded = true");
  await page.getByRole("link", { name: "The first email" }).waitFor();
  market.clock.forward(1_000);
  await send("grace@example.com", "The second email");
  await page.getByRole("link", { name: "The second email" }).waitFor();
  assert.deepEqual(await page.getByRole("listitem").getByRole("link").allTextContents(), [
    "The second email",
    "The first email",
  ]);
  assert.equal(await page.evaluate("window.notReloaded"), true);
  assert.deepEqual([...foreign, ...complaints], []);
  await context.close();
});

test("/dev/mail: a link in an email opens in its own tab, outside of the frame", async () => {
  await send("ada@example.com", "With a button");
  const context = await openContext(browser);
  const { page } = await openPage(context, market.origin);
  await page.goto(`${market.origin}/dev/mail`);
  await page.getByRole("link", { name: "With a button" }).first().click();
  const tab = context.waitForEvent("page");
  await page.frameLocator("iframe").getByRole("link", { name: "Sign in to Stoa" }).click();
  const opened = await tab;
  // The page's script removes the token from the URL and shows the form only if there was one.
  await opened.waitForURL(`${market.origin}/auth/verify`);
  await opened.locator("form[data-ready]").waitFor();
  assert.equal(await opened.evaluate("window.opener"), null);
  await context.close();
});

for (const { scheme, width } of looks) {
  test(`/dev/mail, ${width} pixels, ${scheme}: no overflow and no complaints`, async () => {
    await send("a.rather.long.address.of.somebody.without.hyphens@subdomain.example.com", "Sign in to Stoa");
    const context = await openContext(browser, { scheme, width });
    const { page, foreign, complaints } = await openPage(context, market.origin);
    await page.goto(`${market.origin}/dev/mail`);
    const path = await page.getByRole("link", { name: "Sign in to Stoa" }).first().getAttribute("href");
    for (const [name, address] of [
      ["mailbox", "/dev/mail"],
      ["email", path!],
      ["email-content", `${path}/html`],
    ]) {
      await page.goto(market.origin + address, { waitUntil: "load" });
      await mustBeFit(page, name!);
    }
    assert.deepEqual([...foreign, ...complaints], []);
    await context.close();
  });
}
