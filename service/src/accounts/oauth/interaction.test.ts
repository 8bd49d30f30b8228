import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import { Browser } from "../../../test/browser.ts";
import { emailsToUser } from "../../../test/emails.ts";
import { assertError, type Client, type Market } from "../../../test/market.ts";
import {
  authorizeUrl,
  consent,
  createOAuthClient,
  newVerifier,
  type OAuthClient,
  openOAuthMarket,
  postTokenRequest,
  redeem,
  registerPublicClient,
  signedInBrowser,
} from "../../../test/oauth.ts";
import { toId } from "../../core/ids.ts";

let market: Market;
let alice: Client;
let bob: Client;
let app: OAuthClient;
before(async () => {
  market = await openOAuthMarket();
  alice = await market.createUser({ name: "Alice" });
  bob = await market.createUser({ name: "Bob" });
  app = await createOAuthClient(market, await market.createUser(), { name: "Sync & Co" });
});
after(() => market.close());

const ask = (more = {}, client = app) => authorizeUrl(market, client, { verifier: newVerifier(), ...more });
const quiet = { prompt: undefined, scope: "openid products:read" };
const sessionOf = async ({ userId }: Client) => (await market.createSession(userId)).key;

/** Returns the `sub` of the code's tokens, the error, or the path of the redirect. */
async function subjectOfCode(browser: Browser, more: object = {}): Promise<string> {
  const verifier = newVerifier();
  const { url } = await browser.open(authorizeUrl(market, app, { ...quiet, verifier, ...more }));
  const code = url.searchParams.get("code");
  if (code === null) return url.searchParams.get("error") ?? url.pathname;
  const { body } = await redeem(market, app, code, verifier);
  return JSON.parse(Buffer.from(body.id_token.split(".")[1], "base64url").toString()).sub;
}

test("no session: redirected to sign-in, then back to the same request", async () => {
  const browser = new Browser(market.origin);
  const { url } = await browser.open(ask());
  assert.equal(url.pathname, "/auth/sign-in");
  const returnTo = url.searchParams.get("returnTo")!;
  assert.match(returnTo, /^\/oauth\/interaction\/[\w-]+$/);
  const page = await browser.signIn(await sessionOf(alice)).open(returnTo);
  assert.match(page.text, /Allow Sync &amp; Co\?/);
});

test("the consent page: names client, account, scopes in words and the host of the redirect", async () => {
  const page = await (await signedInBrowser(market, alice.userId)).open(
    ask({ scope: "products:read ai:execute" }),
  );
  assert.match(page.text, /<strong>Alice<\/strong>/);
  assert.match(page.text, /<strong>app\.example<\/strong>/);
  assert.match(page.text, /Run prompts with your stored provider keys/);
  assert.match(page.text, /This application's name is not verified/);
  assert.doesNotMatch(page.text, /<script|<style|style=|onclick/);
  const policy = page.headers.get("content-security-policy")!;
  assert.match(policy, /form-action 'self' https:\/\/app\.example;/);
  assert.match(policy, /frame-ancestors 'none'/);
  assert.equal(page.headers.get("cache-control"), "no-store");
});

test("a client with a secret, allowed before: asked again only for more scopes", async () => {
  const browser = await signedInBrowser(market, alice.userId);
  await consent(browser, ask({ ...quiet, prompt: "consent" }));
  assert.equal(await subjectOfCode(browser), toId("usr", alice.userId));
  assert.equal(
    await subjectOfCode(await signedInBrowser(market, alice.userId)),
    toId("usr", alice.userId),
    "nor elsewhere",
  );
  const page = await browser.open(ask({ ...quiet, scope: "openid products:read ai:execute" }));
  assert.match(page.text, /Allow Sync/);
});

test("a self-registered client: asks for consent each time", async () => {
  const desk = await registerPublicClient(market);
  const browser = await signedInBrowser(market, alice.userId);
  for (let times = 0; times < 2; times++) await consent(browser, ask(quiet, desk));
  const page = await browser.open(ask(quiet, desk));
  assert.match(page.text, /Allow Desk\?/);
  const { url } = await browser.open(ask({ ...quiet, prompt: "none" }, desk));
  assert.equal(url.searchParams.get("error"), "consent_required");
});

test("Bob signs in after Alice in one browser: no client gets a code for Alice", async () => {
  const browser = await signedInBrowser(market, alice.userId);
  await consent(browser, ask({ ...quiet, prompt: "consent" }));
  assert.equal(await subjectOfCode(browser), toId("usr", alice.userId));

  browser.signIn(await sessionOf(bob));
  const page = await browser.open(ask(quiet));
  assert.match(page.text, /<strong>Bob<\/strong>/, "he has allowed nothing yet");
  await browser.press(page, "decision", "allow");
  assert.equal(await subjectOfCode(browser), toId("usr", bob.userId));
});

test("Alice signed out: no client gets a code in her browser", async () => {
  const browser = await signedInBrowser(market, alice.userId);
  await consent(browser, ask({ ...quiet, prompt: "consent" }));
  await market.query("update sessions set ended_at = now() where user_id = $1", [alice.userId]);
  assert.equal(await subjectOfCode(browser, { prompt: "none" }), "login_required");
  assert.equal(await subjectOfCode(browser), "/auth/sign-in");
});

test("a consent page that Alice left open: Bob cannot submit it", async () => {
  const browser = await signedInBrowser(market, alice.userId);
  const page = await browser.open(ask());
  browser.signIn(await sessionOf(bob));
  assert.equal((await browser.press(page, "decision", "allow")).status, 409);
  assert.equal((await browser.open(page.url)).status, 409);
});

test("a consent page: works only in the browser that opened it", async () => {
  const page = await (await signedInBrowser(market, alice.userId)).open(ask());
  const other = await signedInBrowser(market, alice.userId);
  assert.equal((await other.open(page.url)).status, 409);
  assert.equal((await other.press(page, "decision", "allow")).status, 409);
});

test("a consent form posted by another site: refused", async () => {
  const browser = await signedInBrowser(market, alice.userId);
  const page = await browser.open(ask());
  const allow = new URLSearchParams({ decision: "allow" });
  for (const headers of [
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
    { "sec-fetch-site": "none" },
  ] as Record<string, string>[]) {
    const reply = await browser.post(page.url, allow, headers);
    assert.equal(`${reply.status} ${reply.url.origin}`, `403 ${market.origin}`, JSON.stringify(headers));
  }
  const bare = await market.as(null).request("POST", page.url.pathname, { body: allow });
  assertError(bare, 403, "UNAUTHORIZED");
});

const grantsOf = async ({ id }: OAuthClient) =>
  (await market.query("select 1 from oauth_grants where client_id = $1", [id])).rows.length;

test("parallel submits of one consent page: one grant", async () => {
  const client = await createOAuthClient(market, bob);
  const browser = await signedInBrowser(market, alice.userId);
  const page = await browser.open(ask({}, client));
  const clicks = await Promise.all([1, 2, 3, 4].map(() => browser.press(page, "decision", "allow")));
  // 0 is a redirect. 400 and 409: a parallel click finished or removed the interaction first.
  for (const { status } of clicks) assert.ok([0, 400, 409].includes(status), String(status));
  assert.equal(await grantsOf(client), 1);
});

test("parallel submits in several tabs: one grant", async () => {
  const client = await createOAuthClient(market, bob);
  const browser = await signedInBrowser(market, alice.userId);
  const tabs = [await browser.open(ask({}, client)), await browser.open(ask({}, client))];
  for (const tab of tabs) assert.equal((await browser.press(tab, "decision", "allow")).status, 0);
  assert.equal(await grantsOf(client), 1);
});

test("a consent page, its client deleted meanwhile: says that the request is over", async () => {
  const client = await createOAuthClient(market, bob);
  const browser = await signedInBrowser(market, alice.userId);
  const page = await browser.open(ask({}, client));
  await (await market.createSession(bob.userId)).delete(`/v1/oauth-clients/${client.id}`);
  assert.equal((await browser.open(page.url)).status, 409);
  assert.equal((await browser.press(page, "decision", "allow")).status, 409);
});

test('a consent form with neither "allow" nor "deny": denied', async () => {
  const browser = await signedInBrowser(market, alice.userId);
  const page = await browser.open(ask());
  const { url } = await browser.post(page.url, new URLSearchParams({ decision: "maybe" }));
  assert.equal(url.searchParams.get("error"), "access_denied");
});

test("consent: the audit log has user, client, scopes and origin", async () => {
  const carol = await market.createUser();
  await consent(await signedInBrowser(market, carol.userId), ask({ scope: "ai:execute" }));
  const { rows } = await market.query(
    "select * from audit_log where actor_id = $1 and action like 'oauth%'",
    [carol.userId],
  );
  assert.equal(rows.length, 1);
  assert.equal(rows[0].action, "oauth_grant.given");
  assert.equal(rows[0].ip, "127.0.0.1");
  assert.deepEqual(rows[0].details, {
    clientId: app.id,
    resources: { [`${market.origin}/v1`]: "ai:execute" },
  });
});

const signedInAgo = (seconds: number) =>
  market.query("update sessions set created_at = now() - make_interval(secs => $1)", [seconds]);

test("prompt=login asks for a new sign-in, max_age for a recent one", async () => {
  const browser = await signedInBrowser(market, alice.userId);
  await signedInAgo(3_600);
  for (const more of [{ prompt: "login" }, { max_age: "3500" }]) {
    const { url } = await browser.open(ask({ ...quiet, ...more }));
    assert.equal(url.pathname, "/auth/sign-in", JSON.stringify(more));
    const page = await (await browserWith(browser)).open(url.searchParams.get("returnTo")!);
    assert.doesNotMatch(page.url.pathname, /sign-in/);
    await signedInAgo(3_600);
  }
  assert.doesNotMatch((await browser.open(ask({ ...quiet, max_age: "3700" }))).url.pathname, /sign-in/);
});

const browserWith = async (browser: Browser) => browser.signIn(await sessionOf(alice));

test("an id_token_hint of another account: the client gets an error", async () => {
  const browser = await signedInBrowser(market, alice.userId);
  const verifier = newVerifier();
  const answer = await consent(browser, ask({ scope: "openid", prompt: "consent", verifier }));
  const { body } = await redeem(market, app, answer.get("code")!, verifier);
  const bobs = await signedInBrowser(market, bob.userId);
  const { url } = await bobs.open(ask({ ...quiet, id_token_hint: body.id_token }));
  assert.equal(url.searchParams.get("error"), "login_required");
});

test("a self-submitting form: its policy allows its one script only", async () => {
  const browser = await signedInBrowser(market, alice.userId);
  const page = await browser.open(ask({ response_mode: "form_post" }));
  const end = await browser.press(page, "decision", "allow");
  const [, script = ""] = /<script>([\s\S]*?)<\/script>/.exec(end.text)!;
  const digest = createHash("sha256").update(script).digest("base64");
  assert.ok(end.headers.get("content-security-policy")?.includes(`script-src 'self' 'sha256-${digest}'`));
  assert.match(end.text, /action="https:\/\/app\.example\/callback"/);
});

test("a logout by a client: asks the user, then ends the session here too", async () => {
  const client = await createOAuthClient(market, bob, {
    postLogoutRedirectUris: ["https://app.example/bye"],
  });
  const dave = await market.createUser();
  const browser = await signedInBrowser(market, dave.userId);
  await consent(browser, ask({}, client));
  const signedIn = () => market.as(browser.cookie("__Host-session") ?? "gone").get("/v1/account/grants");
  const logout = new URL("/oauth/logout", market.origin);
  logout.search = String(
    new URLSearchParams({
      client_id: client.id,
      post_logout_redirect_uri: "https://app.example/bye",
      state: "s2",
    }),
  );

  const page = await browser.open(logout);
  assert.match(page.text, /Sign out of Stoa\?/);
  assert.doesNotMatch(page.text, /<script/);
  assert.match(page.headers.get("content-security-policy")!, /form-action 'self' https:\/\/app\.example/);
  assert.equal((await signedIn()).status, 200, "a link alone ends nothing");

  const token = browser.cookie("__Host-session")!;
  const { url } = await browser.press(page, "logout", "yes");
  assert.equal(url.href, "https://app.example/bye?state=s2");
  assert.equal(browser.cookie("__Host-session"), undefined);
  assertError(await market.as(token).get("/v1/account/grants"), 401, "INVALID_API_KEY");
  const { rows } = await market.query("select action from audit_log where actor_id = $1 order by id desc", [
    dave.userId,
  ]);
  assert.equal(rows[0].action, "session.ended");
});

test("post_logout_redirect_uri that the client did not register: no redirect", async () => {
  const browser = await signedInBrowser(market, alice.userId);
  const evil = `/oauth/logout?client_id=${app.id}&post_logout_redirect_uri=https://evil.example/`;
  const page = await browser.open(evil);
  assert.equal(page.status, 400);
  assert.match(page.text, /invalid_request/);
});

test("hostile values in an authorization request: echoed unchanged or refused, never a fault", async () => {
  const browser = await signedInBrowser(market, alice.userId);
  const odd = "\0 \ud83d\ude00 \u202e'; drop table users;-- {{x}} <b>";
  const answer = await consent(browser, ask({ scope: "openid", state: odd, nonce: odd }));
  assert.equal(answer.get("state"), odd);
  for (const more of [
    { client_id: odd },
    { scope: odd },
    { redirect_uri: odd },
    { resource: odd },
    { prompt: odd },
  ]) {
    const { url, status } = await browser.open(ask(more));
    assert.ok(status === 400 || url.searchParams.get("error"), `${JSON.stringify(more)} ${status} ${url}`);
    assert.notEqual(url.searchParams.get("error"), "server_error");
  }
  for (const fields of [
    { grant_type: "authorization_code", code: odd, redirect_uri: odd, code_verifier: odd },
    { grant_type: "refresh_token", refresh_token: odd },
    { grant_type: "client_credentials", scope: odd, resource: odd },
    { grant_type: odd },
  ] as Record<string, string>[])
    for (const client of [app, { ...app, id: odd }, { ...app, id: odd, secret: null }])
      assert.ok(
        [400, 401].includes((await postTokenRequest(market, client, fields)).status),
        JSON.stringify(fields),
      );
});

test("offline_access with a session of 15 minutes ago: a new sign-in, then an email about the grant", async () => {
  const user = await market.createUser();
  const browser = await signedInBrowser(market, user.userId);
  await market.query(
    "update sessions set created_at = created_at - interval '15 minutes' where user_id = $1",
    [user.userId],
  );
  const { url } = await browser.open(ask());
  assert.equal(url.pathname, "/auth/sign-in");
  assert.equal(url.searchParams.get("problem"), "STALE_SESSION");
  const short = await browser.open(ask({ scope: "products:read" }));
  assert.match(short.text, /Allow Sync &amp; Co\?/);

  browser.signIn((await market.createSession(user.userId)).key);
  const page = await browser.open(url.searchParams.get("returnTo")!);
  assert.match(page.text, /Stay connected/);
  const { url: end } = await browser.press(page, "decision", "allow");
  assert.ok(end.searchParams.has("code"), String(end));
  const messages = await emailsToUser(market, user.userId);
  assert.deepEqual(
    messages.map(({ subject }) => subject),
    ["An application may act for you"],
  );
  assert.match(messages[0]!.text, /Sync & Co[\s\S]*app\.example[\s\S]*offline_access/);
  await consent(browser, ask());
  assert.equal((await emailsToUser(market, user.userId)).length, 1, "the same again is no news");
});

test("offline_access without prompt=consent: the consent page asks; prompt=none cannot ask", async () => {
  const browser = await signedInBrowser(market, (await market.createUser()).userId);
  for (const prompt of [undefined, ""]) {
    const verifier = newVerifier();
    const page = await browser.open(ask({ verifier, prompt }));
    assert.match(page.text, /Stay connected/);
    const { url } = await browser.press(page, "decision", "allow");
    const { body } = await redeem(market, app, url.searchParams.get("code")!, verifier);
    assert.ok(body.refresh_token, JSON.stringify(body));
  }
  const verifier = newVerifier();
  const { url } = await browser.open(ask({ verifier, prompt: "none" }));
  const { body } = await redeem(market, app, url.searchParams.get("code")!, verifier);
  assert.equal(body.refresh_token, undefined);
});
