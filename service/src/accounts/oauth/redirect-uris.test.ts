import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, test } from "node:test";
import fc from "fast-check";
import type { Browser } from "../../../test/browser.ts";
import { runs } from "../../../test/full-size.ts";
import type { Client, Market } from "../../../test/market.ts";
import {
  assertOAuthError,
  authorizeUrl,
  consent,
  createOAuthClient,
  newVerifier,
  type OAuthClient,
  openOAuthMarket,
  redeem,
  register,
  registerPublicClient,
  signedInBrowser,
} from "../../../test/oauth.ts";

let market: Market;
let alice: Client;
let app: OAuthClient;
let browser: Browser;
before(async () => {
  market = await openOAuthMarket();
  alice = await market.createUser();
  app = await createOAuthClient(market, alice, { redirectUris: ["https://app.example/callback?from=stoa"] });
  browser = await signedInBrowser(market, alice.userId);
});
after(() => market.close());

const open = (client: OAuthClient, redirectUri: string) =>
  browser.open(authorizeUrl(market, client, { verifier: newVerifier(), redirect_uri: redirectUri }));

async function assertStays(client: OAuthClient, redirectUri: string) {
  const page = await open(client, redirectUri);
  assert.equal(page.status, 400, redirectUri);
  assert.equal(page.url.origin, market.origin, redirectUri);
  assert.match(page.text, /invalid_redirect_uri/, redirectUri);
}

test("a redirect URI that differs from the registered one: an error page, no redirect", async () => {
  for (const nearMiss of [
    "https://app.example/callback",
    "https://app.example/callback?from=stoa&more=1",
    "https://app.example/callback?from=stoa&",
    "https://app.example/callback/?from=stoa",
    "https://app.example/callback/../callback?from=stoa",
    "https://app.example/Callback?from=stoa",
    "https://APP.example/callback?from=stoa",
    "HTTPS://app.example/callback?from=stoa",
    "http://app.example/callback?from=stoa",
    "https://app.example:443/callback?from=stoa",
    "https://app.example:8443/callback?from=stoa",
    "https://sub.app.example/callback?from=stoa",
    "https://app.example.evil.example/callback?from=stoa",
    "https://evilapp.example/callback?from=stoa",
    "https://user@app.example/callback?from=stoa",
    "https://app.example@evil.example/callback?from=stoa",
    "https://app.example/callback?from=stoa#fragment",
    "https://app.example/%63allback?from=stoa",
    "https://app.example/callback%3Ffrom=stoa",
    "https://app.example\\@evil.example/callback?from=stoa",
    "//app.example/callback?from=stoa",
    "/callback?from=stoa",
    " https://app.example/callback?from=stoa",
    "javascript:alert(1)",
  ]) {
    await assertStays(app, nearMiss);
  }
});

test("a redirect URI with one changed character: no redirect", async () => {
  const { redirectUri } = app;
  await fc.assert(
    fc.asyncProperty(
      fc.nat(redirectUri.length),
      fc.string({ minLength: 1, maxLength: 2 }),
      async (at, piece) => {
        const changed = redirectUri.slice(0, at) + piece + redirectUri.slice(at + 1);
        if (changed !== redirectUri) await assertStays(app, changed);
      },
    ),
    { numRuns: runs(40) },
  );
});

test("no redirect URI, a client with only one: no redirect", async () => {
  const url = authorizeUrl(market, app, { verifier: newVerifier() });
  url.searchParams.delete("redirect_uri");
  const page = await browser.open(url);
  assert.equal(page.status, 400);
  assert.equal(page.url.origin, market.origin);
});

test('a loopback redirect URI: any port; "localhost" and other hosts: the exact port', async () => {
  const native = await registerPublicClient(market, {
    redirect_uris: ["http://127.0.0.1:1234/cb", "http://[::1]/cb", "http://localhost:1234/cb"],
  });
  for (const fine of [
    "http://127.0.0.1:999/cb",
    "http://127.0.0.1/cb",
    "http://[::1]:80/cb",
    "http://localhost:1234/cb",
  ])
    assert.equal((await open(native, fine)).status, 200, fine);
  for (const wrong of [
    "http://localhost:999/cb",
    "http://127.0.0.1:999/other",
    "http://127.0.0.2:1234/cb",
    "http://user@127.0.0.1:1234/cb",
    "https://127.0.0.1:1234/cb",
    "http://127.0.0.1.evil.example:1234/cb",
    "http://127.0.0.1:1234@evil.example/cb",
  ])
    await assertStays(native, wrong);
});

test("a redirect URI with an IPv6 host, which form-action cannot name: the form still works", async () => {
  const native = await registerPublicClient(market, { redirect_uris: ["http://[::1]/cb"] });
  const { headers } = await open(native, "http://[::1]:8080/cb");
  assert.match(headers.get("content-security-policy")!, /form-action 'self' http:;/);
});

test("a client with a secret, a loopback redirect URI: the exact port", async () => {
  const web = await createOAuthClient(market, alice, { redirectUris: ["http://127.0.0.1:1234/cb"] });
  await assertStays(web, "http://127.0.0.1:999/cb");
});

test("a code, another redirect URI at the token endpoint: refused", async () => {
  const two = await registerPublicClient(market, {
    redirect_uris: ["https://a.example/", "https://b.example/"],
  });
  const verifier = newVerifier();
  const answer = await consent(browser, authorizeUrl(market, two, { verifier }));
  const elsewhere = { ...two, redirectUri: "https://b.example/" };
  assertOAuthError(await redeem(market, elsewhere, answer.get("code")!, verifier), 400, "invalid_grant");
});

test("a refused request with a registered redirect URI: redirected with error, iss and state", async () => {
  const url = authorizeUrl(market, app, { verifier: newVerifier(), scope: "products:read" });
  const answer = await consent(browser, url, "deny");
  assert.deepEqual(
    [answer.get("error"), answer.get("state"), answer.get("iss"), answer.get("code")],
    ["access_denied", "s1", market.origin, null],
  );
});

test('no PKCE, or the method "plain": no code', async () => {
  for (const ask of [{}, { code_challenge: "x".repeat(43), code_challenge_method: "plain" }]) {
    const { url } = await browser.open(authorizeUrl(market, app, ask));
    assert.equal(url.searchParams.get("error"), "invalid_request");
    assert.equal(url.searchParams.get("code"), null);
  }
});

test("a code with another verifier, or none: refused", async () => {
  for (const verifier of [newVerifier(), ""]) {
    const code = (await consent(browser, authorizeUrl(market, app, { verifier: newVerifier() }))).get(
      "code",
    )!;
    assertOAuthError(await redeem(market, app, code, verifier), 400, "invalid_grant");
  }
});

/** `fetch` cannot set Host. */
const requestWithHost = (host: string, path: string) =>
  new Promise<string>((resolve, reject) => {
    const headers = { host, "x-forwarded-host": host, "x-forwarded-proto": "https" };
    const outgoing = request(new URL(path, market.origin), { headers }, (response) => {
      response.setEncoding("utf8");
      let text = JSON.stringify(response.headers);
      response.on("data", (chunk) => (text += chunk)).on("end", () => resolve(text));
    });
    outgoing.on("error", reject).end();
  });

test("a forged Host header: every URL in the answers has the public origin", async () => {
  const { pathname, search } = authorizeUrl(market, app, { verifier: newVerifier() });
  for (const path of [
    "/.well-known/openid-configuration",
    "/.well-known/oauth-protected-resource",
    "/v1/products",
    "/oauth/logout",
    pathname + search,
  ])
    assert.doesNotMatch(await requestWithHost("evil.example", path), /evil/, path);
});

test("a redirect URI that is neither https nor a loopback address: cannot be registered", async () => {
  for (const wrong of [
    "http://app.example/callback",
    "app://callback",
    "javascript:alert(1)",
    "https://user:pass@app.example/",
    "https://app.example/#fragment",
    "https://app.example/\\evil",
    "https://app.example/ space",
    "http://127.0.0.1.evil.example/",
    "http://10.0.0.1/",
    "https://app.example;sandbox/cb",
    "https://app.example,evil.example/cb",
    "https://*.app.example/cb",
    "not a url",
    `https://app.example/${"x".repeat(2_000)}`,
  ]) {
    assertOAuthError(await register(market, { redirect_uris: [wrong] }), 400, "invalid_redirect_uri");
    const session = await market.createSession(alice.userId);
    const reply = await session.post("/v1/oauth-clients", { name: "App", redirectUris: [wrong] });
    assert.equal(`${reply.status} ${reply.body.error.details?.field}`, "400 redirectUris[0]", wrong);
  }
});
