import assert from "node:assert/strict";
import { after, before, beforeEach, suite } from "node:test";
import { flushRequestLog } from "@stoa/service/accounts/request-logs/request-log.ts";
import { runRecovery } from "@stoa/service/events/webhooks/recoveries.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { until } from "@stoa/service/test/until.ts";
import { startWebhookReceiver, type WebhookReceiver } from "@stoa/service/test/webhook-receiver.ts";
import { MINUTE_MS, webhookHelpers } from "@stoa/service/test/webhooks.ts";
import { diagnoseSignature } from "@stoa/web/diagnose-signature";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { click, looks, openBrowser, openContext, sees } from "./browser.ts";
import { everyRun, test } from "./full-run.ts";
import { visitEach } from "./members.ts";
import { buildWebClient, mustBeSound, openWebPage, signIn, type WebPage } from "./web.ts";

const DAY_MS = 86_400_000;

/** A description and a comment that must be shown as text, in a place that wraps. */
const HOSTILE = `<img src=x onerror=alert(1)> 👩‍👩‍👧 עברית ${"wide".repeat(24)}`;

let market: Market;
let receiver: WebhookReceiver;
let browser: Browser;
let owner: Client;
const { deliver, happens, hasEndpoint, deliveriesOf } = webhookHelpers(
  () => market,
  () => receiver,
);
before(async () => {
  await buildWebClient();
  market = await openMarket();
  receiver = await startWebhookReceiver();
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await market.close();
  await receiver.close();
});
beforeEach(async () => {
  market.clock.now = new Date();
  receiver.answer = 200;
  owner = await market.createUser({ name: "Grace" });
});

async function openAsOwner(context: BrowserContext, path: string): Promise<WebPage> {
  await signIn(context, market.origin, await market.createSession(owner.userId));
  const watched = await openWebPage(context, market.origin);
  await watched.page.goto(market.origin + path);
  return watched;
}

/** Its duration is another cell: 200 ms. */
const responseCell = (page: Page, status: string) => page.getByRole("cell", { name: status, exact: true });

async function saveSecret(page: Page): Promise<string> {
  const secret = await page.locator("[data-secret]").innerText();
  await page.getByLabel("I saved the secret").check();
  await click(page, "Done");
  return secret;
}

everyRun("a new member: one click makes a webhook, and a test event arrives signed", async () => {
  const context = await openContext(browser);
  const watched = await openAsOwner(context, "/settings/webhooks");
  const { page } = watched;
  await sees(page, "No webhooks yet");
  await page.getByRole("button", { name: "Use the built-in inbox" }).dblclick();
  assert.match(await saveSecret(page), /^whsec_/);
  await page.getByRole("heading", { name: "Built-in inbox", level: 1 }).waitFor();
  await sees(page, "No deliveries yet");
  assert.equal((await owner.get("/v1/webhooks")).body.meta.total, 1);
  await click(page, "Send test event");
  await sees(page, "No attempt yet");
  await deliver();
  await sees(page, "Attempt 1 of 8 succeeded");
  await sees(page, "200 OK");
  await mustBeSound(watched, "webhook inbox delivery");
  const inbox = await context.newPage();
  await inbox.goto((await page.getByRole("link", { name: "Open the inbox" }).getAttribute("href"))!);
  await sees(inbox, "signature right");
  await context.close();
});

/** Minutes between the attempts of a delivery. */
const SCHEDULE = [0, 1, 5, 30, 120, 360, 720, 1_440];

/** Two events fail until their schedule ends, 45 hours later. */
async function exhaust(): Promise<void> {
  receiver.answer = 503;
  await happens(owner, "first");
  await happens(owner, "second");
  for (const minutes of SCHEDULE) {
    market.clock.forward(minutes * MINUTE_MS);
    await deliver();
  }
  market.clock.now = new Date();
}

test("a failing endpoint: created by the form, shows its attempts, and recovers after it is repaired", async () => {
  market.clock.forward(-2 * DAY_MS);
  const context = await openContext(browser);
  const watched = await openAsOwner(context, "/settings/webhooks/new");
  const { page } = watched;
  await page.getByLabel("Endpoint URL").fill(`${receiver.url}/hook`);
  await page.getByLabel("Description").fill("shop-backend");
  await page.getByLabel("Only these").check();
  await click(page, "Create webhook");
  await sees(page, "Choose at least one event type, or all.");
  await page.getByLabel("review.created", { exact: false }).first().check();
  await sees(page, "Sample payload of review.created");
  await click(page, "Create webhook");
  await saveSecret(page);
  await page.getByRole("heading", { name: "shop-backend", level: 1 }).waitFor();
  await exhaust();
  await page.reload();
  await sees(page, /No success since/);
  await page.getByRole("cell", { name: "8 of 8" }).first().waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await sees(page, "Attempt 8 of 8 failed");
  await page.getByRole("img", { name: "Attempts: 8 failed" }).waitFor();
  await sees(page, "503 Service Unavailable");
  await mustBeSound(watched, "webhook failing");

  receiver.answer = 200;
  await click(page, "Recover…");
  await sees(page, "2 deliveries since");
  await mustBeSound(watched, "webhook recover");
  await page.getByRole("dialog").getByRole("button", { name: "Show as code" }).click();
  await page.getByText(/"since":/).waitFor();
  await page.getByRole("button", { name: "Copy", exact: true }).click({ trial: true });
  await click(page, "Recover 2 deliveries");
  await runRecoveries();
  await sees(page, "2 deliveries are due again.");
  await deliver();
  await click(page, "Close");
  await sees(page, "Attempt 9 succeeded");
  await page.getByText("No success since").waitFor({ state: "detached" });

  const before = receiver.received.length;
  await page.keyboard.press("r");
  await sees(page, "Sent again");
  await deliver();
  await sees(page, "Attempt 10 succeeded");
  assert.equal(receiver.received.length, before + 1);
  await context.close();
});

async function runRecoveries(): Promise<void> {
  const open = "select id from webhook_recoveries where ended_at is null";
  await until("a recovery", async () => (await market.query(open)).rows.length > 0);
  for (const { id } of (await market.query(open)).rows)
    await runRecovery(market.service.ctx, id, new AbortController().signal);
}

test("the delivery log: filters by status, type and response, all in the address", async () => {
  const endpoint = await hasEndpoint(owner);
  for (const answer of [200, 503, 404]) {
    receiver.answer = answer;
    await happens(owner, `${answer}`);
    await deliver();
  }
  const context = await openContext(browser);
  const { page } = await openAsOwner(context, `/settings/webhooks/${endpoint.id}`);
  const responses = () => page.locator(".log tbody tr td:first-child").allInnerTexts();
  await responseCell(page, "404").waitFor();
  assert.deepEqual(await responses(), ["404", "503", "200"]);
  await page.getByLabel("HTTP status").selectOption("5xx");
  await responseCell(page, "404").waitFor({ state: "detached" });
  assert.deepEqual(await responses(), ["503"]);
  assert.equal(new URL(page.url()).search, "?response=5xx");
  await page.getByLabel("Event type").selectOption("test");
  await sees(page, "No delivery matches");
  await page.reload();
  await sees(page, "No delivery matches");
  await page.goBack();
  await responseCell(page, "503").waitFor();
  await page.getByLabel("Status", { exact: true }).selectOption("succeeded");
  await page.getByRole("link", { name: "Remove the filters" }).click();
  await responseCell(page, "404").waitFor();
  assert.equal(new URL(page.url()).search, "");
  await context.close();
});

test("a webhook: is edited, disabled with undo, rotated with a grace period, and deleted", async () => {
  const endpoint = await hasEndpoint(owner);
  const context = await openContext(browser);
  const watched = await openAsOwner(context, `/settings/webhooks/${endpoint.id}/edit`);
  const { page } = watched;
  await page.getByLabel("Description").fill("mine");
  await owner.patch(`/v1/webhooks/${endpoint.id}`, { description: "theirs" });
  await click(page, "Save");
  await sees(page, "Changed in another tab.");
  assert.equal(await page.getByLabel("Description").inputValue(), "mine");
  await click(page, "Keep mine");
  await page.getByRole("heading", { name: "mine", level: 1 }).waitFor();
  watched.complaints.length = 0; // The browser reports the 412.
  await page.getByRole("button", { name: "More for this webhook" }).click();
  await page.getByRole("menuitem", { name: "Disable" }).click();
  await sees(page, "You disabled this webhook.");
  await mustBeSound(watched, "webhook disabled");
  await click(page, "Undo");
  await page.getByText("You disabled this webhook.").waitFor({ state: "detached" });

  await click(page, "Rotate secret");
  await page.getByLabel("7 days.", { exact: false }).check();
  await mustBeSound(watched, "webhook rotate");
  await page.getByRole("dialog").getByRole("button", { name: "Rotate secret" }).dblclick();
  const secret = await saveSecret(page);
  assert.notEqual(secret, endpoint.secret);
  const { rows } = await market.query("select count(*)::int as n from webhook_secrets");
  assert.ok(rows[0].n >= 2);

  await page.getByRole("button", { name: "More for this webhook" }).click();
  await page.getByRole("menuitem", { name: "Delete…" }).click();
  await click(page, "Delete webhook");
  await sees(page, "No webhooks yet");
  await context.close();
});

suite("signature debugger", () => {
  test("a delivery: right with its secret, and says what is wrong with others", async () => {
    const endpoint = await hasEndpoint(owner);
    await happens(owner);
    await deliver();
    const [{ id }] = await deliveriesOf(owner, endpoint);
    const context = await openContext(browser);
    const watched = await openAsOwner(context, `/settings/webhooks/${endpoint.id}/deliveries/${id}`);
    const { page } = watched;
    await page.getByRole("tab", { name: "Signature" }).click();
    await page.getByRole("link", { name: "Check it in the signature debugger" }).click();
    const secret = page.getByLabel("Secret");
    const body = page.getByLabel("Body");
    const headers = page.getByLabel("Headers");
    const [sentBody, sentHeaders] = [await body.inputValue(), await headers.inputValue()];
    const calls = watched.calls.length;
    const sent: string[] = [];
    page.on("request", (request) =>
      sent.push(`${request.url()} ${JSON.stringify(request.headers())} ${request.postData()}`),
    );
    await secret.fill(endpoint.secret);
    await sees(page, "The signature is right. Your server accepts this delivery.");
    await mustBeSound(watched, "signature right");
    for (const [field, text, verdict] of [
      [secret, `whsec_${"A".repeat(43)}=`, "Another secret signed this delivery"],
      [secret, encodeURIComponent(endpoint.secret), "The secret is URL-encoded."],
      [secret, `"${endpoint.secret}"`, "The secret has quotes around it."],
      [secret, Buffer.from(endpoint.secret).toString("base64"), "The secret is base64-encoded once more."],
      [body, JSON.stringify(JSON.parse(sentBody), null, 2), "The body was parsed and written again"],
      [body, `${sentBody}\n`, "The body has spaces or line breaks around it"],
      [
        headers,
        sentHeaders.replace(/webhook-id.*\n/, ""),
        "webhook-id is missing. X-Service-Signature is right",
      ],
      [
        headers,
        sentHeaders.replace(/(webhook-timestamp: )\d+/, "$11700000000"),
        "webhook-timestamp was changed",
      ],
    ] as const) {
      await body.fill(sentBody);
      await headers.fill(sentHeaders);
      await secret.fill(endpoint.secret);
      await field.fill(text);
      await page.getByRole("status").filter({ hasText: verdict }).waitFor();
    }
    await mustBeSound(watched, "signature wrong");
    // The page may read its notifications meanwhile.
    const made = watched.calls.slice(calls).filter((call) => call !== "GET /notifications");
    assert.deepEqual(made, []);
    const forms = [endpoint.secret, encodeURIComponent(endpoint.secret)];
    assert.deepEqual(
      sent.filter((request) => forms.some((form) => request.includes(form))),
      [],
      "the secret is sent nowhere",
    );
    await context.close();
  });

  everyRun("diagnoseSignature: the contract's test vector, old and future timestamps", async () => {
    const secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    const body =
      '{"id":"evt_01J0000000000000000000TEST","type":"test","created":"2023-11-14T22:13:20.000Z","data":{"message":"hello"}}';
    const headers = [
      "Webhook-Id: evt_01J0000000000000000000TEST",
      "webhook-timestamp: 1700000000",
      "webhook-signature: v1,AAAA v1,z2zLu+r7j5ALObxy8Vel+ENEAK0QGxXj05Pj9sFfOyc=",
    ].join("\r\n");
    const at = async (ms: number) => diagnoseSignature({ headers, body, secret }, ms);
    const ok = await at(1_700_000_010_000);
    assert.deepEqual(
      [ok.isValid, ok.advice, ok.steps.map(({ state }) => state)],
      [true, null, ["good", "good", "good", "good", "good", "good"]],
    );
    const old = await at(1_700_000_301_000);
    assert.equal(old.isValid, false);
    assert.match(old.verdict, /signature is right, but .* the timestamp is 5 minutes old/);
    assert.match((await at(1_699_999_000_000)).verdict, /16 minutes in the future/);
    assert.equal((await at(1_700_000_300_000)).isValid, true);
  });
});

/** Live events are those that the delivery worker has numbered. */
async function happensNow(comment: string): Promise<void> {
  await happens(owner, comment);
  await deliver();
}

test("live events: appear by themselves, pause, go on without a gap, and filter by type", async () => {
  await happensNow("before");
  const context = await openContext(browser);
  const watched = await openAsOwner(context, "/settings/events");
  const { page } = watched;
  await sees(page, "before");
  await happensNow("while open");
  await sees(page, "while open");
  market.service.app.server.closeAllConnections();
  await happensNow("after the connection broke");
  await sees(page, "after the connection broke");
  watched.complaints.length = 0; // The browser reports the connection.
  await click(page, "Pause");
  await sees(page, "Paused");
  await happensNow("while paused");
  await page.getByRole("link", { name: "review.created" }).nth(1).click();
  await sees(page, '"while open"');
  assert.equal(await page.getByText("while paused").count(), 0);
  await mustBeSound(watched, "events paused");
  await click(page, "Resume");
  await sees(page, "while paused");
  assert.equal(await page.locator(".log tbody tr").count(), 4);
  await page.getByLabel("Text in the event").fill("WHILE");
  await page.locator(".log tbody tr").nth(2).waitFor({ state: "detached" });
  assert.equal(await page.locator(".log tbody tr").count(), 2);
  await page.getByLabel("Event type").selectOption("purchase.completed");
  await sees(page, "No event of the type purchase.completed");
  assert.equal(new URL(page.url()).search, "?type=purchase.completed");
  await context.close();
});

test("live events beside any page: the key ~ opens them, they stay over a change of the page, and Escape closes them", async () => {
  const context = await openContext(browser);
  const watched = await openAsOwner(context, "/library");
  const { page } = watched;
  await page.getByRole("heading", { name: "Library", exact: true }).waitFor();
  await page.keyboard.press("~");
  const drawer = page.getByRole("region", { name: "Live events" });
  await drawer.waitFor();
  await happensNow("beside the library");
  await drawer.getByText("beside the library").waitFor();
  await page.getByRole("link", { name: "Market", exact: true }).click();
  await page.waitForURL("**/search");
  await happensNow("beside the market");
  await drawer.getByText("beside the market").waitFor();
  await drawer.getByRole("button", { name: "Pause" }).click();
  await mustBeSound(watched, "live events beside a page");
  await drawer.getByLabel("Event type").selectOption("purchase.completed");
  await sees(page, "No events yet");
  await drawer.getByRole("button", { name: "Pause" }).press("Escape");
  await drawer.waitFor({ state: "detached" });
  await page.keyboard.press("~");
  await drawer.getByRole("link", { name: "review.created" }).first().click();
  await page.waitForURL("**/settings/events?open=*");
  await sees(page, '"beside the market"');
  await context.close();
});

test("request log: groups errors, shows one group, and keeps its filter in the address", async () => {
  for (let n = 0; n < 3; n++) await owner.get("/v1/products/prod_01h455vb4pex5vsknk084sn02q");
  await owner.get("/v1/account");
  await flushRequestLog(market.service.ctx);
  const context = await openContext(browser);
  const watched = await openAsOwner(context, "/settings/logs");
  const { page } = watched;
  const group = page.getByRole("listitem").filter({ hasText: "PRODUCT_NOT_FOUND" });
  await group.filter({ hasText: "3×" }).waitFor();
  await sees(page, "/v1/account");
  await group.getByRole("button", { name: "Show" }).click();
  await page.getByText("/v1/account").waitFor({ state: "detached" });
  assert.equal(await page.locator(".log tbody tr").count(), 3);
  const { searchParams } = new URL(page.url());
  assert.equal(searchParams.get("code"), "PRODUCT_NOT_FOUND");
  await page.reload();
  await page.locator(".log tbody tr").nth(2).waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await sees(page, "About PRODUCT_NOT_FOUND");
  await mustBeSound(watched, "request log error");
  await page.getByRole("button", { name: "Remove the filter PRODUCT_NOT_FOUND" }).click();
  await page.waitForURL((url) => !url.searchParams.has("code"));
  await context.close();
});

const WIDE_LISTS =
  "[...document.querySelectorAll('.list, .insp')].filter((list) => list.scrollWidth > list.clientWidth).length";

for (const { scheme, width } of looks) {
  test(`pages of webhooks, events and requests, ${width} pixels, ${scheme}: sound`, async () => {
    const url = `${receiver.url}/${"a-long-path".repeat(12)}`;
    const endpoint = await hasEndpoint(owner, { url, description: HOSTILE });
    for (const answer of [200, 404, 503]) {
      receiver.answer = (response) => response.writeHead(answer).end(`<script>${HOSTILE}</script>`);
      await happens(owner, HOSTILE);
      await deliver();
    }
    await owner.get(`/v1/products/${"x".repeat(280)}`, { "user-agent": HOSTILE.replace(/[^ -~]/g, "") });
    await flushRequestLog(market.service.ctx);
    const [{ id }] = await deliveriesOf(owner, endpoint);
    const path = `/settings/webhooks/${endpoint.id}`;
    const context = await openContext(browser, { scheme, width });
    await signIn(context, market.origin, await market.createSession(owner.userId));
    const pages = [
      ["/settings/webhooks", "Failing"],
      ["/settings/webhooks/new", "Sample payload of"],
      [path, "No success since"],
      [`${path}/deliveries/${id}`, "Attempt 1 of 8 failed"],
      [`${path}/edit`, "Edit webhook"],
      ["/settings/webhooks/debugger", "What it finds"],
      ["/settings/logs", "PRODUCT_NOT_FOUND"],
    ] as const;
    await visitEach(context, market, pages, async (watched, [address, text]) => {
      await sees(watched.page, text);
      await mustBeSound(watched, address.replace(endpoint.id, "id").replace(id, "id"));
      assert.equal(await watched.page.evaluate(WIDE_LISTS), 0, `${address}: a list is wider than its column`);
    });
    const watched = await openWebPage(context, market.origin);
    await watched.page.goto(`${market.origin}/settings/events`);
    await click(watched.page, "Pause");
    await watched.page.getByRole("link", { name: "review.created" }).first().click();
    await mustBeSound(watched, "settings events");
    await context.close();
  });
}

test("someone else's webhook and delivery: do not exist", async () => {
  const endpoint = await hasEndpoint(owner);
  await happens(owner);
  await deliver();
  const [{ id }] = await deliveriesOf(owner, endpoint);
  owner = await market.createUser();
  const own = await hasEndpoint(owner);
  const context = await openContext(browser);
  for (const [path, text] of [
    [`/${endpoint.id}`, "This page does not exist"],
    [`/${endpoint.id}/edit`, "This page does not exist"],
    [`/${own.id}/deliveries/${id}`, "No delivery to an endpoint of yours has this id."],
  ] as const) {
    const { page } = await openAsOwner(context, `/settings/webhooks${path}`);
    await sees(page, text);
  }
  await context.close();
});

test("a session that is too old, or has ended: the form keeps its text", async () => {
  const context = await openContext(browser);
  const { page } = await openAsOwner(context, "/settings/webhooks/new");
  await page.getByLabel("Endpoint URL").fill(`${receiver.url}/kept`);
  market.clock.forward(20 * MINUTE_MS);
  await click(page, "Create webhook");
  await sees(page, "Sign in again to continue.");
  await context.clearCookies();
  await click(page, "Create webhook");
  await sees(page, "Your session ended.");
  await signIn(context, market.origin, await market.createSession(owner.userId));
  await click(page, "Create webhook");
  await saveSecret(page);
  await sees(page, `${receiver.url}/kept`);
  await context.close();
});

test("a proxy that refuses: old rows stay, and the log goes on by itself", async () => {
  const endpoint = await hasEndpoint(owner);
  await happens(owner);
  await deliver();
  const context = await openContext(browser);
  const { page } = await openAsOwner(context, `/settings/webhooks/${endpoint.id}`);
  await responseCell(page, "200").waitFor();
  await page.route("**/v1/webhooks/*/deliveries*", (route) => route.fulfill({ status: 403, body: "" }));
  await page.getByRole("alert").filter({ hasText: "Try again" }).waitFor();
  assert.equal(await responseCell(page, "200").count(), 1);
  await page.unroute("**/v1/webhooks/*/deliveries*");
  await page.getByRole("alert").filter({ hasText: "Try again" }).waitFor({ state: "detached" });
  await context.close();
});

test("the palette: a pasted id of a delivery or an event leads to it", async () => {
  const endpoint = await hasEndpoint(owner);
  await happens(owner, "pasted");
  await deliver();
  const [{ id, eventId }] = await deliveriesOf(owner, endpoint);
  const context = await openContext(browser);
  const { page } = await openAsOwner(context, "/settings/webhooks");
  await page.getByRole("heading", { name: "Webhooks", level: 1 }).waitFor();
  for (const [pasted, text] of [
    [id, "Attempt 1 of 8 succeeded"],
    [eventId, '"pasted"'],
  ] as const) {
    await page.keyboard.press("Control+k");
    await page.getByLabel("Page, product or id").fill(pasted);
    await page.keyboard.press("Enter");
    await sees(page, text);
  }
  await context.close();
});
