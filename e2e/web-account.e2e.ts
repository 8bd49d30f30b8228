import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before } from "node:test";
import { authenticatorOf } from "@stoa/service/test/authenticator.ts";
import { isSignedIn, registerAccount, uniqueEmail } from "@stoa/service/test/emails.ts";
import { buyProduct, createProduct } from "@stoa/service/test/factories.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { notificationsOf } from "@stoa/service/test/notifications.ts";
import { createOAuthClient, requestTokens } from "@stoa/service/test/oauth.ts";
import type { Browser, Locator, Page } from "playwright-core";
import { click, openBrowser, sees } from "./browser.ts";
import { everyRun, test } from "./full-run.ts";
import { HOSTILE, openAt, openMember } from "./members.ts";
import { buildWebClient, mustHaveNoErrors, signIn, type WebPage } from "./web.ts";

const MINUTE_MS = 60_000;
const PASSWORD = "correct horse battery staple";
const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

let market: Market;
let browser: Browser;
before(async () => {
  await buildWebClient();
  market = await openMarket();
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await market.close();
});

const read = async (client: Client, path: string) => (await client.get(`/v1${path}`)).body.data;
const field = (page: Page, label: string) => page.getByLabel(label, { exact: true });
const choose = async (page: Page, menu: string, item: string) => {
  await click(page, menu);
  await page.getByRole("menuitem", { name: item, exact: true }).click();
};
/** The secret that a dialog shows once. */
const secretOf = async (page: Page) => (await page.locator("[data-secret]").innerText()).trim();
const dialogsOf = (page: Page) => page.getByRole("dialog").count();

test("the profile, edited in two tabs: the second sees both states and chooses; no edit is lost", async () => {
  const { session, context } = await openMember(market, browser);
  const first = await openAt(context, market, "/account");
  const second = await openAt(context, market, "/account");
  await field(first.page, "Name").fill("Ada Lovelace");
  await click(first.page, "Save changes");
  await sees(first.page, "Profile saved");
  await field(second.page, "About you").fill("Engines.");
  await click(second.page, "Save changes");
  await sees(second.page, "Changed elsewhere");
  await second.page.getByRole("cell", { name: "Ada Lovelace" }).waitFor();
  await second.page
    .getByRole("alert")
    .filter({ hasText: "Changed elsewhere" })
    .and(second.page.locator(":focus"))
    .waitFor();
  assert.deepEqual(
    [(await read(session, "/account")).bio, await field(second.page, "About you").inputValue()],
    ["", "Engines."],
  );
  await click(second.page, "Keep mine");
  await sees(second.page, "Profile saved");
  const merged = await read(session, "/account");
  assert.deepEqual([merged.name, merged.bio], ["Ada Lovelace", "Engines."]);

  await field(first.page, "About you").fill("Mine is older.");
  await click(first.page, "Save changes");
  await click(first.page, "Take theirs");
  assert.equal(await field(first.page, "About you").inputValue(), "Engines.");
  assert.equal((await read(session, "/account")).bio, "Engines.");
  for (const tab of [first, second]) mustHaveNoErrors(tab);
  await context.close();
});

test("the profile: errors beside their fields, then a handle, links and a picture", async () => {
  const { session, context } = await openMember(market, browser);
  const watched = await openAt(context, market, "/account");
  const { page } = watched;
  await field(page, "Handle").fill("admin");
  await click(page, "Add a link");
  await field(page, "Text of link 1").fill("Notes");
  await field(page, "Address of link 1").fill("http://example.com");
  await click(page, "Save changes");
  await sees(page, "The profile was not saved");
  for (const label of ["Handle", "Address of link 1"])
    await field(page, label).and(page.locator("[aria-invalid]")).waitFor();
  await sees(page, "Is reserved: choose another one.");
  await sees(page, /^Must be an https URL with the name of a host/);
  assert.equal(await field(page, "Address of link 1").inputValue(), "http://example.com");
  await field(page, "Handle").fill("ada-of-engines");
  await field(page, "Address of link 1").fill("https://example.com/notes");
  await page.getByLabel("Country").selectOption("GB");
  await page
    .getByLabel("Picture file")
    .setInputFiles({ name: "ada.png", mimeType: "image/png", buffer: PIXEL });
  await page.getByRole("button", { name: "Replace" }).waitFor();
  await click(page, "Save changes");
  await page.getByRole("link", { name: /\/u\/ada-of-engines$/ }).waitFor();
  const account = await read(session, "/account");
  assert.deepEqual(
    [account.handle, account.country, account.links, account.avatar !== null],
    ["ada-of-engines", "GB", [{ label: "Notes", url: "https://example.com/notes" }], true],
  );
  mustHaveNoErrors(watched);
  await context.close();
});

test("two-factor authentication: switched on with the app, then asked for at the next sign-in", async () => {
  const email = uniqueEmail();
  const session = await registerAccount(market, email, PASSWORD);
  const { context } = await openMember(market, browser, { session });
  const { page } = await openAt(context, market, "/account/security");
  await page.getByRole("link", { name: "Turn on" }).click();
  const secret = (await page.getByText(/^[A-Z2-7 ]{20,}$/).innerText()).replaceAll(" ", "");
  const app = authenticatorOf(market, secret);
  await field(page, "Code").fill(app.wrongCode());
  await page.getByRole("dialog").getByRole("button", { name: "Turn on" }).click();
  await sees(page, "The code was refused");
  await field(page, "Code").fill(app.code());
  await page.getByRole("dialog").getByRole("button", { name: "Turn on" }).click();
  await sees(page, "Two-factor authentication is on");
  const codes = (await secretOf(page)).split("\n");
  assert.equal(codes.length, 10);
  assert.ok(await page.getByRole("button", { name: "Done" }).isDisabled(), "not before the codes are saved");
  await page.getByLabel("I saved them").check();
  await click(page, "Done");
  await sees(page, "10 of 10 backup codes left.");

  await click(page, "Sign out");
  await page.waitForURL(`${market.origin}/`);
  await page.goto(`${market.origin}/account/security`);
  await page.goto(`${page.url()}&with=password`);
  await page.getByLabel("Email address").fill(email);
  await field(page, "Password").fill(PASSWORD);
  await click(page, "Sign in");
  await page.waitForURL(/two-factor/);
  await field(page, "Code").fill(codes[0] ?? "");
  await page.keyboard.press("Enter");
  await sees(page, "9 of 10 backup codes left.");

  await click(page, "Turn off");
  await field(page, "Code").fill(app.nextCode());
  await page.getByRole("dialog").getByRole("button", { name: "Turn off" }).click();
  await sees(page, "Two-factor authentication is off");
  await context.close();
});

test("sessions: one ended, then all others; the present one stays until the person signs out", async () => {
  const { session, context } = await openMember(market, browser);
  const others = await Promise.all([1, 2, 3].map(() => market.createSession(session.userId)));
  await market.query("insert into identities values ('github', 'ada', $1, now())", [session.userId]);
  const watched = await openAt(context, market, "/account/security");
  const { page } = watched;
  const rows = page.getByRole("listitem").filter({ hasText: "last seen" });
  await rows.nth(3).waitFor();
  await page
    .getByRole("button", { name: /^End the session/ })
    .first()
    .click();
  await rows.nth(3).waitFor({ state: "detached" });
  await click(page, "End all others");
  await click(page, "End 2 sessions");
  await sees(page, "2 sessions ended");
  assert.deepEqual(await Promise.all(others.map(isSignedIn)), [false, false, false]);
  assert.equal(await isSignedIn(session), true);
  await click(page, "Unlink GitHub");
  await page.getByRole("dialog").getByRole("button", { name: "Unlink GitHub" }).click();
  await sees(page, "GitHub no longer signs you in");
  await page.getByText("Sign-in providers").waitFor({ state: "detached" });
  mustHaveNoErrors(watched);
  await click(page, "Sign out");
  await page.waitForURL(`${market.origin}/`);
  assert.equal(await isSignedIn(session), false);
  await context.close();
});

everyRun("an API key: made by a preset, shown once, copied, rotated, ended and revoked", async () => {
  const { session, context } = await openMember(market, browser);
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const watched = await openAt(context, market, "/settings/api");
  const { page } = watched;
  await page.getByRole("link", { name: "Create key" }).first().click();
  await field(page, "Name").fill(HOSTILE);
  await click(page, "Run");
  // Both clicks of a double click mean one key.
  await page.getByRole("button", { name: "Create key" }).dblclick();
  const key = await secretOf(page);
  await page.getByRole("dialog").getByRole("button", { name: "Copy" }).click();
  await sees(page, "Copied");
  assert.equal(await page.evaluate("navigator.clipboard.readText()"), key);
  await page.keyboard.press("Escape");
  assert.equal(await dialogsOf(page), 1, "the key would be lost");
  await page.getByLabel("I saved the key in a safe place").check();
  await click(page, "Done");
  for (const [from, to] of [
    [HOSTILE, "ci"],
    ["ci", HOSTILE],
  ] as const) {
    await choose(page, `More for ${from}`, "Rename key");
    await field(page, "Name").fill(to);
    await click(page, "Rename key");
    await page.getByRole("button", { name: `More for ${to}` }).waitFor();
  }
  assert.equal((await market.as(key).get("/v1/products")).status, 200);
  assert.equal((await market.as(key).get("/v1/purchases")).status, 403);
  const keys = (await read(session, "/api-keys")).filter(({ name }: { name: string }) => name === HOSTILE);
  assert.equal(keys.length, 1);

  await choose(page, `More for ${HOSTILE}`, "Rotate key");
  await click(page, "Keep it");
  await page
    .locator(":focus")
    .and(page.getByRole("button", { name: `More for ${HOSTILE}` }))
    .waitFor();
  await choose(page, `More for ${HOSTILE}`, "Rotate key");
  await page.getByLabel("1 hour").check();
  await page.getByRole("button", { name: "Rotate key" }).click();
  await sees(page, "The new key is active");
  const renewed = await secretOf(page);
  await page.getByLabel("I saved the key in a safe place").check();
  await click(page, "Done");
  await sees(page, "works until");
  for (const value of [key, renewed])
    assert.equal(
      (await market.as(value).get("/v1/products")).status,
      200,
      "both work during the grace period",
    );
  await click(page, "End it now");
  await click(page, "Revoke key");
  await sees(page, /The key .* ended/);
  assert.equal((await market.as(key).get("/v1/products")).status, 401);
  await choose(page, `More for ${HOSTILE}`, "Revoke key");
  await page.getByRole("dialog").getByRole("button", { name: "Revoke key" }).click();
  await page.getByRole("button", { name: `More for ${HOSTILE}` }).waitFor({ state: "detached" });
  assert.equal((await market.as(renewed).get("/v1/products")).status, 401);
  assert.equal(await page.evaluate("document.body.innerText.includes('Revoked')"), true);
  mustHaveNoErrors(watched);
  await context.close();
});

test("an API key when the sign-in is old: the person signs in again, and the form has its text", async () => {
  const email = uniqueEmail();
  const session = await registerAccount(market, email, PASSWORD);
  const { context } = await openMember(market, browser, { session });
  market.clock.forward(16 * MINUTE_MS);
  const { page } = await openAt(context, market, "/settings/api?create=true");
  await field(page, "Name").fill("invoice-sync");
  await click(page, "Seller");
  await page.getByRole("button", { name: "Create key" }).click();
  await sees(page, "This needs a sign-in of the last 15 minutes.");
  await page.getByRole("link", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "Use a password instead" }).click();
  await page.getByLabel("Email address").fill(email);
  await field(page, "Password").fill(PASSWORD);
  await click(page, "Sign in");
  await page.waitForURL(`${market.origin}/settings/api?create=true`);
  assert.equal(await field(page, "Name").inputValue(), "invoice-sync");
  await page.getByRole("button", { name: "Seller", pressed: true }).waitFor();
  await page.getByRole("button", { name: "Create key" }).click();
  assert.match(await secretOf(page), /^stoa_test_/);
  await context.close();
});

test("an OAuth app: a wrong redirect address is named, then its secret is shown once, renewed, and it is deleted", async () => {
  const { session, context } = await openMember(market, browser);
  const watched = await openAt(context, market, "/settings/oauth-apps?create=true");
  const { page } = watched;
  await field(page, "Name").fill("Prompt sync");
  await field(page, "Redirect addresses").fill("https://sync.example/callback\nhttp://sync.example/callback");
  await page.getByRole("button", { name: "Create app" }).click();
  await sees(page, /http:\/\/sync\.example\/callback: Must be an https URL/);
  await field(page, "Redirect addresses").fill("https://sync.example/callback");
  await page.getByRole("button", { name: "Create app" }).click();
  await sees(page, "Your new app");
  const secret = await secretOf(page);
  await page.getByLabel("I saved the secret in a safe place").check();
  await click(page, "Done");
  const [app] = await read(session, "/oauth-clients");
  assert.deepEqual([app.name, app.redirectUris], ["Prompt sync", ["https://sync.example/callback"]]);
  await choose(page, "More for Prompt sync", "New secret");
  await click(page, "Create new secret");
  await sees(page, "The new secret is active");
  assert.notEqual(await secretOf(page), secret);
  await page.getByLabel("I saved the secret in a safe place").check();
  await click(page, "Done");
  await choose(page, "More for Prompt sync", "Delete app");
  assert.ok(
    await page.getByRole("button", { name: "Delete app" }).isDisabled(),
    "not before the name is typed",
  );
  await page.getByLabel("Type Prompt sync to confirm").fill("Prompt sync");
  await page.getByRole("button", { name: "Delete app" }).click();
  await sees(page, "No OAuth apps yet");
  assert.deepEqual(await read(session, "/oauth-clients"), []);
  mustHaveNoErrors(watched);
  await context.close();
});

test("notifications: an email is switched off, one notification is read, then all", async () => {
  const { session, context } = await openMember(market, browser);
  for (const name of ["one", "two"]) await session.post("/v1/api-keys", { name, permissions: {} });
  const watched = await openAt(context, market, "/account/notifications");
  const { page } = watched;
  const saved = page.waitForResponse((response) => response.request().method() === "PATCH");
  await page.getByLabel("Email: A payout was sent").uncheck();
  await saved;
  const { kinds } = await read(session, "/account/notifications");
  assert.deepEqual([kinds["payout.completed"].email, kinds["payout.failed"].email], [false, true]);
  await page.getByRole("link", { name: "Show notifications" }).click();
  await page.getByRole("link", { name: /The API key one was created/ }).click();
  await page.waitForURL(`${market.origin}/settings/api`);
  await page.goBack();
  await page.getByRole("link", { name: "Unread1" }).click();
  await click(page, "Mark all as read");
  await sees(page, "Nothing is unread");
  assert.deepEqual(
    (await notificationsOf(session)).map(({ readAt }) => readAt === null),
    [false, false],
  );
  mustHaveNoErrors(watched);
  await context.close();
});

test("a session that ends in the middle of a form: the text stays, and is saved after the next sign-in", async () => {
  const { session, context } = await openMember(market, browser);
  const { page } = await openAt(context, market, "/account");
  await field(page, "About you").fill("Written for an hour.");
  await market.createSession(session.userId).then((other) => other.delete("/v1/account/sessions"));
  await click(page, "Save changes");
  await sees(page, "Your session ended.");
  assert.equal(await field(page, "About you").inputValue(), "Written for an hour.");
  const next = await market.createSession(session.userId);
  await signIn(context, market.origin, next);
  await click(page, "Go on");
  await page.getByRole("button", { name: "Go on" }).waitFor({ state: "detached" });
  await click(page, "Save changes");
  await sees(page, "Profile saved");
  assert.equal((await read(next, "/account")).bio, "Written for an hour.");
  await context.close();
});

test("the plan: bought with the amount in view, and the account's data as one file", async () => {
  const { session, context } = await openMember(market, browser);
  const watched = await openAt(context, market, "/account/plan");
  const { page } = watched;
  await click(page, "Change to Pro");
  await page.getByLabel(/0002/).check();
  await click(page, "Pay $29.00");
  await sees(page, "Your bank declined the card: the bank gave no reason.");
  await page.getByLabel(/3155/).check();
  await click(page, "Pay $29.00");
  await sees(page, "Your bank asks you to confirm it.");
  await page.getByRole("link", { name: "Open the bank's page" }).waitFor();
  await click(page, "Cancel the change");
  await page.getByText("Your bank asks you to confirm it.").waitFor({ state: "detached" });
  await click(page, "Change to Pro");
  await page.getByLabel(/4242/).first().check();
  await click(page, "Pay $29.00");
  await sees(page, "You have the Pro plan, paid until");
  assert.equal((await read(session, "/account")).plan, "pro");
  await click(page, "Change to Free");
  await page.getByRole("dialog").getByRole("button", { name: "Change to Free" }).click();
  await sees(page, "The Free plan begins on");
  await click(page, "Keep Pro");
  await page.getByText("The Free plan begins on").waitFor({ state: "detached" });

  await page.getByRole("link", { name: "Your data" }).click();
  const [download] = await Promise.all([page.waitForEvent("download"), click(page, "Download")]);
  const { profile, planPayments, apiKeys } = JSON.parse(await readFile(await download.path(), "utf8"));
  assert.deepEqual([profile.plan, planPayments[0].status, apiKeys.length], ["pro", "completed", 1]);
  mustHaveNoErrors(watched);
  await context.close();
});

test("cards and provider keys: stored, made the default or checked, and removed", async () => {
  const { session, context } = await openMember(market, browser);
  const watched = await openAt(context, market, "/account/payment-methods?create=true");
  const { page } = watched;
  await page.getByLabel("Card", { exact: true }).selectOption("pm_test_declined");
  await click(page, "Store card");
  await sees(page, "Card stored");
  await page.getByRole("button", { name: "Make default: Visa ends in 0002" }).first().click();
  await page.getByRole("listitem").filter({ hasText: "Visa ends in 0002 Default" }).waitFor();
  await click(page, "Remove Visa ends in 0002");
  await click(page, "Remove card");
  await sees(page, "Card removed");

  await page.getByRole("link", { name: "Provider keys" }).click();
  await page.getByRole("link", { name: "Add key" }).first().click();
  await field(page, "Name").fill("Personal");
  await field(page, "Key").fill("sk-no-such-key-4f2a");
  await field(page, "Monthly budget in USD").fill("a lot");
  await page.getByRole("dialog").getByRole("button", { name: "Add key" }).click();
  await field(page, "Monthly budget in USD").and(page.locator("[aria-invalid]")).waitFor();
  await field(page, "Monthly budget in USD").fill("20");
  await page.getByRole("dialog").getByRole("button", { name: "Add key" }).click();
  await sees(page, "at most $20.00 a month");
  await choose(page, "More for Personal", "Change");
  await field(page, "Name").fill("Work");
  await click(page, "Save changes");
  await page.getByRole("button", { name: "More for Work" }).waitFor();
  const [key] = await read(session, "/ai/keys");
  assert.deepEqual([key.name, key.last4, key.monthlyBudget], ["Work", "4f2a", 20]);
  await choose(page, "More for Work", "Delete key");
  await page.getByRole("dialog").getByRole("button", { name: "Delete key" }).click();
  await sees(page, "No provider keys yet");
  mustHaveNoErrors(watched);
  await context.close();
});

test("an app that acts for the account: disconnected, and its token ends", async () => {
  // The OAuth library uses the real clock.
  market.clock.now = new Date();
  const { session, context } = await openMember(market, browser);
  const owner = await market.createUser();
  const app = await createOAuthClient(market, owner, { name: "Desk" });
  const { access_token: token } = await requestTokens(market, session.userId, app);
  assert.equal((await market.as(token).get("/v1/account")).status, 200);
  const watched = await openAt(context, market, "/account/connected-apps");
  await click(watched.page, "Disconnect Desk");
  await click(watched.page, "Disconnect");
  await sees(watched.page, "No connected apps");
  assert.equal((await market.as(token).get("/v1/account")).status, 401);
  mustHaveNoErrors(watched);
  await context.close();
});

test("the account: closed after its email address is typed; what was typed elsewhere is asked about first", async () => {
  const { session, context } = await openMember(market, browser);
  const { email } = await read(session, "/account");
  const { page } = await openAt(context, market, "/account");
  await field(page, "About you").fill("Not saved.");
  await page.getByRole("link", { name: "Your data" }).click();
  await sees(page, "Leave without saving?");
  await click(page, "Stay here");
  assert.equal(await field(page, "About you").inputValue(), "Not saved.");
  await page.getByRole("link", { name: "Your data" }).click();
  await click(page, "Leave");
  await page.getByRole("link", { name: "Close the account" }).click();
  const confirm = page.getByRole("dialog").getByRole("button", { name: "Close the account" });
  await page.getByLabel(/^Type/).fill(`${email}x`);
  assert.ok(await confirm.isDisabled());
  await page.getByLabel(/^Type/).fill(email);
  await confirm.click();
  await page.waitForURL(`${market.origin}/`);
  await page.getByRole("banner").getByRole("link", { name: "Sign in" }).waitFor();
  assert.equal(await isSignedIn(session), false);
  await context.close();
});

test("the keyboard alone: a key is made and saved, and the focus is back at the button", async () => {
  const { context } = await openMember(market, browser);
  const watched = await openAt(context, market, "/settings/api");
  const { page } = watched;
  const create = page.getByRole("link", { name: "Create key" }).first();
  await create.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.type("by keyboard");
  await page.keyboard.press("Enter");
  await sees(page, "Your new key, shown once");
  await tabTo(page, page.getByLabel("I saved the key in a safe place"));
  await page.keyboard.press("Space");
  await tabTo(page, page.getByRole("button", { name: "Done" }));
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await create.and(page.locator(":focus")).waitFor();
  await page.getByRole("cell", { name: "by keyboard", exact: true }).waitFor();
  mustHaveNoErrors(watched);
  await context.close();
});

/** Presses Tab until this has the focus. */
async function tabTo(page: Page, wanted: Locator): Promise<void> {
  for (let presses = 0; presses < 20; presses++) {
    if ((await wanted.and(page.locator(":focus")).count()) === 1) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`20 times Tab do not lead to ${wanted}`);
}

test("a lost connection: the change waits, and is saved when the connection is back", async () => {
  const { session, context } = await openMember(market, browser);
  const { page } = await openAt(context, market, "/account");
  await field(page, "Name").waitFor();
  await context.setOffline(true);
  await sees(page, "You are offline.");
  await field(page, "Name").fill("Ada in a tunnel");
  await click(page, "Save changes");
  await page.getByRole("button", { name: "Save changes" }).and(page.locator(":disabled")).waitFor();
  await context.setOffline(false);
  await sees(page, "Profile saved");
  assert.equal((await read(session, "/account")).name, "Ada in a tunnel");
  await context.close();
});

test("what is gone: a key that ended in another tab says so, and the list shows it", async () => {
  const { session, context } = await openMember(market, browser);
  const { id } = (await session.post("/v1/api-keys", { name: "ci", permissions: {} })).body.data;
  const watched = await openAt(context, market, "/settings/api");
  const { page } = watched;
  await choose(page, "More for ci", "Rotate key");
  await session.delete(`/v1/api-keys/${id}`);
  await page.getByRole("dialog").getByRole("button", { name: "Rotate key" }).click();
  await sees(page, "The key was not rotated");
  await page.getByRole("row", { name: /^ci .*Revoked/ }).waitFor();
  mustHaveNoErrors(watched);
  await context.close();
});

test("a session that ended, signed in again in the same tab: no question about leaving, and the text is back", async () => {
  const email = uniqueEmail();
  const session = await registerAccount(market, email, PASSWORD);
  const { context } = await openMember(market, browser, { session });
  const { page } = await openAt(context, market, "/account");
  const questions: string[] = [];
  page.on("dialog", (dialog) => {
    questions.push(dialog.type());
    void dialog.accept();
  });
  await field(page, "About you").fill("Kept over the sign-in.");
  await page.getByLabel("Country").selectOption("GB");
  const [present] = await read(session, "/account/sessions");
  await session.delete(`/v1/account/sessions/${present.id}`);
  await click(page, "Save changes");
  await page.locator("form").getByRole("link", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "Use a password instead" }).click();
  await page.getByLabel("Email address").fill(email);
  await field(page, "Password").fill(PASSWORD);
  await click(page, "Sign in");
  await page.waitForURL(`${market.origin}/account`);
  assert.deepEqual(questions, []);
  assert.equal(await field(page, "About you").inputValue(), "Kept over the sign-in.");
  await click(page, "Save changes");
  await sees(page, "Profile saved");
  await context.close();
});

test("an account with money that cannot be paid out: the amount is named, and given up by choice", async () => {
  const seller = await market.createUser({ name: "Grace" });
  await buyProduct(await market.createUser(), await createProduct(seller, { price: 20 }));
  const session = await market.createSession(seller.userId);
  const { context } = await openMember(market, browser, { session });
  const { config } = market.service.ctx;
  const { payoutSchedule } = config;
  Object.assign(config, { payoutSchedule: null });
  const { page } = await openAt(context, market, "/account/data?close=true");
  const dialog = page.getByRole("dialog");
  await page.getByLabel(/^Type/).fill((await read(session, "/account")).email);
  await dialog.getByRole("button", { name: "Close the account" }).click();
  await sees(page, "The account is still open");
  await page.getByLabel(/^Give up \$18\.00/).check();
  await dialog.getByRole("button", { name: "Close the account" }).click();
  await page.waitForURL(`${market.origin}/`);
  Object.assign(config, { payoutSchedule });
  assert.equal(await isSignedIn(session), false);
  await context.close();
});

test("the callback secret and the referral link: made and shown once, and copied", async () => {
  const { session, context } = await openMember(market, browser);
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const watched = await openAt(context, market, "/settings/api");
  const { page } = watched;
  await sees(page, "You have none yet.");
  await click(page, "Create secret");
  await page.getByRole("dialog").getByRole("button", { name: "Create secret" }).click();
  await sees(page, "Your callback secret, shown once");
  assert.match(await secretOf(page), /^whsec_/);
  await page.getByLabel("I saved the secret in a safe place").check();
  await click(page, "Done");
  await click(page, "New secret");
  await click(page, "Keep the old one");
  assert.notEqual((await read(session, "/account/callback-secret")).activatedAt, null);
  await page.goto(`${market.origin}/account/referral`);
  await click(page, "Copy link");
  await sees(page, "Copied");
  const { url } = await read(session, "/account/referral");
  assert.equal(await page.evaluate("navigator.clipboard.readText()"), url);
  mustHaveNoErrors(watched);
  await context.close();
});
