import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { dumpDatabase } from "../../../test/dump.ts";
import { type Client, clientOf, type Market } from "../../../test/market.ts";
import {
  assertOAuthError,
  authorizeUrl,
  createOAuthClient,
  newVerifier,
  type OAuthClient,
  openOAuthMarket,
  postForm,
  postTokenRequest,
  redeem,
  requestCode,
  signedInBrowser,
} from "../../../test/oauth.ts";

let market: Market;
let alice: Client;
let app: OAuthClient;
before(async () => {
  market = await openOAuthMarket();
  alice = await market.createUser();
  app = await createOAuthClient(market, alice);
});
after(() => market.close());

test("tokens, codes, cookies, secrets and signing keys: in no dump and no log", async () => {
  const browser = await signedInBrowser(market, alice.userId);
  const verifier = newVerifier();
  const pending = await browser.open(authorizeUrl(market, app, { verifier }));
  const sessionThen = browser.cookie("__Host-oauth-session")!;
  const pushed = await postForm(market, app, "/oauth/par", {
    ...Object.fromEntries(authorizeUrl(market, app, { verifier }).searchParams),
  });
  const code = await requestCode(market, browser, app, { verifier });
  const unused = await requestCode(market, browser, app, { verifier });
  const { body: tokens } = await redeem(market, app, code, verifier);
  const { body: own } = await postTokenRequest(market, app, {
    grant_type: "client_credentials",
    scope: "ai:execute",
  });
  const secrets = {
    code,
    unused,
    verifier,
    access: tokens.access_token,
    refresh: tokens.refresh_token,
    own: own.access_token,
    secret: app.secret!,
    interaction: pending.url.pathname.split("/").at(-1)!,
    sessionThen,
    session: browser.cookie("__Host-oauth-session")!,
    pushed: pushed.body.request_uri.split(":").at(-1),
  };
  const { keys } = (await market.as(null).get("/oauth/jwks")).body;
  assert.equal(keys.length, 3);
  const stolen = await dumpDatabase(market);
  assert.ok(
    stolen.includes(app.id) && stolen.includes("oauth_grant.given"),
    "the dump has what is no secret",
  );
  for (const [name, value] of Object.entries(secrets)) {
    assert.ok(value.length >= 40, `${name} ${value}`);
    assert.ok(!stolen.includes(value), `${name} is in the dump`);
    assert.ok(
      market.logs.every((line) => !line.includes(value)),
      `${name} is in the logs`,
    );
  }
  assert.doesNotMatch(stolen, /"(d|p|q|dp|dq|qi)": ?"/, "no private key");
});

test("digests and ids from a stolen dump: refused as credentials", async () => {
  const verifier = newVerifier();
  const code = await requestCode(market, await signedInBrowser(market, alice.userId), app, { verifier });
  await redeem(market, app, code, verifier);
  const { rows } = await market.query("select kind, digest, grant_id from oauth_tokens");
  assert.ok(rows.length >= 2);
  for (const { digest, grant_id } of rows) {
    for (const guess of [digest.toString("hex"), digest.toString("base64url"), grant_id ?? "none"]) {
      assert.equal((await market.as(guess).get("/v1/products")).status, 401);
      const fields = { grant_type: "refresh_token", refresh_token: guess };
      assertOAuthError(await postTokenRequest(market, app, fields), 400, "invalid_grant");
    }
  }
});

test("signing keys: the same after a restart; only the public half is published", async () => {
  const { keys } = (await market.as(null).get("/oauth/jwks")).body;
  assert.deepEqual(
    keys.map(({ alg, use }: { alg: string; use: string }) => `${alg} ${use}`),
    ["RS256 sig", "ES256 sig", "EdDSA sig"],
  );
  for (const key of keys) for (const name of ["d", "p", "q", "k"]) assert.ok(!(name in key));
  const { loadSigningKeys } = await import("./signing-keys.ts");
  const again = await Promise.all([loadSigningKeys(market.service.ctx), loadSigningKeys(market.service.ctx)]);
  for (const { keys: loaded } of again)
    assert.deepEqual(
      loaded.map((key) => (key as { x?: string; n?: string }).x ?? (key as { n?: string }).n),
      keys.map((key: { x?: string; n?: string }) => key.x ?? key.n),
    );
});

test("answers of the OAuth server: have the headers of every answer", async () => {
  for (const path of ["/oauth/jwks", "/.well-known/openid-configuration", "/oauth/authorize"]) {
    const { headers } = await market.as(null).get(path, { "x-request-id": "mine" });
    assert.equal(headers.get("x-content-type-options"), "nosniff", path);
    assert.equal(headers.get("x-frame-options"), "DENY", path);
    assert.equal(headers.get("x-request-id"), "mine", path);
  }
});

test("a body over the limit, with or without Content-Length: refused", async () => {
  const big = "x".repeat(60 * 1024);
  const form = { "content-type": "application/x-www-form-urlencoded" };
  const chunks = new ReadableStream({
    start(controller) {
      for (let sent = 0; sent < 60; sent++) controller.enqueue(new TextEncoder().encode("x".repeat(1024)));
      controller.close();
    },
  });
  const nobody = clientOf(market.origin, null);
  const withLength = await nobody.request("POST", "/oauth/token", {
    body: `grant_type=${big}`,
    headers: form,
  });
  assertOAuthError(withLength, 400, "invalid_request");
  const chunked = await nobody.request("POST", "/oauth/token", {
    body: chunks,
    headers: form,
    duplex: "half",
  } as RequestInit);
  assertOAuthError(chunked, 400, "invalid_request");
});

test("an OAuth error: JSON for a program, our page for a browser", async () => {
  const json = await market.as(null).get("/oauth/authorize");
  assert.equal(`${json.status} ${json.body.error}`, "400 invalid_request");
  const page = await market.as(null).get("/oauth/authorize?client_id=<b>", { accept: "text/html" });
  assert.equal(page.status, 400);
  assert.match(page.text, /This request is not valid/);
  assert.doesNotMatch(page.text, /<b>|<script|<style/);
});
