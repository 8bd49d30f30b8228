import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, suite } from "node:test";
import { emailsTo } from "@stoa/service/test/emails.ts";
import { buyProduct, createProduct } from "@stoa/service/test/factories.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import type { Browser, Page } from "playwright-core";
import { click, looks, openBrowser, openContext, sees } from "./browser.ts";
import { everyRun, test } from "./full-run.ts";
import { buildWebClient, mustBeSound, openWebPage, signIn, type WebPage } from "./web.ts";

let market: Market;
let browser: Browser;
let seller: Client;
before(async () => {
  await buildWebClient();
  market = await openMarket({ config: { taxRates: new Map([["DE", 1_900]]) } });
  // Countdowns compare the times of the service with the browser's clock.
  market.clock.now = new Date();
  seller = await market.createUser({ name: "The Quiet Editor" });
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await market.close();
});

let products = 0;
const newProduct = (fields = {}) => createProduct(seller, { title: `Poet ${++products}`, ...fields });
const newBuyer = (name = "Ada") => market.createUser({ name });

/** A page of a new browser in which the buyer is signed in. */
async function openAs(buyer: Client, path: string, look = {}): Promise<WebPage> {
  const context = await openContext(browser, look);
  await signIn(context, market.origin, await market.createSession(buyer.userId));
  const watched = await openWebPage(context, market.origin);
  await watched.page.goto(market.origin + path);
  return watched;
}

/** The browser logs declines and refusals of the API as errors. */
const forgetRefusals = ({ complaints }: WebPage, ...statuses: number[]) => {
  const others = complaints.filter(
    (complaint) => !statuses.some((status) => complaint.includes(`status of ${status}`)),
  );
  complaints.splice(0, complaints.length, ...others);
};

const ordersOf = async (buyer: Client) => (await buyer.get("/v1/purchases")).body.data;
const pay = (page: Page) => page.getByRole("button", { name: /^Pay / }).first();
async function leave({ page, complaints }: WebPage): Promise<void> {
  await page.context().close();
  assert.deepEqual(complaints, []);
}

for (const look of looks) {
  test(`checkout, library and orders, ${look.width} pixels, ${look.scheme}: sound`, async () => {
    const buyer = await newBuyer("عادل 👩‍👩‍👧 averylongnamewithoutanyspaceinside");
    const owned = await newProduct({ title: `<b>Verse</b> ${"averylongword".repeat(6)}` });
    const offered = await newProduct();
    const order = await buyProduct(buyer, owned);
    const declined = { productId: offered, paymentMethodId: "pm_test_insufficient_funds" };
    assert.equal((await buyer.post("/v1/purchases", declined)).status, 402);
    const watched = await openAs(buyer, "/library", look);
    await sees(watched.page, "Refund until");
    await mustBeSound(watched, "library");
    for (const [path, text] of [
      [`/checkout/${offered}`, "Other test cards"],
      [`/checkout/${owned}`, "It is yours."],
      ["/library?show=updates", "No updates"],
      ["/orders", "Declined"],
      ["/orders?status=disputed", "No such orders"],
      [`/orders/${order}`, "Order placed"],
    ] as const) {
      await watched.page.goto(market.origin + path);
      await sees(watched.page, text);
      await mustBeSound(watched, path.replace(/(prod|ord)_\w+/, "$1"));
    }
    await leave(watched);
  });
}

suite("checkout", () => {
  everyRun("a visitor signs in by email, pays, and finds the product in the library", async () => {
    const id = await newProduct({ title: "Letter to a friend" });
    const context = await openContext(browser);
    const watched = await openWebPage(context, market.origin);
    const { page } = watched;
    await page.goto(`${market.origin}/p/${id}`);
    await page.getByRole("link", { name: "Buy for $4.99" }).first().click();
    await page.getByRole("heading", { name: "Buy Letter to a friend" }).waitFor();
    await mustBeSound(watched, "checkout of a visitor");
    await page.getByRole("link", { name: "Sign in to buy" }).click();
    await page.getByLabel("Email address").fill("visitor@example.com");
    await click(page, "Mail me a link");
    await page.waitForURL("**/auth/check-mail*");
    const [message] = await emailsTo(market, "visitor@example.com");
    await page.goto(/http\S+\/auth\/verify#token=\S+/.exec(message!.text)![0]);
    await click(page, "Sign in");
    await page.getByRole("link", { name: "Continue" }).click();
    await page.waitForURL(`**/checkout/${id}`);
    await pay(page).click();
    await sees(page, "It is yours.");
    await mustBeSound(watched, "bought");
    await page.getByRole("link", { name: "Library" }).last().click();
    await page.getByRole("link", { name: "Run Letter to a friend" }).waitFor();
    await page.getByRole("link", { name: "Run Letter to a friend" }).click();
    await page.waitForURL(`**/run/${id}`);
    await page.getByRole("heading", { name: "Letter to a friend" }).waitFor();
    await context.close();
  });

  test("a returning buyer pays in two clicks; a double click and a second tab are one order", async () => {
    const buyer = await newBuyer();
    const id = await newProduct();
    const watched = await openAs(buyer, `/p/${id}`);
    const { page } = watched;
    await page
      .getByRole("link", { name: /^Buy for/ })
      .first()
      .click();
    const other = await page.context().newPage();
    await other.goto(`${market.origin}/checkout/${id}`);
    await pay(other).waitFor();
    await pay(page).dblclick();
    await sees(page, "It is yours.");
    await pay(other).click();
    await sees(other, "It is yours.");
    assert.equal((await ordersOf(buyer)).length, 1);
    await leave(watched);
  });

  test("a purchase whose answer is lost: the same click after a reload is the same order", async () => {
    const buyer = await newBuyer();
    const id = await newProduct();
    const { page } = await openAs(buyer, `/checkout/${id}`);
    const keys: (string | undefined)[] = [];
    await page.route("**/v1/purchases", async (route) => {
      if (route.request().method() !== "POST") return route.continue();
      keys.push(route.request().headers()["idempotency-key"]);
      await route.abort();
    });
    await pay(page).click();
    await sees(page, "The service did not answer");
    await page.reload();
    await pay(page).click();
    await sees(page, "The service did not answer");
    assert.ok(keys.length > 1 && new Set(keys).size === 1, String(keys));
    await page.unroute("**/v1/purchases");
    await pay(page).click();
    await sees(page, "It is yours.");
    await page.context().close();
  });

  test("the bought page and the library do not open the product: the refund stays instant", async () => {
    const buyer = await newBuyer();
    const id = await newProduct();
    const watched = await openAs(buyer, `/checkout/${id}`);
    const { page } = watched;
    await pay(page).click();
    await sees(page, "It is yours.");
    await page.reload();
    await sees(page, "It is yours.");
    await page.getByRole("link", { name: "Library" }).last().click();
    await sees(page, "not opened yet");
    await page.goto(`${market.origin}/checkout/${id}`);
    await sees(page, "while you have not opened or run it");
    const [{ orderId }] = await ordersOf(buyer);
    const { refundable } = (await buyer.get(`/v1/purchases/${orderId}`)).body.data;
    assert.equal(refundable.approval, "instant");
    await leave(watched);
  });

  test("pages about a product that is owned: do not open it, so that its refund stays instant", async () => {
    const buyer = await newBuyer();
    const title = "Looked at";
    const id = await newProduct({ title });
    const order = await buyProduct(buyer, id);
    const watched = await openAs(buyer, `/p/${id}`);
    await sees(watched.page, "Preview");
    await watched.page.goto(`${market.origin}/library`);
    await watched.page.getByRole("link", { name: `Run ${title}` }).click();
    await watched.page.getByRole("heading", { name: title }).waitFor();
    await watched.page.waitForLoadState("networkidle");
    const { refundable } = (await buyer.get(`/v1/purchases/${order}`)).body.data;
    assert.equal(refundable.approval, "instant");
    await leave(watched);
  });

  test("the seller's own product: nothing to pay", async () => {
    const watched = await openAs(seller, `/checkout/${await newProduct()}`);
    await sees(watched.page, "This is your own product");
    assert.equal(await pay(watched.page).count(), 0);
    await leave(watched);
  });

  test("a session that ends: the form stays, and pays after a sign-in", async () => {
    const buyer = await newBuyer();
    const watched = await openAs(buyer, `/checkout/${await newProduct()}`);
    const { page } = watched;
    await page.getByLabel("Discount code").fill("KEPT");
    await page.context().clearCookies();
    await pay(page).click();
    await sees(page, "Your session ended.");
    await signIn(page.context(), market.origin, await market.createSession(buyer.userId));
    await click(page, "Go on");
    assert.equal(await page.getByLabel("Discount code").inputValue(), "KEPT");
    await pay(page).click();
    await sees(page, "It is yours.");
    forgetRefusals(watched, 401);
    await leave(watched);
  });

  test("a declined card: the reason, another card chosen, and the next try pays", async () => {
    const buyer = await newBuyer();
    const id = await newProduct();
    const watched = await openAs(buyer, `/checkout/${id}`);
    const { page } = watched;
    await page.getByText("Other test cards").click();
    await page.getByLabel("insufficient funds").check();
    await pay(page).click();
    await sees(page, "Your bank declined the card: not enough funds.");
    await page.getByRole("alert").and(page.locator(":focus")).waitFor();
    assert.ok(await page.getByLabel("Visa ends in 4242").first().isChecked());
    forgetRefusals(watched, 402);
    await mustBeSound(watched, "declined");
    await pay(page).click();
    await sees(page, "It is yours.");
    await leave(watched);
  });

  test("3-D Secure: the page waits, and goes on after the bank's answer, also after a reload", async () => {
    const buyer = await newBuyer();
    for (const [button, text] of [
      ["Decline", "Your bank declined the card: the payment was not confirmed."],
      ["Approve", "It is yours."],
    ] as const) {
      const id = await newProduct();
      const watched = await openAs(buyer, `/checkout/${id}`);
      const { page } = watched;
      await page.getByText("Other test cards").click();
      await page.getByLabel("requires action").check();
      await pay(page).click();
      await sees(page, "Confirm the payment with your bank");
      await page.reload();
      await sees(page, "Confirm the payment with your bank");
      if (button === "Decline") await mustBeSound(watched, "3-D Secure");
      const [bank] = await Promise.all([
        page.context().waitForEvent("page"),
        page.getByRole("link", { name: "Open the bank's page" }).click(),
      ]);
      await click(bank, button);
      await sees(bank, `Payment ${button.toLowerCase()}d`);
      await sees(page, text);
      await leave(watched);
    }
  });

  test("a code: the price after it, its refusal beside the field, and a free copy without a card", async () => {
    const buyer = await newBuyer();
    const id = await newProduct({ price: 10 });
    const session = await market.createSession(seller.userId);
    for (const code of [
      { code: `SPRING${products}`, percentOff: 20 },
      { code: `GIFT${products}`, percentOff: 100 },
    ])
      assert.equal((await session.post("/v1/discount-codes", code)).status, 201);
    const watched = await openAs(buyer, `/checkout/${id}?code=SPRING${products}`);
    const { page } = watched;
    await sees(page, "$2.00 off");
    await page.getByRole("button", { name: "Pay $8.00" }).first().waitFor();
    await click(page, "Remove discount code");
    await page.getByLabel("Discount code").fill("WINTER");
    await click(page, "Apply");
    await sees(page, "WINTER is unknown for this product's seller.");
    forgetRefusals(watched, 422);
    await mustBeSound(watched, "a refused code");
    await page.getByLabel("Discount code").fill(`gift${products}`);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Get it for free" }).first().click();
    await sees(page, "It is yours.");
    await leave(watched);
  });

  test("the total with tax: follows country and code, and is what the purchase charges", async () => {
    const buyer = await newBuyer();
    const id = await newProduct({ price: 6.99 });
    const session = await market.createSession(seller.userId);
    const code = `TAXED${products}`;
    assert.equal((await session.post("/v1/discount-codes", { code, percentOff: 50 })).status, 201);
    const watched = await openAs(buyer, `/checkout/${id}`);
    const { page } = watched;
    await page.getByRole("button", { name: "Pay $6.99" }).first().waitFor();
    await page.getByLabel("Country that you buy from").selectOption("DE");
    await page.getByRole("button", { name: "Pay $8.32" }).first().waitFor();
    await sees(page, "Tax, Germany, 19 %");
    assert.equal(await page.getByText("before tax").count(), 0);
    await mustBeSound(watched, "a total with tax");
    await page.getByLabel("Discount code").fill(code);
    await page.keyboard.press("Enter");
    await sees(page, "$3.50 off");
    await page.getByRole("button", { name: "Pay $4.15" }).first().click();
    await sees(page, "It is yours.");
    assert.equal(watched.calls.filter((call) => call === "POST /purchases").length, 1);
    const [{ amount }] = await ordersOf(buyer);
    assert.equal(amount, 4.15);
    await leave(watched);
  });

  test("a code that ends after its check: named beside it, and the next try pays without it", async () => {
    const buyer = await newBuyer();
    const id = await newProduct({ price: 10 });
    const session = await market.createSession(seller.userId);
    const code = `ENDS${products}`;
    const created = await session.post("/v1/discount-codes", { code, percentOff: 20 });
    const watched = await openAs(buyer, `/checkout/${id}?code=${code}`);
    const { page } = watched;
    await page.getByRole("button", { name: "Pay $8.00" }).first().waitFor();
    await session.delete(`/v1/discount-codes/${created.body.data.id}`);
    await pay(page).click();
    await sees(page, `${code} is unknown for this product's seller.`);
    assert.deepEqual(await ordersOf(buyer), []);
    forgetRefusals(watched, 422);
    await mustBeSound(watched, "a code that ended");
    await click(page, "Remove discount code");
    await page.getByRole("button", { name: "Pay $10.00" }).first().click();
    await sees(page, "It is yours.");
    await leave(watched);
  });

  test("a product that is no longer on sale: said before the buyer pays", async () => {
    const id = await newProduct();
    const watched = await openAs(await newBuyer(), `/checkout/${id}`);
    const { page } = watched;
    await pay(page).waitFor();
    assert.equal((await seller.post(`/v1/products/${id}/unpublish`)).status, 200);
    await page.getByLabel("Country that you buy from").selectOption("DE");
    await page.getByRole("alert").filter({ hasText: "not available" }).waitFor();
    assert.ok(await page.getByRole("button", { name: "Pay" }).first().isDisabled());
    forgetRefusals(watched, 409);
    await leave(watched);
  });

  test("a code that is checked: buys nothing, and a price that rose meanwhile is said", async () => {
    const buyer = await newBuyer();
    const friend = await newBuyer("Friend");
    const { code } = (await friend.get("/v1/account/referral")).body.data;
    const id = await newProduct({ price: 10 });
    const { page } = await openAs(buyer, `/checkout/${id}`);
    await page.getByText("Add a referral code").click();
    assert.equal((await seller.patch(`/v1/products/${id}`, { price: 11 })).status, 200);
    await page.getByLabel("Referral code").fill(code);
    await page.keyboard.press("Enter");
    await sees(page, "Accepted");
    await sees(page, "The price has changed.");
    await page.getByRole("button", { name: "Pay $11.00" }).first().waitFor();
    assert.deepEqual(await ordersOf(buyer), []);
    await page.context().close();
  });

  test("the referral code of a link: credited without being typed", async () => {
    const friend = await newBuyer("Friend");
    const { code } = (await friend.get("/v1/account/referral")).body.data;
    const buyer = await newBuyer();
    const watched = await openAs(buyer, `/checkout/${await newProduct()}?ref=${code}`);
    await pay(watched.page).click();
    await sees(watched.page, "It is yours.");
    await watched.page.getByRole("link", { name: "Order and refund" }).click();
    await sees(watched.page, code);
    await leave(watched);
  });

  test("a price that rose meanwhile: shown before it is paid", async () => {
    const buyer = await newBuyer();
    const id = await newProduct({ price: 10 });
    const { page } = await openAs(buyer, `/checkout/${id}`);
    await pay(page).waitFor();
    assert.equal((await seller.patch(`/v1/products/${id}`, { price: 12 })).status, 200);
    await pay(page).click();
    await sees(page, "The price has changed.");
    assert.deepEqual(await ordersOf(buyer), []);
    await page.getByRole("button", { name: "Pay $12.00" }).first().click();
    await sees(page, "It is yours.");
    await page.context().close();
  });

  test("a new card: stored, chosen, and offered the next time", async () => {
    const buyer = await newBuyer();
    const watched = await openAs(buyer, `/checkout/${await newProduct()}`);
    const { page } = watched;
    await page.getByLabel("Another card").check();
    assert.ok(await pay(page).isDisabled(), "no card pays while another one is added");
    await click(page, "Store this card");
    await page.getByLabel("Visa ends in 4242").nth(1).waitFor();
    await mustBeSound(watched, "a stored card");
    await pay(page).click();
    await sees(page, "It is yours.");
    const { data } = (await buyer.get("/v1/payment-methods")).body;
    assert.equal(data.filter(({ createdAt }: { createdAt: string | null }) => createdAt).length, 1);
    await leave(watched);
  });

  test("by keyboard alone: from the product to the receipt", async () => {
    const buyer = await newBuyer();
    const id = await newProduct();
    const { page } = await openAs(buyer, `/p/${id}`);
    await page
      .getByRole("link", { name: /^Buy for/ })
      .first()
      .focus();
    await page.keyboard.press("Enter");
    await pay(page).waitFor();
    await tabTo(page, /^Pay /);
    await page.keyboard.press("Enter");
    await sees(page, "It is yours.");
    await tabTo(page, "Receipt");
    await page.context().close();
  });
});

/** Presses Tab until the focus is on an element with this text. */
async function tabTo(page: Page, text: string | RegExp): Promise<void> {
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press("Tab");
    const focused = String(await page.evaluate("document.activeElement.textContent")).trim();
    if (typeof text === "string" ? focused === text : text.test(focused)) return;
  }
  assert.fail(`Tab does not reach ${text}`);
}

suite("library and orders", () => {
  everyRun("an instant refund: the rule before the click, the state after it", async () => {
    const buyer = await newBuyer();
    await buyProduct(buyer, await newProduct());
    const watched = await openAs(buyer, "/library");
    const { page } = watched;
    await page.getByRole("button", { name: /^More for/ }).click();
    await page.getByRole("menuitem", { name: "Refund" }).click();
    await sees(page, "the refund is approved at once");
    await mustBeSound(watched, "refund dialog");
    await click(page, "Refund $4.99");
    await sees(page, "$4.99 refunded.");
    await sees(page, "Your library is empty");
    await leave(watched);
  });

  test("a refund that the seller decides: requested, taken back by undo, requested again and canceled", async () => {
    const buyer = await newBuyer();
    const id = await newProduct();
    const order = await buyProduct(buyer, id);
    await buyer.get(`/v1/products/${id}`);
    const watched = await openAs(buyer, `/orders/${order}`);
    const { page } = watched;
    const request = async () => {
      await page.getByRole("button", { name: "Refund $4.99" }).click();
      await sees(page, "so the seller decides");
      await page.getByLabel("Details for the seller, optional").fill("<script>alert(1)</script> עברית");
      await page.getByRole("button", { name: "Request a refund of $4.99" }).dblclick();
      await sees(page, "Refund requested. The seller answers by");
    };
    await request();
    await click(page, "Undo");
    await sees(page, "The refund request is canceled.");
    await request();
    await mustBeSound(watched, "order with a refund request");
    await click(page, "Cancel the request");
    await page.getByRole("button", { name: "Refund $4.99" }).waitFor();
    const { refunds } = (await buyer.get(`/v1/purchases/${order}`)).body.data;
    assert.deepEqual(
      refunds.map(({ status }: { status: string }) => status),
      ["canceled", "canceled"],
    );
    await leave(watched);
  });

  test("a review: written, changed and deleted", async () => {
    const buyer = await newBuyer();
    const id = await newProduct();
    const order = await buyProduct(buyer, id);
    const watched = await openAs(buyer, `/orders/${order}`);
    const { page } = watched;
    await click(page, "Write a review");
    await click(page, "Publish the review");
    await sees(page, "Choose 1 to 5 stars.");
    await page.getByTitle("4 stars").click();
    await page.getByLabel("Comment, optional").fill("Three lines, each time.");
    await mustBeSound(watched, "review dialog");
    await click(page, "Publish the review");
    await sees(page, "Review published.");
    await click(page, "Write a review");
    await sees(page, "Your review");
    await page.getByTitle("5 stars").click();
    await click(page, "Change the review");
    await sees(page, "Review changed.");
    const reviews = (await buyer.get(`/v1/products/${id}/reviews`)).body.data;
    assert.deepEqual([reviews.length, reviews[0].rating], [1, 5]);
    await leave(watched);
  });

  test("the orders as CSV: one line each, and no formula", async () => {
    const buyer = await newBuyer();
    const order = await buyProduct(buyer, await newProduct({ title: '=HYPERLINK("x"), a title' }));
    const watched = await openAs(buyer, "/orders");
    const [file] = await Promise.all([
      watched.page.waitForEvent("download"),
      click(watched.page, "Export as CSV"),
    ]);
    const [columns, line] = (await readFile(await file.path(), "utf8")).split("\r\n");
    assert.match(columns!, /^order,created,completed,status,product/);
    assert.ok(line!.startsWith(`${order},`) && line!.includes(`"'=HYPERLINK(""x""), a title"`), line);
    await leave(watched);
  });

  test("files of an order: listed after a click, which counts as opened", async () => {
    const buyer = await newBuyer();
    const id = await newProduct();
    const form = new FormData();
    form.set("file", new Blob(["# Notes\n"], { type: "text/markdown" }), "notes.md");
    const added = await seller.request("POST", `/v1/products/${id}/files`, { body: form });
    assert.equal(added.status, 201, added.text);
    const watched = await openAs(buyer, `/orders/${await buyProduct(buyer, id)}`);
    await sees(watched.page, "at once, while you have not opened or run it");
    await click(watched.page, "Show the files");
    await watched.page.getByRole("link", { name: "notes.md" }).waitFor();
    await sees(watched.page, "if the seller agrees: you have opened or run it");
    await leave(watched);
  });

  test("filters, search and order of the library are in the address", async () => {
    const buyer = await newBuyer();
    for (const title of ["Tree of beech", "Ash", "Cheerful cedar"])
      await buyProduct(buyer, await newProduct({ title }));
    const { page } = await openAs(buyer, "/library?q=EE&sort=title");
    await page.getByRole("link", { name: "Tree of beech", exact: true }).waitFor();
    const titles = await page.locator(".list .name").allTextContents();
    assert.deepEqual(titles, ["Cheerful cedar", "Tree of beech"]);
    await page.getByRole("link", { name: "Workflows 0" }).click();
    await sees(page, "Nothing matches “EE”");
    await page.goBack();
    await page.getByRole("link", { name: "Cheerful cedar", exact: true }).waitFor();
    await page.context().close();
  });

  test("another person's order: not found", async () => {
    const order = await buyProduct(await newBuyer(), await newProduct());
    const { page } = await openAs(await newBuyer("Eve"), `/orders/${order}`);
    await sees(page, "This page does not exist");
    await page.context().close();
  });
});
