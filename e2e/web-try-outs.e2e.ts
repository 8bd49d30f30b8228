import assert from "node:assert/strict";
import { after, before, suite } from "node:test";
import { createDraft, createProduct } from "@stoa/service/test/factories.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { type ProviderServer, startProviderServer } from "@stoa/service/test/provider-server.ts";
import { gatedPieces } from "@stoa/service/test/run-streams.ts";
import { createProviderKey, providersAt } from "@stoa/service/test/runs.ts";
import { allowTries, createGuest, tryProduct } from "@stoa/service/test/tries.ts";
import type { Browser, Page } from "playwright-core";
import { click, looks, openBrowser, openContext, sees } from "./browser.ts";
import { everyRun, test } from "./full-run.ts";
import { openAt, openMember } from "./members.ts";
import { buildWebClient, mustBeSound, type WebPage } from "./web.ts";

const SECRET =
  "Compose three lines in the manner of Basho, with a season word and a cut after five syllables, about";
const ANSWER = "# Rain\n\nRain falls on the roof and every gutter sings until the **morning** light.";

let provider: ProviderServer;
let market: Market;
let browser: Browser;
let seller: Client;
before(async () => {
  await buildWebClient();
  provider = await startProviderServer();
  market = await openMarket({ providers: providersAt(provider) });
  browser = await openBrowser();
  seller = await market.createUser({ name: "The Quiet Editor" });
});
after(async () => {
  await browser?.close();
  await market.close();
  await provider.close();
});

/** A product on sale that visitors may try. */
async function createTryable(limits: Record<string, unknown> = {}): Promise<string> {
  const fields = { title: "Poet", content: `${SECRET} {{topic}}.`, preview: "Three lines." };
  const productId = await createProduct(seller, fields);
  await allowTries(seller, { productId, apiKeyId: await createProviderKey(seller), ...limits });
  return productId;
}

const tryButton = (page: Page) => page.getByRole("button", { name: /^Try (it|again)$/ });

/** Refusals are shown in the page; the browser also logs them. */
function dropRefusals({ complaints }: WebPage): void {
  const isRefusal = (text: string) => /status of (400|409|422|429|503)/.test(text);
  const others = complaints.filter((text) => !isRefusal(text));
  complaints.splice(0, complaints.length, ...others);
}

suite("try-out on the page of a product", () => {
  everyRun("guest: reads the answer while it is written, and learns when to try again", async () => {
    for (const look of looks) {
      const productId = await createTryable({ maxPerVisitorPerDay: 1 });
      const watched = await openAt(await openContext(browser, look), market, `/p/${productId}`);
      const { page } = watched;
      await click(page, "Try 1 free run");
      await page.locator("#try-out textarea:focus").waitFor();
      await tryButton(page).click();
      await sees(page, "Enter a text.");
      await page.getByLabel("topic").fill("rain");
      await mustBeSound(watched, "form of a try");
      const { gate, allow, allowAll } = gatedPieces();
      const pieces = ANSWER.match(/\S+\s*/g) ?? [];
      provider.next({ stream: { pieces: [...pieces, ...pieces], gate } });
      await page.getByLabel("topic").press("Control+Enter");
      allow(pieces.length);
      await page.getByRole("status").getByText("Writing", { exact: true }).waitFor();
      await mustBeSound(watched, "try while it streams", { isLive: true });
      allowAll();
      await sees(page, "That was your last try for today.");
      await page.locator(".try-answer strong").first().waitFor();
      await mustBeSound(watched, "answer of a try");
      await tryButton(page).click();
      await sees(page, "You have used all your tries of this product for today.");
      dropRefusals(watched);
      await mustBeSound(watched, "tries of a visitor used up");
      await page.context().close();
    }
    assert.deepEqual((await seller.get("/v1/ai/executions")).body.data, [], "a try is no run");
  });

  test("answer that repeats the prompt, and cut answer: each says what follows", async () => {
    const productId = await createTryable({ maxPerVisitorPerDay: 2 });
    const watched = await openAt(await openContext(browser), market, `/p/${productId}`);
    const { page } = watched;
    await click(page, "Try it");
    await page.getByLabel("topic").fill("rain");
    provider.next({ answer: { text: `Of course! ${SECRET} something. Enjoy.` } });
    await tryButton(page).click();
    await sees(page, "The answer is withheld");
    assert.equal(await page.getByText("Of course!").count(), 0);
    await mustBeSound(watched, "withheld answer of a try");
    provider.next({ answer: { text: ANSWER, stop: "length" } });
    await tryButton(page).click();
    await sees(page, "The answer reached the limit of a try");
    await sees(page, "That was your last try for today.");
    await page
      .locator("#try-out")
      .getByRole("link", { name: /^Buy for/ })
      .waitFor();
    await page.context().close();
  });

  test("limit of the day, budget of the month, failing provider, tries turned off: plain words for each", async () => {
    const productId = await createTryable({ model: "gpt-4o", maxPerDay: 1, maxPerVisitorPerDay: 1 });
    const watched = await openAt(await openContext(browser), market, `/p/${productId}`);
    const { page } = watched;
    await click(page, "Try it");
    await page.getByLabel("topic").fill("rain");
    provider.next("quota");
    await tryButton(page).click();
    await sees(page, "This product cannot be tried at the moment.");
    await sees(page, "This try does not count.");
    assert.equal(
      (await tryProduct(createGuest(market), productId)).status,
      429,
      "failed tries count for the day",
    );
    await tryButton(page).click();
    await sees(page, "All tries of this product for today are used");
    dropRefusals(watched);
    await mustBeSound(watched, "tries of the day used up");
    const limits = { model: "gpt-4o", maxPerDay: 1_000, monthlyBudget: 0.01, maxOutputTokens: 4_000 };
    await allowTries(seller, { productId, apiKeyId: await createProviderKey(seller), ...limits });
    await tryButton(page).click();
    await sees(page, "What the seller spends on tries in a month is used up.");
    assert.equal((await seller.delete(`/v1/products/${productId}/try-out`)).status, 200);
    await tryButton(page).click();
    await sees(page, "The seller no longer offers tries of this product.");
    await page.reload();
    await sees(page, "What it asks for");
    assert.equal(await page.getByRole("button", { name: /^Try/ }).count(), 0);
    await page.context().close();
  });

  test("visitor stops a try: what was written stays; its buyer runs the product instead", async () => {
    const productId = await createTryable();
    const { context, session } = await openMember(market, browser);
    const watched = await openAt(context, market, `/p/${productId}`);
    const { page } = watched;
    await click(page, "Try it");
    await page.getByLabel("topic").fill("rain");
    const { gate, allow } = gatedPieces();
    const pieces = ANSWER.match(/\S+\s*/g) ?? [];
    provider.next({ stream: { pieces: [...pieces, ...pieces], gate } });
    await tryButton(page).click();
    allow(pieces.length);
    await page.getByRole("status").getByText("Writing", { exact: true }).waitFor();
    await page.locator(".try-answer").getByText("Rain falls").waitFor();
    await page.keyboard.press("Escape");
    await sees(page, "You stopped this try.");
    await page.locator(".try-answer").getByText("Rain falls").waitFor();
    await mustBeSound(watched, "stopped try");
    assert.equal((await session.post("/v1/purchases", { productId })).status, 201);
    await page.reload();
    await page.getByRole("link", { name: "Run" }).first().waitFor();
    assert.equal(await page.getByRole("button", { name: /^Try/ }).count(), 0);
    await context.close();
  });
});

suite("tries in the editor of a product", () => {
  test("seller turns tries on, sees what they used, changes a limit, turns them off and takes that back", async () => {
    for (const look of looks) {
      const { context, session } = await openMember(market, browser, { look });
      const keyId = await createProviderKey(session);
      const productId = await createProduct(session, { preview: "Three lines." });
      const watched = await openAt(context, market, `/studio/products/${productId}?tab=tries`);
      const { page } = watched;
      await page.getByLabel("Model", { exact: true }).waitFor();
      await page.getByLabel("Tries of all visitors a day").fill("0");
      await click(page, "Let visitors try it");
      await page.getByLabel("Tries of all visitors a day").and(page.locator("[aria-invalid]")).waitFor();
      dropRefusals(watched);
      await mustBeSound(watched, "tries of a product with a wrong limit");
      await page.getByLabel("Tries of all visitors a day").fill("20");
      await page.getByLabel("Tries of one visitor a day").fill("2");
      await click(page, "Let visitors try it");
      await sees(page, "Visitors can try the product now");
      const read = async () => (await session.get(`/v1/products/${productId}/try-out`)).body.data;
      const { apiKeyId, maxPerDay, maxPerVisitorPerDay } = await read();
      assert.deepEqual([apiKeyId, maxPerDay, maxPerVisitorPerDay], [keyId, 20, 2]);

      provider.next({ answer: { text: "Rain.", usage: { input: 90, output: 6 } } });
      assert.equal((await tryProduct(createGuest(market), productId)).status, 200);
      provider.next("quota");
      assert.equal((await tryProduct(createGuest(market), productId)).status, 503);
      await page.reload();
      await sees(page, "2 of 20");
      await sees(page, "1 answered, 0 withheld, 1 failed");
      await sees(page, /^Your account at OpenAI has no credit left/);
      await mustBeSound(watched, "tries of a product");
      await page.getByLabel("At most a month, in USD").fill("7.5");
      await click(page, "Save the limits");
      await sees(page, "Limits saved");
      assert.equal((await read()).monthlyBudget, 7.5);
      await click(page, "Turn tries off");
      await sees(page, "Visitors can no longer try the product");
      await page.getByText("Undo", { exact: true }).click();
      await sees(page, /of \$7\.50/);
      await context.close();
    }
  });

  test("draft: says that tries need a product on sale; key that was deleted: says what to do", async () => {
    const { context, session } = await openMember(market, browser);
    const draft = await openAt(context, market, `/studio/products/${await createDraft(session)}?tab=tries`);
    await sees(draft.page, "Visitors can try products that are on sale");
    await mustBeSound(draft, "tries of a draft");
    const productId = await createProduct(session);
    const apiKeyId = await createProviderKey(session);
    await allowTries(session, { productId, apiKeyId });
    assert.equal((await session.delete(`/v1/ai/keys/${apiKeyId}`)).status, 200);
    const { page } = await openAt(context, market, `/studio/products/${productId}?tab=tries`);
    await sees(page, "The key of OpenAI was deleted, so visitors cannot try the product.");
    await context.close();
  });
});

suite("captcha of a try", () => {
  const captcha = {
    provider: "turnstile",
    siteKey: "site",
    secret: "captcha-secret",
    verifyUrl: "http://127.0.0.1:9/siteverify",
  } as const;
  /** The interface of Turnstile, solved by a click. */
  const WIDGET = `turnstile = {
    render: (element, options) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "I am human, " + options.sitekey;
      button.onclick = () => options.callback("solved");
      element.append(button);
      return button;
    },
    remove: (button) => button.remove(),
  };`;
  const SCRIPT = "https://challenges.cloudflare.com/**";

  test("guest solves it for each try; where its script is blocked, the page says to sign in; members need none", async (t) => {
    const shop = await openMarket({ providers: providersAt(provider), config: { captcha } });
    t.after(() => shop.close());
    const sent: unknown[] = [];
    shop.service.ctx.integrations.captcha.verify = async (token) => {
      sent.push(token);
      return "passed";
    };
    const owner = await shop.createUser();
    const productId = await createProduct(owner, { preview: "Three lines." });
    await allowTries(owner, { productId, apiKeyId: "sandbox" });

    const context = await openContext(browser);
    await context.route(SCRIPT, (route) => route.fulfill({ contentType: "text/javascript", body: WIDGET }));
    const watched = await openAt(context, shop, `/p/${productId}`);
    const { page } = watched;
    assert.deepEqual(watched.foreign, [], "no script of the captcha before the form is open");
    await click(page, "Try it");
    await page.getByLabel("topic").fill("rain");
    await tryButton(page).click();
    await sees(page, "Solve the captcha, or sign in.");
    await click(page, "I am human, site");
    await tryButton(page).click();
    await sees(page, /tries left today/);
    await tryButton(page).click();
    await sees(page, "Solve the captcha, or sign in.");
    assert.deepEqual(sent, ["solved"]);
    watched.foreign.splice(0);
    await mustBeSound(watched, "try with a captcha");
    await context.close();

    const blocked = await openContext(browser);
    await blocked.route(SCRIPT, (route) => route.abort());
    const other = await openAt(blocked, shop, `/p/${productId}`);
    await click(other.page, "Try it");
    await sees(other.page, "The captcha did not load, and visitors need one.");
    await blocked.close();

    const { context: member } = await openMember(shop, browser);
    const own = await openAt(member, shop, `/p/${productId}`);
    await click(own.page, "Try it");
    await own.page.getByLabel("topic").fill("rain");
    await tryButton(own.page).click();
    await sees(own.page, /tries left today/);
    assert.deepEqual(own.foreign, []);
    await member.close();
  });
});
