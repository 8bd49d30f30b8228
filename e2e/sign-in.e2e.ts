import assert from "node:assert/strict";
import { after, before, suite } from "node:test";
import { createFirstAdminLink } from "@stoa/service/backoffice/admin/first-admin.ts";
import { authenticatorOf } from "@stoa/service/test/authenticator.ts";
import { emailsTo } from "@stoa/service/test/emails.ts";
import { type Market, openMarket } from "@stoa/service/test/market.ts";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { mustBeFit } from "./accessible.ts";
import { click, looks, openBrowser, openContext, openPage, sees } from "./browser.ts";
import { everyRun, test } from "./full-run.ts";

const PASSWORD = "correct horse battery staple";

/** The clock can be moved, so that no test waits for the next authenticator code. */
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

let people = 0;
const newAddress = () => `ada.${++people}@example.com`;

interface Visitor {
  context: BrowserContext;
  page: Page;
  complaints: string[];
}

/** A new browser context at a path; `leave` checks its console errors. */
async function openVisitor(path: string): Promise<Visitor> {
  const context = await openContext(browser);
  const { page, complaints } = await openPage(context, market.origin);
  await page.goto(market.origin + path);
  return { context, page, complaints };
}

/** The browser logs refusals (wrong codes, passwords, stale sessions) as errors. No other error is allowed. */
async function leave({ context, complaints }: Visitor): Promise<void> {
  await context.close();
  assert.deepEqual(
    complaints.filter((complaint) => !/status of (400|401|403|422)/.test(complaint)),
    [],
  );
}

/** The link in the newest email. */
async function linkTo(address: string): Promise<string> {
  const [message] = await emailsTo(market, address);
  return /http\S+\/auth\/verify#token=\S+/.exec(message!.text)![0];
}

const pathOf = (page: Page) => page.url().slice(market.origin.length);
const isSignedIn = async ({ context }: Visitor) =>
  (await context.cookies()).some(({ name }) => name === "__Host-session");

async function requestLink(page: Page, address: string): Promise<void> {
  await page.getByLabel("Email address").fill(address);
  await click(page, "Mail me a link");
  await page.waitForURL("**/auth/check-mail*");
}

/** Opens the magic link in the same tab and clicks. */
async function followMagicLink(page: Page, address: string): Promise<void> {
  await page.goto(await linkTo(address));
  await click(page, "Sign in");
}

async function signsOut(page: Page): Promise<void> {
  await page.goto(`${market.origin}/auth/signed-in`);
  await click(page, "Sign out");
  await sees(page, "You are signed out.");
}

async function registers(page: Page, address: string): Promise<void> {
  await page.goto(`${market.origin}/auth/register`);
  await page.getByLabel("Name").fill("Ada Lovelace");
  await page.getByLabel("Email address").fill(address);
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await click(page, "Register");
  await page.waitForURL("**/auth/check-mail*");
  await followMagicLink(page, address);
  await page.waitForURL("**/auth/signed-in*");
}

/** Sets up an authenticator app. Returns it with the backup codes. */
async function setUpApp(page: Page) {
  await page.goto(`${market.origin}/auth/two-factor/set-up`);
  await click(page, "Begin");
  await page.getByText("No camera at hand?").click();
  const secret = (await page.locator("#secret").textContent())!.replaceAll(" ", "");
  const app = authenticatorOf(market, secret);
  await mustBeFit(page, "set-up, scanning");
  await page.getByLabel("Code").fill(app.code());
  await click(page, "Turn it on");
  await sees(page, "Keep your backup codes");
  await mustBeFit(page, "set-up, backup codes");
  app.backupCodes.push(...(await page.locator("#codes li").allTextContents()));
  await page.getByLabel("I have kept them").check();
  await page.getByRole("link", { name: "Done" }).click();
  await page.waitForURL("**/auth/signed-in*");
  return app;
}

suite("a magic link", () => {
  everyRun("signs in on click only, and leaves no token in the address bar", async () => {
    const visitor = await openVisitor("/auth/sign-in");
    const address = newAddress();
    // The field must have the focus, so that a user can type at once.
    await visitor.page.locator("#email:focus").waitFor();
    await visitor.page.keyboard.type(address);
    await visitor.page.keyboard.press("Enter");
    await sees(visitor.page, address);

    const link = await linkTo(address);
    const tab = await visitor.context.newPage();
    await tab.goto(link);
    await tab.waitForURL(`${market.origin}/auth/verify`);
    assert.equal(await isSignedIn(visitor), false, "a program that only opens the link uses nothing up");
    await click(tab, "Sign in");
    await tab.waitForURL("**/auth/signed-in*");
    await sees(tab, address);
    await sees(tab, "Not you?");
    const session = (await visitor.context.cookies()).find(({ name }) => name === "__Host-session")!;
    assert.deepEqual(
      [session.httpOnly, session.secure, session.sameSite, session.path],
      [true, true, "Lax", "/"],
    );

    const again = await visitor.context.newPage();
    await again.goto(link);
    await click(again, "Sign in");
    await sees(again, "This link cannot be used");
    await leave(visitor);
  });

  test("returns to the requested page, also from another tab", async () => {
    const visitor = await openVisitor("/auth/two-factor/set-up");
    const address = newAddress();
    assert.match(pathOf(visitor.page), /^\/auth\/sign-in\?returnTo=/);
    await requestLink(visitor.page, address);
    const tab = await visitor.context.newPage();
    await followMagicLink(tab, address);
    await tab.getByRole("link", { name: "Continue" }).click();
    await tab.waitForURL("**/auth/two-factor/set-up");
    await leave(visitor);
  });

  test("without its token: refused", async () => {
    const visitor = await openVisitor("/auth/verify");
    await sees(visitor.page, "This link cannot be used");
    await leave(visitor);
  });
});

suite("a password", () => {
  everyRun("registration, confirmation by email and sign-in: work with the keyboard alone", async () => {
    const visitor = await openVisitor("/auth/register");
    const { keyboard } = visitor.page;
    const address = newAddress();
    const focus = () =>
      visitor.page.evaluate("document.activeElement.id || document.activeElement.textContent");
    await visitor.page.locator("#name:focus").waitFor();
    const order = ["name", "email", "password", "show-password", "Register"];
    for (const stop of order) {
      assert.equal(await focus(), stop);
      if (stop === "name") await keyboard.type("Ada Lovelace");
      if (stop === "email") await keyboard.type(address);
      if (stop === "password") await keyboard.type(PASSWORD);
      await keyboard.press(stop === "Register" ? "Enter" : "Tab");
    }
    await visitor.page.waitForURL("**/auth/check-mail*");
    await followMagicLink(visitor.page, address);
    await sees(visitor.page, "Ada Lovelace");
    await signsOut(visitor.page);
    assert.equal(await isSignedIn(visitor), false);

    await visitor.page.goto(`${market.origin}/auth/sign-in?with=password&returnTo=/docs/errors`);
    await visitor.page.getByLabel("Email address").fill(address);
    await visitor.page.getByLabel("Password", { exact: true }).fill(`${PASSWORD}!`);
    await keyboard.press("Enter");
    await sees(visitor.page, "The email address or the password is wrong");
    assert.match(
      String(await focus()),
      /The email address or the password is wrong/,
      "what is wrong has the focus",
    );
    await visitor.page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await keyboard.press("Enter");
    await visitor.page.waitForURL("**/docs/errors");
    await leave(visitor);
  });

  test("missing: reported above the form and beside the field", async () => {
    const visitor = await openVisitor("/auth/sign-in?with=password");
    const { page } = visitor;
    await page.getByLabel("Email address").fill(newAddress());
    await click(page, "Sign in");
    await page.getByRole("alert").getByRole("link", { name: "Enter your password." }).click();
    const field = page.getByLabel("Password", { exact: true });
    assert.equal(await field.getAttribute("aria-invalid"), "true");
    assert.equal(await page.evaluate("document.activeElement.id"), "password");
    assert.equal(await page.locator("#password-fault").textContent(), "Enter your password.");
    await mustBeFit(page, "a field left out");
    await leave(visitor);
  });

  test("forgotten: replaced after a magic link, with a fresh sign-in", async () => {
    const visitor = await openVisitor("/auth/register");
    const { page } = visitor;
    const address = newAddress();
    await registers(page, address);
    market.clock.forward(16 * 60_000);
    await page.goto(`${market.origin}/auth/password`);
    await page.getByRole("link", { name: "Sign in again" }).click();
    await requestLink(page, address);
    await followMagicLink(page, address);
    await page.getByRole("link", { name: "Continue" }).click();
    const field = page.getByLabel("Password", { exact: true });
    await field.fill("short");
    await click(page, "Set it");
    await page
      .getByRole("alert")
      .getByText(/^Password /)
      .waitFor();
    await field.fill(`a better ${PASSWORD}`);
    await click(page, "Set it");
    await sees(page, "Your password is set");
    await mustBeFit(page, "password is set");
    await signsOut(page);
    await page.goto(`${market.origin}/auth/sign-in?with=password`);
    await page.getByLabel("Email address").fill(address);
    await field.fill(`a better ${PASSWORD}`);
    await click(page, "Sign in");
    await page.waitForURL("**/auth/signed-in*");
    await leave(visitor);
  });

  test("can be shown", async () => {
    const visitor = await openVisitor("/auth/sign-in?with=password");
    const field = visitor.page.getByLabel("Password", { exact: true });
    assert.equal(await field.getAttribute("type"), "password");
    await visitor.page.getByLabel("Show password").check();
    assert.equal(await field.getAttribute("type"), "text");
    await leave(visitor);
  });
});

suite("two-factor authentication", () => {
  test("set-up with an app: every later sign-in asks for a code", async () => {
    const visitor = await openVisitor("/auth/register");
    const { page } = visitor;
    const address = newAddress();
    await registers(page, address);
    const app = await setUpApp(page);
    assert.equal(app.backupCodes.length, 10);

    await signsOut(page);
    await page.goto(`${market.origin}/auth/sign-in?with=password&returnTo=/docs/errors`);
    await page.getByLabel("Email address").fill(address);
    await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await click(page, "Sign in");
    await sees(page, "Enter your code");
    // The page's script removes the challenge from the URL.
    await page.waitForURL(({ href }) => !href.includes("challenge"));
    assert.match(pathOf(page), /^\/auth\/two-factor\?/);
    assert.equal(await isSignedIn(visitor), false);
    await page.getByLabel("Code", { exact: true }).fill(app.wrongCode());
    await click(page, "Sign in");
    await sees(page, "This code is wrong");
    // A reload keeps the first step.
    await page.reload();
    await page.getByLabel("Code", { exact: true }).fill(app.nextCode());
    await click(page, "Sign in");
    await page.waitForURL("**/docs/errors");

    await signsOut(page);
    market.clock.forward(60_000);
    await requestLink(page, address);
    await followMagicLink(page, address);
    await click(page, "Use a backup code instead");
    await page.getByLabel("Backup code").fill(app.backupCodes[0]!.toLowerCase());
    await page.keyboard.press("Enter");
    await page.waitForURL("**/auth/signed-in*");
    await sees(page, address);
    await leave(visitor);
  });

  test("a code: gives new backup codes and turns it off", async () => {
    const visitor = await openVisitor("/auth/register");
    const { page } = visitor;
    await registers(page, newAddress());
    const app = await setUpApp(page);
    await page.getByRole("link", { name: "new codes, or turn it off" }).click();
    await page.locator("#renewal[data-ready]").waitFor();
    await mustBeFit(page, "two-factor is on");
    await page.locator("#renewal").getByLabel("Code").fill(app.backupCodes[0]!);
    await click(page, "Make new backup codes");
    await sees(page, "Those that you had before work no more.");
    const fresh = await page.locator("#codes li").allTextContents();
    assert.equal(fresh.length, 10);
    await page.getByLabel("I have kept them").check();
    await page.getByRole("link", { name: "Done" }).click();
    await page.waitForURL("**/auth/signed-in*");

    await page.goto(`${market.origin}/auth/two-factor/set-up`);
    await page.locator("#removal").getByLabel("Code").fill(app.backupCodes[1]!);
    await click(page, "Turn it off");
    await sees(page, "is wrong, too old, or was used already");
    await page.locator("#removal").getByLabel("Code").fill(fresh[0]!);
    await click(page, "Turn it off");
    await sees(page, "authentication is off");
    await mustBeFit(page, "two-factor is off again");
    await page.getByRole("link", { name: "Back to your account" }).click();
    await page.getByRole("link", { name: "set it up" }).waitFor();
    await leave(visitor);
  });

  test("old sign-in: asks for a fresh one and returns", async () => {
    const visitor = await openVisitor("/auth/register");
    const { page } = visitor;
    const address = newAddress();
    await registers(page, address);
    market.clock.forward(16 * 60_000);
    await page.goto(`${market.origin}/auth/two-factor/set-up`);
    await click(page, "Begin");
    await sees(page, "needs a recent sign-in");
    await requestLink(page, address);
    await followMagicLink(page, address);
    await page.getByRole("link", { name: "Continue" }).click();
    await click(page, "Begin");
    await sees(page, "Scan this with your app");
    await leave(visitor);
  });
});

test("first administrator: opens the printed link, signs in and gets the role", async () => {
  const link = (await createFirstAdminLink(market.service.ctx))!;
  const visitor = await openVisitor("/auth/register");
  const { page } = visitor;
  const address = newAddress();
  await registers(page, address);
  await signsOut(page);

  await page.goto(link);
  await page.waitForURL(`${market.origin}/auth/first-admin`);
  await page.getByRole("link", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "Use a password instead" }).click();
  assert.equal(await page.getByLabel("Email address").inputValue(), "", "no address is suggested");
  await page.getByLabel("Email address").fill(address);
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await click(page, "Sign in");
  await page.waitForURL("**/auth/first-admin");
  await click(page, "Become the administrator");
  await sees(page, "You are the administrator");
  await page.getByRole("link", { name: "Set up two-factor authentication" }).click();
  await page.waitForURL("**/auth/two-factor/set-up");
  await page.goto(link);
  await click(page, "Become the administrator");
  await sees(page, "This link cannot be used");
  await leave(visitor);
});

test("first administrator: may sign in with a magic link in another tab", async () => {
  await market.query("update users set role = 'user' where role = 'admin'");
  const visitor = await openVisitor("/auth/sign-in");
  await visitor.page.goto((await createFirstAdminLink(market.service.ctx))!);
  await visitor.page.getByRole("link", { name: "Sign in" }).click();
  const address = newAddress();
  await requestLink(visitor.page, address);
  const tab = await visitor.context.newPage();
  await followMagicLink(tab, address);
  await tab.getByRole("link", { name: "Continue" }).click();
  await click(tab, "Become the administrator");
  await sees(tab, "You are the administrator");
  await leave(visitor);
});

suite("sessions", () => {
  test("are listed and ended, one or all others", async () => {
    const [phone, laptop] = [await openVisitor("/auth/register"), await openVisitor("/auth/sign-in")];
    const address = newAddress();
    await registers(phone.page, address);
    market.clock.forward(60_000);
    await requestLink(laptop.page, address);
    await followMagicLink(laptop.page, address);
    await sees(laptop.page, "Where you are signed in");
    assert.equal(await laptop.page.locator("#entries li").count(), 2);
    await laptop.page.getByRole("button", { name: /^Sign out Chrome/ }).click();
    await sees(laptop.page, "Signed out there.");
    assert.equal(await laptop.page.locator("#entries li").count(), 1);
    await phone.page.reload();
    assert.match(pathOf(phone.page), /^\/auth\/sign-in/);
    await leave(phone);
    await leave(laptop);
  });
});

test("a form whose script loads late: can be filled in, and sent when the script is there", async () => {
  const context = await openContext(browser);
  const { page } = await openPage(context, market.origin);
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route("**/assets/**/*.js", async (route) => {
    await held;
    await route.continue();
  });
  await page.goto(`${market.origin}/auth/sign-in?with=password`, { waitUntil: "commit" });
  const address = newAddress();
  await page.getByLabel("Email address").fill(address);
  await page.getByLabel("Password", { exact: true }).fill("something");
  await page.keyboard.press("Enter");
  assert.equal(await page.getByRole("button", { name: "Sign in" }).isDisabled(), true);
  release();
  await page.getByRole("button", { name: "Sign in", disabled: false }).waitFor();
  assert.equal(await page.getByLabel("Email address").inputValue(), address);
  assert.equal(pathOf(page), "/auth/sign-in?with=password");
  await page.keyboard.press("Enter");
  await sees(page, "The email address or the password is wrong");
  await context.close();
});

const forAnybody = [
  "/auth/sign-in",
  "/auth/sign-in?with=password&problem=ACCESS_DENIED",
  "/auth/register",
  "/auth/check-mail",
  "/auth/verify#token=x",
  "/auth/verify",
  "/auth/two-factor#challenge=x",
  "/auth/first-admin#token=x",
];
const forSignedIn = [
  "/auth/signed-in?returnTo=/docs",
  "/auth/password",
  "/auth/two-factor/set-up",
  "/auth/first-admin#token=y",
];

for (const { scheme, width } of looks) {
  test(`account pages, ${width} pixels, ${scheme}: no overflow, no complaints, accessible`, async () => {
    const context = await openContext(browser, { scheme, width });
    const look = async (path: string) => {
      const { page, foreign, complaints } = await openPage(context, market.origin);
      await page.goto(market.origin + path);
      if (path.startsWith("/auth/signed-in")) await sees(page, "Where you are signed in");
      await mustBeFit(page, path);
      assert.deepEqual([...foreign, ...complaints], [], path);
      await page.close();
    };
    for (const path of forAnybody) await look(path);
    const page = await context.newPage();
    await registers(page, newAddress());
    for (const path of forSignedIn) await look(path);
    await setUpApp(page);
    await look("/auth/two-factor/set-up");
    await context.close();
  });
}
