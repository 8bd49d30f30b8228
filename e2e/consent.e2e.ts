import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before } from "node:test";
import { emailsTo } from "@stoa/service/test/emails.ts";
import type { Market } from "@stoa/service/test/market.ts";
import {
  authorizeUrl,
  newVerifier,
  type OAuthClient,
  openOAuthMarket,
  redeem,
  registerPublicClient,
} from "@stoa/service/test/oauth.ts";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { mustBeFit } from "./accessible.ts";
import { click, type Look, looks, openBrowser, openContext, openPage, sees } from "./browser.ts";
import { everyRun, test } from "./full-run.ts";

let market: Market;
let browser: Browser;
/** A native app that waits for the redirect on the user's machine. */
let app: Server;
let client: OAuthClient;
before(async () => {
  market = await openOAuthMarket();
  browser = await openBrowser();
  app = createServer((_request, response) => response.end("You may close this window."));
  await once(app.listen(0, "127.0.0.1"), "listening");
  // Registered without a port: a native app knows its port only when it runs (RFC 8252).
  client = await registerPublicClient(market, {
    client_name: "Desk",
    redirect_uris: ["http://127.0.0.1/callback"],
  });
  client = { ...client, redirectUri: `http://127.0.0.1:${(app.address() as AddressInfo).port}/callback` };
});
after(async () => {
  await browser?.close();
  app?.closeAllConnections();
  app?.close();
  await market?.close();
});

const SCOPE = "products:read purchases:read offline_access";
let people = 0;

interface Asked {
  context: BrowserContext;
  page: Page;
  complaints: string[];
  address: string;
}

/** Opens the authorization request and signs in with a magic link. */
async function asked(url: URL, look?: Look): Promise<Asked> {
  const address = `grace.${++people}@example.com`;
  const context = await openContext(browser, look);
  const { page, complaints } = await openPage(context, market.origin);
  await page.goto(url.href);
  await page.getByLabel("Email address").fill(address);
  await click(page, "Mail me a link");
  await page.waitForURL("**/auth/check-mail*");
  const [message] = await emailsTo(market, address);
  await page.goto(/http\S+\/auth\/verify#token=\S+/.exec(message!.text)![0]);
  await click(page, "Sign in");
  await page.getByRole("link", { name: "Continue" }).click();
  await sees(page, "asks to do this in your name");
  return { context, page, complaints, address };
}

/** The parameters of the redirect to the app. */
async function answerAt(page: Page): Promise<URLSearchParams> {
  await page.waitForURL(`${client.redirectUri}?*`);
  return new URL(page.url()).searchParams;
}

async function statusOf(token: string, path = "/v1/products?limit=1"): Promise<number> {
  const headers = { authorization: `Bearer ${token}` };
  return (await fetch(market.origin + path, { headers })).status;
}

everyRun("OAuth consent: Allow gives a token that works until Revoke", async () => {
  const verifier = newVerifier();
  const visitor = await asked(authorizeUrl(market, client, { verifier, scope: SCOPE }));
  const { page, complaints } = visitor;
  await sees(page, visitor.address);
  await click(page, "Allow");
  const answer = await answerAt(page);
  assert.equal(answer.get("state"), "s1");
  const { body } = await redeem(market, client, answer.get("code")!, verifier);
  assert.equal(await statusOf(body.access_token), 200);
  assert.equal(await statusOf(body.access_token, "/v1/api-keys"), 403);

  await page.goto(`${market.origin}/auth/signed-in`);
  await sees(page, "Applications that may act for you");
  await sees(page, /products:read, purchases:read/);
  await click(page, "Revoke Desk");
  await sees(page, "Revoked: Desk may do nothing more here.");
  assert.equal(await page.locator("#grant-entries li").count(), 0);
  assert.equal(await statusOf(body.access_token), 401);
  assert.deepEqual(complaints, []);
  await visitor.context.close();
});

test("OAuth consent: Deny redirects with an error and gives no token", async () => {
  const visitor = await asked(authorizeUrl(market, client, { verifier: newVerifier(), scope: SCOPE }));
  await click(visitor.page, "Deny");
  const answer = await answerAt(visitor.page);
  assert.equal(answer.get("error"), "access_denied");
  assert.equal(answer.get("code"), null);
  await visitor.page.goto(`${market.origin}/auth/signed-in`);
  await sees(visitor.page, "Where you are signed in");
  assert.equal(await visitor.page.locator("#grants").isVisible(), false);
  assert.deepEqual(visitor.complaints, []);
  await visitor.context.close();
});

for (const { scheme, width } of looks) {
  test(`consent and its error pages, ${width} pixels, ${scheme}: no overflow and no complaints`, async () => {
    const verifier = newVerifier();
    const ask = { verifier, scope: "openid profile email products:write purchases:write ai:execute" };
    const { page, context } = await asked(authorizeUrl(market, client, ask), { scheme, width });
    await mustBeFit(page, "consent");
    const elsewhere = page.url().replace(/[^/]+$/, "of-another-browser");
    await click(page, "Allow");
    await redeem(market, client, (await answerAt(page)).get("code")!, verifier);
    for (const [name, path] of [
      ["consent is over", elsewhere],
      ["oauth error", "/oauth/authorize?client_id=nobody"],
      ["sign out for an application", "/oauth/logout"],
      ["signed out for an application", "/oauth/logout/success"],
      ["no such page", "/auth/nothing"],
      ["account with grants", "/auth/signed-in"],
    ] as const) {
      await page.goto(new URL(path, market.origin).href);
      if (path === "/auth/signed-in") await sees(page, "Applications that may act for you");
      await mustBeFit(page, name);
    }
    await context.close();
  });
}
