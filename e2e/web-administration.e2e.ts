import assert from "node:assert/strict";
import { after, before, suite } from "node:test";
import { buyProduct, createDraft, type ProductInput } from "@stoa/service/test/factories.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { createOAuthClient } from "@stoa/service/test/oauth.ts";
import { becomes } from "@stoa/service/test/until.ts";
import { picture, sendImage } from "@stoa/service/test/uploads.ts";
import type { Browser, Page } from "playwright-core";
import { click, type Look, looks, openBrowser, sees } from "./browser.ts";
import { everyRun, test } from "./full-run.ts";
import { HOSTILE, openAt, openMember, visitEach } from "./members.ts";
import { buildWebClient, mustBeSound, type WebPage } from "./web.ts";

let market: Market;
let browser: Browser;
before(async () => {
  await buildWebClient();
  market = await openMarket({ config: { moderation: true } });
  // The pages compare the times of the service with the browser's clock.
  market.clock.now = new Date();
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await market.close();
});

async function openAdmin({ secondFactor = true } = {}): Promise<Client> {
  const { userId } = await market.createUser({ name: "Ida", role: "admin" });
  return market.createSession(userId, { secondFactor });
}

async function openAsAdmin(path: string, { look = {}, session }: { look?: Look; session?: Client } = {}) {
  const member = await openMember(market, browser, { look, session: session ?? (await openAdmin()) });
  return { ...member, watched: await openAt(member.context, market, path) };
}

async function submit(seller: Client, fields: ProductInput = {}): Promise<string> {
  const id = await createDraft(seller, fields);
  assert.equal((await seller.post(`/v1/products/${id}/publish`)).status, 200);
  return id;
}

async function approve(id: string): Promise<void> {
  const reply = await (await openAdmin()).post(`/v1/admin/products/${id}/approve`);
  assert.equal(reply.status, 200, reply.text);
}

const idOf = async (client: Client): Promise<string> => (await client.get("/v1/account")).body.data.id;

/** The browser logs refusals of the API as errors. */
const forgetRefusals = ({ complaints }: WebPage, ...statuses: number[]) => {
  const others = complaints.filter(
    (text) => !statuses.some((status) => text.includes(`status of ${status}`)),
  );
  complaints.splice(0, complaints.length, ...others);
};

interface Shop {
  pending: string;
  update: string;
  reported: string;
  userId: string;
  orderId: string;
}

/** Something on each page, with hostile names. */
async function fill(): Promise<Shop> {
  const seller = await market.createUser({ name: HOSTILE });
  const buyer = await market.createUser({ name: HOSTILE });
  const reported = await submit(seller, { title: HOSTILE.slice(0, 80) });
  await approve(reported);
  const orderId = await buyProduct(buyer, reported);
  await buyer.get(`/v1/products/${reported}`);
  const update = await submit(seller, {
    title: "Poet of rain",
    content: "Write about {{topic}}.\nIn three lines.",
  });
  await approve(update);
  await seller.post(`/v1/products/${update}/unpublish`);
  const changed = {
    content: "Write about\u200b {{topic}}.\nIn four\u202e lines.",
    version: "1.1.0",
    changelog: "4",
    ...{ category: "programming", tags: ["rain"], price: 500, features: [HOSTILE] },
  };
  assert.equal((await seller.patch(`/v1/products/${update}`, changed)).status, 200);
  await seller.post(`/v1/products/${update}/publish`);
  const pending = await submit(seller, { title: `New ${HOSTILE.slice(0, 60)}` });
  const report = { reasonCode: "other", comment: HOSTILE };
  assert.equal((await buyer.post(`/v1/products/${reported}/report`, report)).status, 201);
  await buyer.post(`/v1/products/${reported}/reviews`, { rating: 1, comment: HOSTILE });
  const reviewId = (await seller.get(`/v1/products/${reported}/reviews`)).body.data[0].id;
  await seller.post(`/v1/products/${reported}/reviews/${reviewId}/report`, { reason: HOSTILE });
  await buyer.post(`/v1/purchases/${orderId}/refund`, { reason: "not_working", details: HOSTILE });
  await seller.post("/v1/webhooks", {
    url: `https://example.com/${"path".repeat(30)}`,
    description: HOSTILE,
  });
  await createOAuthClient(market, seller, { name: HOSTILE });
  await market.query(
    `insert into disputes (id, order_id, provider_dispute_id, status, amount_minor, reason, opened_at)
     select gen_random_uuid(), id, 'dp_' || id, 'inquiry', total_minor, 'product_not_received', completed_at from orders
      where buyer_id = $1`,
    [buyer.userId],
  );
  return { pending, update, reported, userId: await idOf(seller), orderId };
}

const pagesOf = ({ pending, update, reported, userId, orderId }: Shop): [string, string][] => [
  ["/admin", "What waits"],
  ["/admin/moderation", "Poet of rain"],
  [`/admin/moderation/${pending}`, "Seller's record"],
  [`/admin/moderation/${update}`, "U+202E"],
  [`/admin/moderation/${update}?diff=rendered`, "Approved"],
  // Without a scan, the page would not say that the new version brought the mark.
  [`/admin/moderation/${update}?search=Poet`, "2 new since 1.0.0"],
  [`/admin/moderation/${reported}?queue=reported`, "1 open report"],
  ["/admin/reviews", "Dismiss the reports"],
  ["/admin/users", "עברית"],
  [`/admin/users/${userId}`, "Own quota"],
  ["/admin/orders", "עברית"],
  [`/admin/orders/${orderId}`, "The buyer requested a refund"],
  ["/admin/refunds", "Sellers decide within 7 days"],
  ["/admin/disputes", "product not received"],
  ["/admin/payouts", "No such payouts"],
  ["/admin/webhooks?status=all", "https://example.com/path"],
  ["/admin/oauth-clients", "Apps that ask people"],
  ["/admin/audit", "product.approved"],
];

for (const look of looks) {
  test(`administration, ${look.width} pixels, ${look.scheme}: every page is sound`, async () => {
    const pages = pagesOf(await fill());
    const { context } = await openMember(market, browser, { look, session: await openAdmin() });
    await visitEach(context, market, pages, async (watched, [path, text]) => {
      await sees(watched.page, text).catch((error) => assert.fail(`${path}: ${error}`));
      await mustBeSound(watched, path.replace(/_[0-9a-z]{26}/, ""));
    });
    await context.close();
  });
}

suite("moderation", () => {
  everyRun("submitted, rejected with a reason, changed, compared and approved, by keyboard", async () => {
    const seller = await market.createUser({ name: "Northwind" });
    const id = await createDraft(seller, {
      title: "Domain names",
      content: "List 10 names for {{company}}.",
    });
    const fields = { alt: "A globe" };
    const upload = await sendImage(seller, id, { bytes: await picture({ width: 640, height: 360 }), fields });
    await seller.post(`/v1/products/${id}/publish`);
    await approve(id);
    await seller.post(`/v1/products/${id}/unpublish`);
    await seller.delete(`/v1/products/${id}/images/${upload.body.data.id}`);
    const change = (content: string, version: string, more: object = {}) =>
      seller.patch(`/v1/products/${id}`, { content, version, changelog: "Better", ...more });
    const sample = { input: { company: "Acme" }, output: "acme.example", model: "gpt-5-mini" };
    const more = { category: "programming", tags: ["names"], price: 500, samples: [sample] };
    await change("List 8 names for {{company}}.\nAsk for\u200b emails.", "1.1.0", more);
    await seller.post(`/v1/products/${id}/publish`);
    const { watched, context } = await openAsAdmin(`/admin/moderation/${id}`);
    const { page } = watched;
    await sees(page, "Hidden characters");
    const diff = page.getByRole("region", { name: "Content" });
    assert.match((await diff.locator(".removed").innerText()).replaceAll(/\s+/g, " "), /List 10 names/);
    assert.deepEqual(await diff.locator("del").allInnerTexts(), ["10"]);
    const details = page.locator(".detail-diff > div");
    for (const [name, text] of [
      ["Category", "programming"],
      ["Tags", "names"],
      ["Price", "$500.00"],
      ["Samples", "acme.example"],
    ] as const)
      await details.filter({ hasText: name }).locator("ins", { hasText: text }).waitFor();
    await details.filter({ hasText: "Price" }).locator("del", { hasText: "$4.99" }).waitFor();
    const removed = details.filter({ hasText: "Images" }).locator("del", { hasText: "A globe" });
    await becomes(
      () => removed.locator("img").evaluate((image) => "naturalWidth" in image && Number(image.naturalWidth)),
      (width) => Number(width) > 0,
    );
    await sees(page, /^Unchanged: .*Features/);
    assert.deepEqual(await page.locator(".hidden-character").first().innerText(), "U+200B");
    // Something speaks against it: no button is suggested.
    assert.equal(await page.locator(".decision .btn.primary").count(), 0);
    await page.keyboard.press("x");
    await sees(page, "Write what to change");
    await page.keyboard.type("Line 2 collects addresses.");
    await page.getByRole("button", { name: /^Reject/ }).click();
    await sees(page, "was rejected");
    const { status, moderation } = (await seller.get(`/v1/products/${id}`)).body.data;
    assert.deepEqual([status, moderation.reason], ["rejected", "Line 2 collects addresses."]);

    await change("List 8 names for {{company}}.", "1.1.1");
    await seller.post(`/v1/products/${id}/publish`);
    await page.goto(`${market.origin}/admin/moderation/${id}`);
    await sees(page, "after 1.0.0");
    assert.match(await page.locator(".decision .btn.primary").innerText(), /^Approve/);
    // A change while the moderator reads.
    await change("List 9 names for {{company}}.", "1.1.2");
    await page.keyboard.press("a");
    await sees(page, "changed the product while you read it");
    await click(page, "Show the new content");
    await sees(page, "version 1.1.2 after 1.0.0");
    await page.keyboard.press("a");
    await sees(page, "is on sale");
    assert.equal((await seller.get(`/v1/products/${id}`)).body.data.status, "published");
    forgetRefusals(watched, 412);
    assert.deepEqual(watched.complaints, []);
    await context.close();
  });

  test("a reported product: suspended as malicious, and its buyers refunded", async () => {
    const [seller, buyer] = [await market.createUser(), await market.createUser()];
    const id = await submit(seller, { title: "Trap" });
    await approve(id);
    await buyProduct(buyer, id);
    await buyer.post(`/v1/products/${id}/report`, {
      reasonCode: "malicious",
      comment: "It asks for passwords.",
    });
    const { watched, context } = await openAsAdmin(`/admin/moderation/${id}?queue=reported`);
    const { page } = watched;
    await sees(page, "It asks for passwords.");
    await click(page, "Suspend");
    await page.getByLabel("Why").selectOption("malicious");
    await click(page, "Suspend the product");
    await sees(page, "Trap is suspended.");
    await page.goto(`${market.origin}/admin/moderation/${id}?queue=suspended`);
    await click(page, "Refund buyers");
    await page.getByLabel("to confirm").fill("Trap");
    await click(page, "Refund all buyers");
    await sees(page, "1 purchase is refunded");
    assert.deepEqual(watched.complaints, []);
    await context.close();
  });
});

suite("reviews", () => {
  test("a reported one is hidden and shown again; the reports of another are dismissed", async () => {
    const seller = await market.createUser();
    const id = await submit(seller, { title: "Reviewed" });
    await approve(id);
    for (const comment of ["Buy mine instead", "Too long"]) {
      const buyer = await market.createUser();
      await buyProduct(buyer, id);
      const reply = await buyer.post(`/v1/products/${id}/reviews`, { rating: 2, comment });
      const report = `/v1/products/${id}/reviews/${reply.body.data.id}/report`;
      assert.equal((await seller.post(report, { reason: "Look at it." })).status, 201);
    }
    const shown = async () =>
      (await seller.get(`/v1/products/${id}/reviews`)).body.data.map(
        ({ comment }: { comment: string }) => comment,
      );
    const { watched, context } = await openAsAdmin("/admin/reviews");
    const { page } = watched;
    const advertising = page.getByRole("listitem").filter({ hasText: "Buy mine instead" });
    await advertising.getByRole("button", { name: "Hide" }).click();
    await page.getByRole("dialog").getByLabel("Reason").fill("Advertising");
    await click(page, "Hide the review");
    await sees(page, "The review is hidden.");
    assert.deepEqual(await shown(), ["Too long"]);
    const critical = page.getByRole("listitem").filter({ hasText: "Too long" });
    await critical.getByRole("button", { name: "Dismiss the reports" }).click();
    await sees(page, "The reports were dismissed.");
    await critical.waitFor({ state: "detached" });
    await page.goto(`${market.origin}/admin/reviews?status=hidden`);
    await advertising.getByText("Hidden: Advertising").waitFor();
    await advertising.getByRole("button", { name: "Show again" }).click();
    await sees(page, "The review is shown again.");
    assert.deepEqual((await shown()).toSorted(), ["Buy mine instead", "Too long"]);
    assert.deepEqual(watched.complaints, []);
    await context.close();
  });
});

/** An action on the account loads it again beside its form. */
async function loadInBackground(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name: `More for ${name}` }).click();
  await page.getByRole("menuitem", { name: "End all sessions" }).click();
  await click(page, "End all sessions");
}

suite("accounts", () => {
  test("without a second factor: what to do instead of an error", async () => {
    const { watched, context } = await openAsAdmin("/admin/users", {
      session: await openAdmin({ secondFactor: false }),
    });
    await sees(watched.page, "Administration needs two factors");
    await watched.page.getByRole("link", { name: "Set up two factors" }).click();
    await sees(watched.page, "Or type this key");
    await context.close();
  });

  test("found, changed, its sessions ended, banned and unbanned", async () => {
    const user = await market.createUser({ name: "Mallory Quick" });
    const session = await market.createSession(user.userId);
    const { watched, context } = await openAsAdmin("/admin/users");
    const { page } = watched;
    await page.getByLabel("Search users").fill("mallory q");
    await page.getByRole("link", { name: "Mallory Quick" }).click();
    // The list has a filter with the same label.
    await page.getByLabel("Own quota").waitFor();
    await page.getByLabel("Plan").selectOption("business");
    await page.getByLabel("Own quota").fill("a lot");
    await click(page, "Save changes");
    await sees(page, "Write requests/seconds");
    await page.getByLabel("Own quota").fill("5000/60");
    await page.getByLabel("Reason").fill("Agreed by mail");
    await click(page, "Save changes");
    await sees(page, "user.changed");
    await page.getByLabel("Role").selectOption("seller");
    await page.getByLabel("Verified seller").check();
    await click(page, "Save changes");
    await becomes(
      async () => (await user.get("/v1/account")).body.data,
      ({ plan, role, verified }) => plan === "business" && role === "seller" && verified,
    );
    await page.getByRole("button", { name: "More for Mallory Quick" }).click();
    await page.getByRole("menuitem", { name: "End all sessions" }).click();
    await click(page, "End all sessions");
    await sees(page, "1 session ended.");
    assert.equal((await session.get("/v1/account")).status, 401);
    await click(page, "Ban");
    await click(page, "Ban the account");
    await sees(page, "Write a reason.");
    await page.getByRole("dialog").getByLabel("Reason").fill("Fraud");
    await click(page, "Ban the account");
    await sees(page, "is banned");
    assert.equal((await user.get("/v1/account")).status, 401);
    await click(page, "Unban");
    await click(page, "Unban the account");
    await sees(page, "can sign in again");
    assert.deepEqual(watched.complaints, []);
    await context.close();
  });

  test("typed during a save, or beside another administrator's change: stays", async () => {
    const user = await market.createUser({ name: "Mallory Slow" });
    const path = `/admin/users/${await idOf(user)}`;
    const { watched, context } = await openAsAdmin(path);
    const { page } = watched;
    const [plan, quota] = [page.getByLabel("Plan"), page.getByLabel("Own quota")];
    const held = Promise.withResolvers<void>();
    await page.route(`**/v1${path}`, async (route) => {
      if (route.request().method() === "PATCH") await held.promise;
      await route.fallback();
    });
    await plan.selectOption("business");
    await page.getByLabel("Reason").fill("Agreed by mail");
    await click(page, "Save changes");
    await plan.selectOption("pro");
    await quota.fill("5000/60");
    held.resolve();
    await page.getByLabel("Facts").getByText("Business").waitFor();
    const typed = async () => [await plan.inputValue(), await quota.inputValue()];
    assert.deepEqual(await typed(), ["pro", "5000/60"]);
    assert.equal(await page.getByLabel("Reason").inputValue(), "");
    // Until then, the page reads the account again, and could read the other administrator's change.
    await page.locator("button:enabled", { hasText: "Save changes" }).waitFor();
    const other = await (await openAdmin()).patch(`/v1${path}`, { verified: true });
    assert.equal(other.status, 200, other.text);
    await click(page, "Save changes");
    await sees(page, "Someone else changed this account meanwhile.");
    await click(page, "Load again");
    await page.getByRole("alert").waitFor({ state: "detached" });
    assert.equal(await page.getByLabel("Verified seller").isChecked(), true);
    assert.deepEqual(await typed(), ["pro", "5000/60"]);
    await click(page, "Save changes");
    await page.getByLabel("Facts").getByText("Pro", { exact: true }).waitFor();
    const stored = (await (await openAdmin()).get(`/v1${path}`)).body.data;
    assert.deepEqual(
      [stored.plan, stored.quota, stored.verified],
      ["pro", [{ requests: 5000, seconds: 60 }], true],
    );
    forgetRefusals(watched, 412);
    assert.deepEqual(watched.complaints, []);
    await context.close();
  });

  test("an unreadable quota as the only edit: Save explains the format, Discard restores the field", async () => {
    const user = await market.createUser({ name: "Mallory Unclear" });
    const { watched, context } = await openAsAdmin(`/admin/users/${await idOf(user)}`);
    const { page } = watched;
    await page.getByLabel("Own quota").fill("a lot");
    await click(page, "Save changes");
    await sees(page, "Write requests/seconds");
    await click(page, "Discard");
    assert.equal(await page.getByLabel("Own quota").inputValue(), "");
    assert.equal(await page.getByText("Write requests/seconds").count(), 0);
    assert.equal(await page.getByRole("button", { name: "Save changes" }).isDisabled(), true);
    assert.deepEqual(watched.complaints, []);
    await context.close();
  });

  test("an unreadable quota that another administrator's replaces: the message about its format goes, Dismiss ends the notice", async () => {
    const user = await market.createUser({ name: "Mallory Replaced" });
    const path = `/admin/users/${await idOf(user)}`;
    const { watched, context } = await openAsAdmin(path);
    const { page } = watched;
    await page.getByLabel("Own quota").fill("a lot");
    await click(page, "Save changes");
    await sees(page, "Write requests/seconds");
    const theirs = { quota: [{ requests: 7, seconds: 60 }] };
    const other = await (await openAdmin()).patch(`/v1${path}`, theirs);
    assert.equal(other.status, 200, other.text);
    await loadInBackground(page, "Mallory Replaced");
    await sees(page, "Own quota now has the stored value.");
    assert.equal(await page.getByLabel("Own quota").inputValue(), "7/60");
    assert.equal(await page.getByText("Write requests/seconds").count(), 0);
    await click(page, "Dismiss");
    await page.getByRole("alert").waitFor({ state: "detached" });
    assert.equal(await page.getByRole("button", { name: "Save changes" }).isDisabled(), true);
    assert.deepEqual(watched.complaints, []);
    await context.close();
  });

  for (const look of looks)
    test(`a typed field that another administrator changed, ${look.width} pixels: a notice names it`, async () => {
      const user = await market.createUser({ name: "Mallory Shared" });
      const path = `/admin/users/${await idOf(user)}`;
      const { watched, context } = await openAsAdmin(path, { look });
      const { page } = watched;
      await page.getByLabel("Plan").selectOption("business");
      await page.getByLabel("Own quota").fill("5000/60");
      await page.getByLabel("Verified seller").check();
      const theirs = { plan: "pro", quota: [{ requests: 7, seconds: 60 }] };
      const other = await (await openAdmin()).patch(`/v1${path}`, theirs);
      assert.equal(other.status, 200, other.text);
      await loadInBackground(page, "Mallory Shared");
      await sees(page, "Plan and Own quota now have the stored values.");
      assert.equal(await page.getByLabel("Plan").inputValue(), "pro");
      assert.equal(await page.getByLabel("Own quota").inputValue(), "7/60");
      assert.equal(await page.getByLabel("Verified seller").isChecked(), true);
      await mustBeSound(watched, "user with replaced fields");
      await page.getByLabel("Plan").selectOption("business");
      await sees(page, "Own quota now has the stored value.");
      await click(page, "Discard");
      await page.getByRole("alert").waitFor({ state: "detached" });
      await context.close();
    });

  for (const look of looks)
    test(`the account cannot be loaded after a conflict, ${look.width} pixels: the notice stays beside the error`, async () => {
      const user = await market.createUser({ name: "Mallory Offline" });
      const path = `/admin/users/${await idOf(user)}`;
      const { watched, context } = await openAsAdmin(path, { look });
      const { page } = watched;
      await page.getByLabel("Plan").selectOption("business");
      const other = await (await openAdmin()).patch(`/v1${path}`, { verified: true });
      assert.equal(other.status, 200, other.text);
      await click(page, "Save changes");
      await sees(page, "Someone else changed this account meanwhile.");
      await page.route(`**/v1${path}`, (route) => route.fulfill({ status: 403, json: {} }));
      await click(page, "Load again");
      await sees(page, "The account was not loaded");
      await sees(page, "Someone else changed this account meanwhile.");
      forgetRefusals(watched, 403, 412);
      await mustBeSound(watched, "user not loaded after a conflict");
      await page.unroute(`**/v1${path}`);
      await click(page, "Load again");
      await page.getByRole("alert").first().waitFor({ state: "detached" });
      assert.equal(await page.getByRole("alert").count(), 0);
      assert.equal(await page.getByLabel("Verified seller").isChecked(), true);
      assert.equal(await page.getByLabel("Plan").inputValue(), "business");
      await context.close();
    });

  test("viewed as a user: reads as the user, a change is refused, secrets are hidden, the end leads back", async () => {
    const user = await market.createUser({ name: "Ada Viewed" });
    const { watched, context } = await openAsAdmin(`/admin/users/${await idOf(user)}`);
    const { page } = watched;
    await click(page, "View as this user");
    await page.getByRole("dialog").getByLabel("Reason").fill("Asked by mail");
    await click(page, "View for 30 minutes");
    await sees(page, "You view Stoa as Ada Viewed, read-only.");
    assert.equal(await page.getByRole("link", { name: "Administration" }).count(), 0);
    await page.getByLabel("About you").fill("Not mine to write.");
    await page.getByRole("button", { name: /^Save/ }).click();
    await sees(page, "You view another account, read-only");
    assert.equal((await user.get("/v1/account")).body.data.bio, "");
    await page.goto(`${market.origin}/settings/api`);
    await sees(page, "This stays hidden while you view another account.");
    watched.complaints.length = 0;
    await mustBeSound(watched, "view as user");
    await click(page, "End the view");
    await sees(page, "user.view_ended");
    assert.equal(await page.getByText("You view Stoa as").count(), 0);
    await context.close();
  });
});

suite("money", () => {
  test("an order: a part is refunded, the shares follow, and a double click refunds once", async () => {
    const [seller, buyer] = [await market.createUser(), await market.createUser({ name: "Bo" })];
    const id = await submit(seller, { title: "Ten dollars", price: 10 });
    await approve(id);
    const orderId = await buyProduct(buyer, id);
    const { watched, context } = await openAsAdmin("/admin/orders");
    const { page } = watched;
    await page.getByRole("link", { name: "Ten dollars" }).click();
    await click(page, "Refund");
    await page.getByLabel("A part").check();
    await page.getByRole("dialog").getByRole("button", { name: "Refund", exact: true }).click();
    await sees(page, "Enter an amount up to $10.00.");
    await page.getByLabel("Part in USD").fill("2.5");
    await page.getByRole("button", { name: "Refund $2.50" }).dblclick();
    await sees(page, "Partly refunded");
    await sees(page, "An administrator started a refund");
    const { refundedAmount, refunds } = (await buyer.get(`/v1/purchases/${orderId}`)).body.data;
    assert.deepEqual([refundedAmount, refunds.length], [2.5, 1]);
    assert.deepEqual(watched.complaints, []);
    await context.close();
  });

  test("a refund that waits for the seller: rejected by an administrator", async () => {
    const [seller, buyer] = [await market.createUser(), await market.createUser()];
    const id = await submit(seller, { title: "Opened" });
    await approve(id);
    const orderId = await buyProduct(buyer, id);
    await buyer.get(`/v1/products/${id}`);
    await buyer.post(`/v1/purchases/${orderId}/refund`, { reason: "other", details: "I changed my mind." });
    const { watched, context } = await openAsAdmin(`/admin/orders/${orderId}`);
    const { page } = watched;
    await click(page, "Reject");
    await page.getByRole("dialog").getByLabel("Reason").fill("It was used.");
    await click(page, "Reject the refund");
    await sees(page, "The refund was rejected");
    const { refunds } = (await buyer.get(`/v1/purchases/${orderId}`)).body.data;
    assert.deepEqual([refunds[0].status, refunds[0].decisionNote], ["rejected", "It was used."]);
    assert.deepEqual(watched.complaints, []);
    await context.close();
  });
});
