import assert from "node:assert/strict";
import { after, before, suite } from "node:test";
import { buyProduct, createProduct } from "@stoa/service/test/factories.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import type { Browser } from "playwright-core";
import { looks, openBrowser, openContext, sees } from "./browser.ts";
import { everyRun, test } from "./full-run.ts";
import { visitEach } from "./members.ts";
import { buildWebClient, mustBeSound, openWebPage, signIn } from "./web.ts";

/** What a seller may write to harm readers, or by accident. */
const HOSTILE = {
  title: "<script>alert(1)</script> 👩‍👩‍👧 עברית",
  description:
    "</script><script>alert(1)</script> [click](javascript:alert(1)) ![pixel](https://evil.example/pixel.png) <img src=x onerror=alert(1)>\n\n# A heading\n\n" +
    "averylongwordwithoutspaces".repeat(20),
};

let market: Market;
let browser: Browser;
let seller: Client;
let buyer: Client;
let hostile: string;
let poet: string;
before(async () => {
  await buildWebClient();
  market = await openMarket();
  seller = await market.createUser({ name: "The Quiet Editor" });
  buyer = await market.createUser({ name: "Ada" });
  hostile = await createProduct(seller, HOSTILE);
  poet = await createProduct(seller, { title: "Poet", description: "Three lines about anything." });
  for (let n = 0; n < 26; n++) await createProduct(seller, { title: `Letter ${n}` });
  await buyProduct(buyer, poet);
  const review = { rating: 5, comment: "It never changed a number.\n\nTwice." };
  assert.equal((await buyer.post(`/v1/products/${poet}/reviews`, review)).status, 201);
  browser = await openBrowser();
  await createHandle();
});

/** The seller's page: a handle, a biography and links. */
async function createHandle(): Promise<void> {
  const session = await market.createSession(seller.userId);
  const profile = {
    handle: "quiet-editor",
    bio: "Twenty years of other people's commas.",
    links: [{ label: "Site", url: "https://editor.example/" }],
  };
  const { status, text } = await session.patch("/v1/account", profile);
  assert.equal(status, 200, text);
}
after(async () => {
  await browser?.close();
  await market.close();
});

const htmlOf = async (path: string) => {
  const response = await fetch(market.origin + path, { redirect: "manual" });
  return { status: response.status, headers: response.headers, text: await response.text() };
};

suite("the HTML of public pages, without scripts", () => {
  everyRun("GET /p/{slug}-{id}: title, description, price, reviews, Open Graph and JSON-LD", async () => {
    const { status, text } = await htmlOf(`/p/poet-${poet}`);
    assert.equal(status, 200);
    for (const part of [
      "<title>Poet – Stoa</title>",
      '<meta name="description" content="Three lines about anything.">',
      `<link rel="canonical" href="${market.origin}/p/poet-${poet}">`,
      'property="og:title" content="Poet"',
      '"@type":"Offer"',
      "It never changed a number.",
    ])
      assert.ok(text.includes(part), part);
  });

  everyRun("an old slug: redirects to the present address", async () => {
    for (const path of [`/p/old-title-${poet}`, `/p/${poet}`]) {
      const { status, headers } = await htmlOf(path);
      assert.deepEqual([status, headers.get("location")], [301, `/p/poet-${poet}`]);
    }
  });

  everyRun("a product that does not exist: 404", async () => {
    for (const path of ["/p/x", "/p/x-prod_01h455vb4pex5vsknk084sn02q", "/p/%E0%A4%A"]) {
      const { status } = await htmlOf(path);
      assert.ok(status === 404 || status === 400, path);
    }
  });

  everyRun("GET /u/{handle}: name, biography, products, JSON-LD; other spellings redirect", async () => {
    const { status, text } = await htmlOf("/u/quiet-editor");
    assert.equal(status, 200);
    for (const part of [
      "<title>The Quiet Editor – Stoa</title>",
      "Twenty years of other people&#39;s commas.",
      '"@type":"ProfilePage"',
      `/p/poet-${poet}`,
    ])
      assert.ok(text.includes(part), part);
    const { author } = (await buyer.get(`/v1/products/${poet}`)).body.data;
    for (const other of ["/u/Quiet-Editor", `/u/${author.id}`]) {
      const { status, headers } = await htmlOf(other);
      assert.deepEqual([status, headers.get("location")], [301, "/u/quiet-editor"], other);
    }
    assert.equal((await htmlOf("/u/nobody")).status, 404);
  });

  everyRun("hostile texts: no script and no element of them", async () => {
    for (const path of ["/", "/search?q=script", `/p/x-${hostile}`]) {
      const location = (await htmlOf(path)).headers.get("location");
      const { text } = await htmlOf(location ?? path);
      assert.ok(!text.includes("<script>alert"), path);
      assert.ok(!text.includes("<img src=x"), path);
    }
  });

  everyRun("a page: compressed for visitors, and not for members, whose data stand in it", async () => {
    const encodingFor = async (cookie: string) => {
      const headers = { cookie, "accept-encoding": "gzip" };
      return (await fetch(`${market.origin}/`, { headers })).headers.get("content-encoding");
    };
    assert.equal(await encodingFor(""), "gzip");
    const { key } = await market.createSession(buyer.userId);
    assert.equal(await encodingFor(`__Host-session=${key}`), null);
  });

  everyRun("files of the client: compressed, cached for a year", async () => {
    const { text } = await htmlOf("/");
    const [, script] = /src="(\/client\/[^"]+\.js)"/.exec(text) ?? [];
    const response = await fetch(market.origin + script, { headers: { "accept-encoding": "br" } });
    assert.equal(response.headers.get("content-encoding"), "br");
    assert.equal(response.headers.get("cache-control"), "public, max-age=31536000, immutable");
    assert.equal((await fetch(`${market.origin}/client/no-such-file.js`)).status, 404);
  });
});

for (const { scheme, width } of looks) {
  everyRun(`the market, ${width} pixels, ${scheme}: sound, and first views send no request`, async () => {
    const context = await openContext(browser, { scheme, width });
    const pages = [
      ["/", "Trending this week"],
      ["/search?q=letter", "26 results"],
      ["/search?view=list&q=letter", "26 results"],
      ["/search?q=xylophone", "Nothing matches"],
      [`/p/poet-${poet}`, "It never changed a number."],
      [`/p/${hostile}`, "A heading"],
      ["/u/quiet-editor", "Twenty years"],
    ] as const;
    await visitEach(context, market, pages, async (watched, [path, text]) => {
      await sees(watched.page, text);
      await mustBeSound(watched, path);
      assert.deepEqual(watched.calls, [], path);
    });
    await context.close();
  });
}

everyRun("a visitor searches, opens a product and goes back: each state is in the address", async () => {
  const context = await openContext(browser);
  const watched = await openWebPage(context, market.origin);
  const { page } = watched;
  await page.goto(market.origin);
  await page.getByLabel("Search", { exact: true }).fill("letter");
  await page.keyboard.press("Enter");
  await sees(page, "26 results");
  assert.equal(new URL(page.url()).search, "?q=letter");
  await page.getByRole("link", { name: "Page 2" }).click();
  await page.getByRole("link", { name: "Page 1" }).waitFor();
  assert.equal(new URL(page.url()).search, "?q=letter&page=2");
  await page.goBack();
  await page.getByRole("link", { name: "Page 2" }).waitFor();
  await page.getByRole("link", { name: /Letter 3/ }).click();
  await page.getByRole("heading", { name: "Letter 3", level: 1 }).waitFor();
  await sees(page, "No hidden characters");
  await page.goBack();
  await sees(page, "26 results");
  await mustBeSound(watched, "search");
  const field = page.getByLabel("Search products");
  for (const digits of ["123", "1e3", "true"]) {
    await field.fill(digits);
    await field.press("Enter");
    await sees(page, `Nothing matches “${digits}”`);
    assert.equal(new URL(page.url()).search, `?q=${digits}`);
  }
  await context.close();
});

test("a member: sees the account, and a product that is owned has a button to run it", async () => {
  const context = await openContext(browser);
  await signIn(context, market.origin, await market.createSession(buyer.userId));
  const watched = await openWebPage(context, market.origin);
  await watched.page.goto(`${market.origin}/p/poet-${poet}`);
  await watched.page.getByRole("link", { name: "Run", exact: true }).first().waitFor();
  await watched.page.getByRole("button", { name: "Account of Ada" }).click();
  await watched.page.getByRole("menuitem", { name: "Account" }).waitFor();
  await mustBeSound(watched, "product of a member");
  await context.close();
});

test("a member puts a product on the wishlist, takes it off and takes that back; reports a product", async () => {
  const context = await openContext(browser);
  await signIn(context, market.origin, await market.createSession(buyer.userId));
  const watched = await openWebPage(context, market.origin);
  const { page } = watched;
  const listed = await createProduct(seller, { title: "Listed" });
  await page.goto(`${market.origin}/p/${listed}`);
  await page.getByRole("button", { name: "On your wishlist", pressed: false }).click();
  await page.getByRole("button", { name: "On your wishlist", pressed: true }).waitFor();
  await page.getByRole("button", { name: "Report" }).click();
  await page.getByRole("radio", { name: "It is spam" }).check();
  await mustBeSound(watched, "report");
  await page.getByRole("button", { name: "Send report" }).click();
  await sees(page, "Your report is with the moderators.");
  await page.goto(`${market.origin}/wishlist`);
  await page.getByRole("link", { name: /Listed/ }).waitFor();
  await mustBeSound(watched, "wishlist");
  await page.getByRole("button", { name: "Remove" }).click();
  await sees(page, "Nothing here yet");
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByRole("link", { name: /Listed/ }).waitFor();
  await context.close();
});

test("keyboard: the palette finds pages, products and pasted ids; results follow what is typed; ? lists the keys", async () => {
  const context = await openContext(browser);
  const watched = await openWebPage(context, market.origin);
  const { page } = watched;
  await page.goto(market.origin);
  await page.getByLabel("Search products").waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill("poe");
  await page.getByRole("option", { name: /^Poet/ }).waitFor();
  await mustBeSound(watched, "palette");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Poet", level: 1 }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill(hostile);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: /alert/, level: 1 }).waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  await mustBeSound(watched, "shortcuts");
  await page.keyboard.press("Escape");
  await page.keyboard.press("g");
  await page.keyboard.press("m");
  await page.getByRole("heading", { name: "Search products", level: 1 }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("lettr 3");
  // A pause while it is typed searches its beginning first.
  await page.waitForURL((url) => url.search === "?q=lettr+3");
  await sees(page, "Showing results for");
  await context.close();
});

/** Presses ? in the page, in the same task in which the search field of the header appears. */
const PRESS_AT_ONCE = `new MutationObserver((_records, observer) => {
  if (!document.querySelector(".find input")) return;
  observer.disconnect();
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "?" }));
}).observe(document, { childList: true, subtree: true });`;

test("keyboard: a key that is pressed in the moment in which the page appears works", async () => {
  const context = await openContext(browser);
  await context.addInitScript({ content: PRESS_AT_ONCE });
  const { page } = await openWebPage(context, market.origin);
  await page.goto(market.origin);
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor({ timeout: 10_000 });
  await context.close();
});

test("first steps: a visitor signs in first, a member sees what is done, and the list can be hidden", async () => {
  const context = await openContext(browser);
  const watched = await openWebPage(context, market.origin);
  const { page } = watched;
  await page.goto(market.origin);
  const steps = page.getByRole("region", { name: "First steps" });
  await steps.getByRole("link", { name: "Sign in" }).waitFor();
  await signIn(context, market.origin, await market.createSession(buyer.userId));
  await page.reload();
  await steps.getByText("Get a product, done").waitFor();
  await steps.getByRole("link", { name: "Add a provider key" }).waitFor();
  await mustBeSound(watched, "first steps");
  await steps.getByRole("button", { name: "Use the API" }).click();
  await steps.getByText("Create an API key, done").waitFor();
  await steps.getByRole("button", { name: "Hide the first steps" }).click();
  await steps.waitFor({ state: "detached" });
  await page.reload();
  await sees(page, "Trending this week");
  assert.equal(await steps.count(), 0);
  await context.close();
});

test("the API reference fills in a test key of the member; visitors sign in first", async () => {
  const context = await openContext(browser);
  const { page, complaints } = await openWebPage(context, market.origin);
  // A visitor who has looked around has a cookie of a guest.
  await page.goto(market.origin);
  await page.goto(`${market.origin}/docs`);
  await page.getByRole("button", { name: "Fill in a test key" }).click();
  await page.waitForURL("**/auth/sign-in?returnTo=%2Fdocs");
  complaints.length = 0; // The browser logs the 401.
  await signIn(context, market.origin, await market.createSession(buyer.userId));
  await page.goto(`${market.origin}/docs`);
  await page.getByRole("button", { name: "Fill in a test key" }).click();
  await sees(page, "A key is filled in.");
  const operation = page.locator(".opblock-get").first();
  await operation.locator(".opblock-summary-control").click();
  await operation.getByRole("button", { name: /^execute$/i }).click();
  await operation.locator(".live-responses-table .response-col_status", { hasText: "200" }).first().waitFor();
  assert.deepEqual(complaints, []);
  await context.close();
});

test("reduced motion: nothing moves, and 200 % zoom: nothing overflows", async () => {
  const context = await openContext(browser, { width: 640 });
  await signIn(context, market.origin, await market.createSession(buyer.userId));
  const watched = await openWebPage(context, market.origin);
  const { page } = watched;
  await page.emulateMedia({ reducedMotion: "reduce" });
  for (const path of ["/", "/search?q=letter", `/p/${poet}`, "/library", "/account", "/settings/webhooks"]) {
    await page.goto(market.origin + path);
    await page.getByRole("button", { name: "Account of Ada" }).waitFor();
    await mustBeSound(watched, `zoomed ${path}`);
    const moving = await page.evaluate(
      "document.getAnimations().map((animation) => animation.animationName)",
    );
    assert.deepEqual(moving, [], path);
  }
  await context.close();
});
