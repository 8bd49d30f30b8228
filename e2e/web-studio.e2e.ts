import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before } from "node:test";
import { buyProduct, createDraft, createProduct, haiku } from "@stoa/service/test/factories.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { run, runToCompletion } from "@stoa/service/test/runs.ts";
import type { Browser, Route } from "playwright-core";
import { click, looks, openBrowser, sees } from "./browser.ts";
import { everyRun, test } from "./full-run.ts";
import { HOSTILE, openAt, openMember, visitEach } from "./members.ts";
import { buildWebClient, mustBeSound } from "./web.ts";

const DAY_MS = 86_400_000;

const toWords = (texts: string[]): string[] => texts.map((text) => text.trim().replaceAll(/\s+/g, " "));

let market: Market;
let browser: Browser;
before(async () => {
  await buildWebClient();
  market = await openMarket();
  // Deadlines on pages count from the browser's clock.
  market.clock.now = new Date(Date.now() - 20 * DAY_MS);
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await market.close();
});

const signIn = async ({ userId }: Client) => market.createSession(userId);

async function post(who: Client, path: string, body: object = {}) {
  const reply = await who.post(`/v1${path}`, body);
  assert.ok(reply.status < 300, `${path}: ${reply.text}`);
  return reply.body.data;
}

interface Shop {
  seller: Client;
  productId: string;
  orderId: string;
  refundId: string;
  payoutId: string;
}

/** A seller with something on each page of the studio: an old sale that was paid out, new ones, a refund to decide, reviews and codes. */
async function openShop(): Promise<Shop> {
  const seller = await market.createUser({ name: HOSTILE });
  const productId = await createProduct(seller, { title: HOSTILE.slice(0, 80), price: 40 });
  await createDraft(seller, { title: "A draft" });
  const session = await signIn(seller);
  await session.put("/v1/account/payout-account", { account: "acct_test" });
  await buyProduct(await market.createUser(), productId);
  market.clock.forward(16 * DAY_MS);
  const { id: payoutId } = await post(await signIn(seller), "/payouts", { amount: 20 });
  market.clock.forward(3 * DAY_MS);
  const buyer = await market.createUser({ name: HOSTILE });
  const orderId = await buyProduct(buyer, productId);
  await runToCompletion(buyer, { productId, variables: { topic: "rain" } });
  await run(buyer, { productId, options: { model: "sandbox-500" }, variables: { topic: "rain" } });
  const review = `/products/${productId}/reviews`;
  await post(buyer, review, { rating: 2, comment: `${HOSTILE} does not rhyme` });
  const { id: refundId } = await post(buyer, `/purchases/${orderId}/refund`, {
    reason: "not_as_described",
    details: HOSTILE,
  });
  const referrer = await market.createUser();
  const { code: referralCode } = (await referrer.get("/v1/account/referral")).body.data;
  await post(await market.createUser(), "/purchases", { productId, referralCode });
  await post(seller, "/discount-codes", { code: "SPRING-2026", percentOff: 25, maxRedemptions: 10 });
  return { seller, productId, orderId, refundId, payoutId };
}

const pagesOf = ({ orderId, refundId, payoutId }: Shop): [path: string, text: string][] => [
  ["/studio", "Refund of"],
  ["/studio/products", "Failed runs"],
  ["/studio/products?import=true", "Drop a file here"],
  ["/studio/runs", "1 product with runs"],
  ["/studio/sales", "3 sales"],
  ["/studio/sales?code=NOBODY", "Referral code NOBODY"],
  [`/studio/sales/${orderId}`, "You earn"],
  ["/studio/refunds", "To decide"],
  [`/studio/refunds/${refundId}`, "If you approve"],
  ["/studio/reviews", "does not rhyme"],
  ["/studio/discounts", "SPRING-2026"],
  ["/studio/discounts?create=true", "New discount code"],
  ["/studio/referrals", "1 sale by referral"],
  ["/studio/payouts", "What matures when"],
  [`/studio/payouts/${payoutId}`, "Balance after"],
];

/** Pages that come with all responses of their first view. */
const COMPLETE = /^\/studio\/(runs|sales|sales\/\w+|refunds|reviews|discounts|referrals|payouts\/\w+)$/;

const isOfPayoutAccount = (call: string) => call.includes("/payout-account");

for (const look of looks) {
  test(`the studio, ${look.width} pixels, ${look.scheme}: each page is sound`, async () => {
    const shop = await openShop();
    const { context } = await openMember(market, browser, { look, session: await signIn(shop.seller) });
    await visitEach(context, market, pagesOf(shop), async (watched, [path, text]) => {
      await watched.page.getByText(text).first().waitFor({ state: "attached" });
      if (COMPLETE.test(path)) assert.deepEqual(watched.calls, [], path);
      const name = path.replace(/(ord|refund|payout|rfn|po)_\w+/, "id");
      await mustBeSound(watched, `studio ${name}`);
      // Two parts of the overview show it, and each request asks the payment provider.
      if (path === "/studio") assert.equal(watched.calls.filter(isOfPayoutAccount).length, 1);
    });
    await context.close();
  });
}

test("the sales of one referral code: its filter is removable", async () => {
  const { seller } = await openShop();
  const { context } = await openMember(market, browser, { session: await signIn(seller) });
  const { page } = await openAt(context, market, "/studio/sales?code=NOBODY");
  await sees(page, "No such sales");
  await click(page, "Remove the filter Referral code NOBODY");
  await sees(page, "3 sales");
  await context.close();
});

test("an account without a product: pages say what makes a seller", async () => {
  const { context } = await openMember(market, browser);
  const pages = ["/studio", "/studio/sales", "/studio/payouts", "/studio/products"];
  const visits = pages.map((path) => [path] as const);
  await visitEach(context, market, visits, async (watched, [path]) => {
    await sees(watched.page, path === "/studio" ? "First steps" : /You do not sell|No products yet/);
    await mustBeSound(watched, `no seller ${path}`);
  });
  await context.close();
});

test("products: a file with three faults is refused by line, then imported; bulk changes tell what failed", async () => {
  const seller = await market.createUser({ role: "seller" });
  const { context } = await openMember(market, browser, { session: await signIn(seller) });
  const watched = await openAt(context, market, "/studio/products");
  const { page } = watched;
  await click(page, "Import");
  const lines = [haiku, { ...haiku, title: "Poet", price: -1 }, { ...haiku, title: "Bard", kind: "PROMPT" }];
  const file = (name: string, texts: string[]) => ({
    name,
    mimeType: "application/jsonl",
    buffer: Buffer.from(texts.join("\n")),
  });
  const chooser = page.locator('dialog input[type="file"]');
  const wrong = [...lines.map((line) => JSON.stringify(line)), '{"title": "No price"}'];
  // A file that is chosen while another one is checked takes its place.
  const held = Promise.withResolvers<void>();
  // Not `times: 1`: it ends the interception of requests while the second one is under way.
  await page.route("**/import?dryRun=true", async (route: Route) => {
    await held.promise;
    await route.continue();
  });
  await chooser.setInputFiles(file("replaced.jsonl", [JSON.stringify({ ...haiku, title: "Replaced" })]));
  await sees(page, "Checking the file…");
  await chooser.setInputFiles(file("wrong.jsonl", wrong));
  held.resolve();
  const table = page.getByRole("dialog").getByRole("table");
  await table.getByText("positive").waitFor();
  const places = await table.locator("tbody tr td:first-child").allTextContents();
  assert.deepEqual([...new Set(places)], ["2", "3", "4"]);
  // The browser reports the refusal.
  assert.equal(watched.complaints.splice(0).length, 1);
  await mustBeSound(watched, "import with faults");
  assert.equal((await seller.get("/v1/products?author=me")).body.meta.total, 0, "nothing was written");
  const right = ["Haiku", "Poet", "Bard"].map((title) => JSON.stringify({ ...haiku, title }));
  await chooser.setInputFiles(
    file("right.jsonl", [...right, JSON.stringify({ ...haiku, title: "Empty", description: "" })]),
  );
  await click(page, "Import 4 products");
  await sees(page, "4 products created");
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  // It closes with the address. Keys of the page do not work before.
  await page.getByRole("dialog").waitFor({ state: "detached" });

  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await sees(page, "1 chosen");
  await page.getByLabel("Choose all on this page").check();
  await click(page, "Publish 4");
  await sees(page, "3 products published, 1 not.");
  await page.locator("tr", { hasText: "Empty" }).locator(".ferr").waitFor();
  assert.equal(watched.complaints.splice(0).length, 1);
  await mustBeSound(watched, "a partial failure");
  await click(page, "Change price");
  await page.getByRole("button", { name: "By a percentage" }).click();
  await page.getByLabel("Percent, negative is cheaper").fill("-20");
  await page.getByText("$3.99").first().waitFor();
  await click(page, "Change 4 prices");
  await sees(page, "4 products repriced.");
  await page.locator(".toast", { hasText: "repriced" }).getByRole("button", { name: "Undo" }).click();
  await sees(page, "4 products changed back.");
  const prices = async () =>
    (await seller.get("/v1/products?author=me")).body.data.map(({ price }: { price: number }) => price);
  assert.deepEqual(await prices(), [4.99, 4.99, 4.99, 4.99]);
  const chosen = page.getByRole("region", { name: "Chosen products" });
  await page.getByLabel("Choose Empty").uncheck();
  const download = page.waitForEvent("download");
  await chosen.getByRole("button", { name: "Export" }).click();
  const exported = await readFile(await (await download).path(), "utf8");
  const titles = exported
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line).title);
  assert.deepEqual(titles, ["Haiku", "Poet", "Bard"], "only the chosen ones");
  await click(page, "Take 3 off sale");
  await sees(page, "3 products taken off sale.");
  assert.equal((await seller.get("/v1/products?author=me&status=unpublished")).body.meta.total, 3);
  await page.locator(".toast", { hasText: "off sale" }).getByRole("button", { name: "Undo" }).click();
  await sees(page, "3 products changed back.");
  await page.getByRole("link", { name: "Draft" }).click();
  await page.waitForURL("**/studio/products?status=draft");
  await page.locator("tbody tr").nth(1).waitFor({ state: "detached" });
  await page.getByLabel("Choose Empty").check();
  await chosen.getByRole("button", { name: "Delete" }).click();
  await click(page, "Delete “Empty”");
  await sees(page, "1 product deleted.");
  await page.goBack();
  await sees(page, "3 products");
  await context.close();
});

everyRun(
  "a refund with its facts is rejected, another approved, a review answered and reported, a code made and changed",
  async () => {
    const shop = await openShop();
    const { context } = await openMember(market, browser, { session: await signIn(shop.seller) });
    const watched = await openAt(context, market, "/studio");
    const { page } = watched;
    await page.getByRole("link", { name: "Decide" }).click();
    await page.waitForURL(`**/studio/refunds/${shop.refundId}`);
    await sees(page, "1 failed");
    const decision = page.getByRole("complementary", { name: "Decision" });
    await decision.getByText("-$36.00").waitFor();
    await click(page, "Reject…");
    await page.getByLabel("Reason for the buyer").fill("It does rhyme: choose the language first.");
    await click(page, "Reject the refund");
    await sees(page, "The buyer gets your reason by email.");
    await decision.getByText("It does rhyme").waitFor();
    const [refund] = (await shop.seller.get("/v1/refunds?role=seller")).body.data;
    assert.equal(refund.status, "rejected");

    const other = await market.createUser();
    const order = await buyProduct(other, shop.productId);
    // The first use of a product leaves the decision to the seller.
    await other.get(`/v1/products/${shop.productId}`);
    const asked = await post(other, `/purchases/${order}/refund`, {
      reason: "other",
      details: "Not for me.",
    });
    await page.goto(`${market.origin}/studio/refunds?product=${shop.productId}&status=pending`);
    await sees(page, "1 refund");
    await page.locator("tbody").getByRole("link").click();
    await click(page, "Approve…");
    await click(page, "Refund $40.00");
    await sees(page, "$40.00 went back to the buyer.");
    assert.equal((await other.get(`/v1/refunds/${asked.id}`)).body.data.status, "succeeded");

    await page.getByRole("link", { name: "Reviews" }).click();
    await page.getByRole("button", { name: /^Reply to/ }).click();
    await page.getByLabel(/^Your reply to/).fill("The next version will.");
    await click(page, "Post the reply");
    await sees(page, "Your reply stands below the review.");
    await page.getByRole("button", { name: /^More for the review/ }).click();
    await page.getByRole("menuitem", { name: "Delete your reply" }).click();
    await page
      .locator(".toast", { hasText: "Your reply is deleted" })
      .getByRole("button", { name: "Undo" })
      .click();
    await page.locator(".reviews-answer").waitFor();
    await page.getByRole("button", { name: /^More for the review/ }).click();
    await page.getByRole("menuitem", { name: "Report to the moderators" }).click();
    await page.getByLabel("What breaks the rules").fill("It names my address.");
    await click(page, "Send report");
    await sees(page, "Your report is with the moderators.");

    await page.getByRole("link", { name: "Discount codes" }).click();
    await page.getByRole("link", { name: "New code" }).click();
    await page.getByLabel("Percent, 100 is free").fill("20");
    await click(page, "Create code");
    await page.locator("dialog .ferr").first().waitFor();
    await page.getByLabel("Code", { exact: true }).fill("AUTUMN");
    await click(page, "Create code");
    await sees(page, "AUTUMN takes 20% off.");
    await page.getByRole("link", { name: "AUTUMN" }).click();
    const uses = page.getByLabel("Uses in all, optional");
    await uses.fill("5");
    const [code] = (await shop.seller.get("/v1/discount-codes")).body.data;
    await shop.seller.patch(`/v1/discount-codes/${code.id}`, { percentOff: 30 });
    await click(page, "Save");
    await sees(page, "Changed elsewhere since you opened it.");
    await click(page, "Keep mine");
    await sees(page, "AUTUMN is changed for later purchases.");
    const [changed] = (await shop.seller.get("/v1/discount-codes")).body.data;
    assert.deepEqual([changed.percentOff, changed.maxRedemptions], [30, 5], "both changes are kept");
    await context.close();
  },
);

test("a payout: requested, with its entries, its statement and an account that the provider refuses", async () => {
  const shop = await openShop();
  const { context } = await openMember(market, browser, { session: await signIn(shop.seller) });
  const watched = await openAt(context, market, "/studio/payouts");
  const { page } = watched;
  await click(page, "Pay out USD…");
  await page.getByLabel(/^Amount/).fill("5");
  await page.getByRole("dialog").getByRole("button", { name: "Pay out $5.00" }).click();
  await page.locator("dialog .ferr", { hasText: "minimum" }).waitFor();
  await page.getByLabel(/^Amount/).fill("16");
  await page.getByRole("dialog").getByRole("button", { name: "Pay out $16.00" }).click();
  await sees(page, "$16.00: paid.");
  await page.locator("tbody tr", { hasText: "$20.00" }).getByRole("link").click();
  await sees(page, "Balance after");
  await page.locator("td", { hasText: "$36.00" }).waitFor();
  for (const format of ["CSV", "PDF"]) {
    const download = page.waitForEvent("download");
    await click(page, `Statement ${format}`);
    assert.match((await download).suggestedFilename(), new RegExp(`^payout-.*\\.${format.toLowerCase()}$`));
  }
  await page.goBack();
  await click(page, "Use a test account");
  await page.getByRole("button", { name: "Fails" }).click();
  await click(page, "Use this account");
  await sees(page, "Later payouts go to acct_test_fails.");
  await post(await signIn(shop.seller), "/account/payout-account/onboarding");
  await page.reload();
  const needed = page.getByRole("list", { name: "What the payment provider needs" });
  await needed.waitFor();
  assert.deepEqual(toWords(await needed.getByRole("listitem").allInnerTexts()), [
    "Overdue Identity document",
    "Overdue Bank account",
  ]);
  await sees(page, "The payment provider waits for what is overdue.");
  await page.getByRole("button", { name: "Complete it" }).waitFor();
  watched.complaints.length = 0;
  await mustBeSound(watched, "payout account with requirements");
  await context.close();
});
