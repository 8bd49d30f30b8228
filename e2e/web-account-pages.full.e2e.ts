import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { buyProduct, createProduct } from "@stoa/service/test/factories.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { createOAuthClient, requestTokens } from "@stoa/service/test/oauth.ts";
import type { Browser } from "playwright-core";
import { looks, openBrowser, sees } from "./browser.ts";
import { HOSTILE, openMember, visitEach } from "./members.ts";
import { buildWebClient, mustBeSound } from "./web.ts";

let market: Market;
let browser: Browser;
before(async () => {
  await buildWebClient();
  market = await openMarket();
  // The OAuth library uses the real clock.
  market.clock.now = new Date();
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await market.close();
});

const PAGES = [
  ["/account", "Where you buy from"],
  ["/account/security", "Sessions"],
  ["/account/connected-apps", "Connected apps"],
  ["/account/plan", "Requests now"],
  ["/account/payment-methods", "Payment methods"],
  ["/account/provider-keys", "Provider keys"],
  ["/account/notifications", "A buyer requests a refund"],
  ["/account/referral", "Your link"],
  ["/account/data", "Download your data"],
  ["/notifications", "Mark all as read"],
  ["/settings/api", "A key acts as you"],
  ["/settings/oauth-apps", "OAuth apps"],
] as const;

const DIALOGS = [
  ["/settings/api?create=true", "Create a key"],
  ["/settings/oauth-apps?create=true", "Create an OAuth app"],
  ["/account/payment-methods?create=true", "Store a test card"],
  ["/account/provider-keys?create=true", "Add a provider key"],
  ["/account/security?setUp=true", "Or type this key"],
  ["/account/data?close=true", "Close the account?"],
] as const;

/** An account with something on each page, some of it with hostile names. */
async function fill(session: Client): Promise<void> {
  const seller = await market.createUser({ name: HOSTILE });
  const product = await createProduct(seller, { title: HOSTILE.slice(0, 80) });
  await buyProduct(session, product);
  const links = [{ label: HOSTILE.slice(0, 60), url: `https://example.com/${"path".repeat(40)}` }];
  const posts: [string, object][] = [
    ["/ai/keys", { provider: "openai", name: HOSTILE, key: "sk-no-such-key", monthlyBudget: 20 }],
    ["/payment-methods", { token: "pm_test_ok" }],
    ["/api-keys", { name: HOSTILE, permissions: { "products:read": true, "ai:execute": true } }],
    ["/oauth-clients", { name: HOSTILE, redirectUris: [`https://example.com/${"path".repeat(40)}`] }],
  ];
  for (const [path, body] of posts) {
    const reply = await session.post(`/v1${path}`, body);
    assert.equal(reply.status, 201, reply.text);
  }
  await session.patch("/v1/account", { bio: HOSTILE, links });
  await session.put("/v1/account/subscription", { plan: "pro" });
  market.clock.now = new Date();
  const app = await createOAuthClient(market, seller, { name: HOSTILE });
  await requestTokens(market, session.userId, app);
}

/** Pages that say what will be there. */
const EMPTY_PAGES: (typeof PAGES)[number][] = PAGES.filter(([path]) =>
  ["/account/connected-apps", "/account/provider-keys", "/notifications", "/settings/oauth-apps"].includes(
    path,
  ),
);

for (const look of looks) {
  test(`the account's pages, ${look.width} pixels, ${look.scheme}: sound with and without content`, async () => {
    const { session, context } = await openMember(market, browser, { look, name: HOSTILE });
    const mustAllBeSound = (state: string, pages: readonly (readonly [string, string])[]) =>
      visitEach(context, market, pages, async (watched, [path, text]) => {
        await sees(watched.page, text);
        await mustBeSound(watched, `${state} ${path}`);
      });
    await mustAllBeSound("empty", EMPTY_PAGES);
    await fill(session);
    await mustAllBeSound("full", [...PAGES, ...DIALOGS]);
    await context.close();
  });
}
