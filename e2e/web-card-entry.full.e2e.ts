import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { required } from "@stoa/service/core/required.ts";
import { createStripePayments } from "@stoa/service/integrations/payments/stripe.ts";
import { createProduct } from "@stoa/service/test/factories.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { memoryReferences, type StripeServer, startStripeServer } from "@stoa/service/test/stripe-server.ts";
import type { Browser } from "playwright-core";
import { click, openBrowser, openContext, sees } from "./browser.ts";
import { buildWebClient, mustBeSound, openWebPage, signIn, type WebPage } from "./web.ts";

/** Its id, in the address of the provider's page. */
const CHECKOUT_SESSION = /cs_\w+/;

let stripe: StripeServer;
let market: Market;
let browser: Browser;
before(async () => {
  const secretKey = "sk_test_local";
  stripe = await startStripeServer(secretKey);
  const payments = createStripePayments({
    ...{ secretKey, webhookSecret: "whsec_local", apiUrl: stripe.url, references: memoryReferences() },
    returnUrl: () => market.origin,
  });
  await buildWebClient();
  [market, browser] = await Promise.all([openMarket({ payments }), openBrowser()]);
});
after(async () => {
  await browser?.close();
  await market.close();
  await stripe.close();
});

async function openAs(buyer: Client, path: string): Promise<WebPage> {
  const context = await openContext(browser);
  await signIn(context, market.origin, await market.createSession(buyer.userId));
  const watched = await openWebPage(context, market.origin);
  await watched.page.goto(market.origin + path);
  return watched;
}

test("checkout without a card: it is entered at the provider, and pays with the discount that was applied before", async () => {
  const seller = await market.createUser();
  const id = await createProduct(seller, { price: 20 });
  const session = await market.createSession(seller.userId);
  await session.post("/v1/discount-codes", { code: "HALF", percentOff: 50 });
  const buyer = await market.createUser();
  const watched = await openAs(buyer, `/checkout/${id}`);
  const { page } = watched;
  await page.getByLabel("Discount code").fill("HALF");
  await click(page, "Apply");
  await sees(page, "$10.00 off");
  await mustBeSound(watched, "checkout without a card");
  await click(page, "Enter a card");
  await page.getByRole("link", { name: "Back" }).click();
  await sees(page, "$10.00 off");
  await click(page, "Enter a card");
  await click(page, "Save card");
  await sees(page, "ends in 4242");
  // A reload stores the card no second time.
  await page.waitForURL((url) => url.search === "");
  await click(page, "Pay $10.00");
  await sees(page, "It is yours.");
  const [order] = (await buyer.get("/v1/purchases")).body.data;
  assert.deepEqual([order.status, order.amount], ["completed", 10]);
  await page.context().close();
});

test("payment methods: a card is added at the provider; the card of somebody else's link is not", async () => {
  const [buyer, other] = [await market.createUser(), await market.createUser()];
  const watched = await openAs(buyer, "/account/payment-methods");
  const { page } = watched;
  await click(page, "Add a card");
  await page.waitForURL(CHECKOUT_SESSION);
  const [sessionId] = required(CHECKOUT_SESSION.exec(page.url()), "the checkout session");
  await click(page, "Save card");
  await sees(page, "ends in 4242");
  watched.foreign.splice(0, watched.foreign.length);
  await mustBeSound(watched, "payment methods");
  await page.context().close();
  const { page: foreign } = await openAs(other, `/account/payment-methods?card=${sessionId}`);
  await sees(foreign, "A card was not stored");
  assert.deepEqual((await other.get("/v1/payment-methods")).body.data, []);
  await foreign.context().close();
});
