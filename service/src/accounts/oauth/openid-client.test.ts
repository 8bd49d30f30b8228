import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as client from "openid-client";
import { assertError, type Client, type Market } from "../../../test/market.ts";
import {
  consent,
  createOAuthClient,
  type OAuthClient,
  openOAuthMarket,
  signedInBrowser,
} from "../../../test/oauth.ts";
import { toId } from "../../core/ids.ts";

let market: Market;
let alice: Client;
let app: OAuthClient;
let config: client.Configuration;
before(async () => {
  market = await openOAuthMarket();
  alice = await market.createUser({ name: "Alice" });
  app = await createOAuthClient(market, await market.createUser({ name: "Maker" }));
  config = await discover(app);
});
after(() => market.close());

const discover = ({ id, secret }: OAuthClient) =>
  client.discovery(new URL(market.origin), id, secret!, undefined, {
    execute: [client.allowInsecureRequests],
  });

/** The code flow with PKCE, state and nonce, as in the library's README. */
async function signInWith(scope: string, more: Record<string, string> = {}) {
  const pkceCodeVerifier = client.randomPKCECodeVerifier();
  const expectedState = client.randomState();
  const expectedNonce = client.randomNonce();
  const url = client.buildAuthorizationUrl(config, {
    redirect_uri: app.redirectUri,
    scope,
    code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: "S256",
    state: expectedState,
    nonce: expectedNonce,
    prompt: "consent",
    ...more,
  });
  const answer = await consent(await signedInBrowser(market, alice.userId), url);
  const callback = new URL(`${app.redirectUri}?${answer}`);
  return client.authorizationCodeGrant(config, callback, {
    pkceCodeVerifier,
    expectedState,
    expectedNonce,
    idTokenExpected: true,
  });
}

const callsWith = (token: string) => market.as(token).get("/v1/products");

test("openid-client: signs a user in, calls the API, refreshes, introspects and revokes", async () => {
  const tokens = await signInWith("openid profile email offline_access products:read");
  assert.equal(tokens.token_type, "bearer");
  assert.equal(tokens.expires_in, 900);
  assert.equal(tokens.scope, "products:read");
  const claims = tokens.claims()!;
  assert.equal(claims.sub, toId("usr", alice.userId));
  assert.equal(claims["name"], "Alice");
  assert.equal((await callsWith(tokens.access_token)).status, 200);

  const renewed = await client.refreshTokenGrant(config, tokens.refresh_token!);
  assert.notEqual(renewed.refresh_token, tokens.refresh_token);
  assert.equal((await callsWith(renewed.access_token)).status, 200);

  const facts = await client.tokenIntrospection(config, renewed.access_token);
  assert.equal(facts.active, true);
  assert.equal(facts.scope, "products:read");
  assert.equal(facts.aud, `${market.origin}/v1`);
  assert.equal(facts.sub, claims.sub);

  await client.tokenRevocation(config, renewed.refresh_token!);
  assert.equal((await client.tokenIntrospection(config, renewed.access_token)).active, false);
  assertError(await callsWith(renewed.access_token), 401, "INVALID_API_KEY");
  assertError(await callsWith(tokens.access_token), 401, "INVALID_API_KEY");
});

test("openid-client: reads the user from /oauth/userinfo", async () => {
  const tokens = await signInWith("openid profile email");
  const facts = await client.fetchUserInfo(config, tokens.access_token, tokens.claims()!.sub);
  assert.equal(facts.name, "Alice");
  assert.match(facts.email!, /@example\.com$/);
  assert.equal(facts.email_verified, true);
  assertError(await callsWith(tokens.access_token), 401, "INVALID_API_KEY");
});

test("openid-client, client credentials: a token that acts as the owner", async () => {
  const tokens = await client.clientCredentialsGrant(config, { scope: "products:read" });
  assert.equal(tokens.refresh_token, undefined);
  assert.equal((await callsWith(tokens.access_token)).status, 200);
  assertError(await market.as(tokens.access_token).get("/v1/purchases"), 403, "UNAUTHORIZED");
});

test("openid-client: a pushed authorization request works", async () => {
  const url = await client.buildAuthorizationUrlWithPAR(config, {
    redirect_uri: app.redirectUri,
    scope: "products:read",
    code_challenge: await client.calculatePKCECodeChallenge(client.randomPKCECodeVerifier()),
    code_challenge_method: "S256",
  });
  assert.deepEqual([...url.searchParams.keys()].toSorted(), ["client_id", "request_uri"]);
  const answer = await consent(await signedInBrowser(market, (await market.createUser()).userId), url);
  assert.ok(answer.get("code"));
  assert.equal(answer.get("iss"), market.origin);
});

test("discovery: the same document at both addresses, with what the server supports", async () => {
  const nobody = market.as(null);
  const { body } = await nobody.get("/.well-known/openid-configuration");
  assert.deepEqual((await nobody.get("/.well-known/oauth-authorization-server")).body, body);
  assert.equal(body.issuer, market.origin);
  assert.deepEqual(body.code_challenge_methods_supported, ["S256"]);
  assert.deepEqual(body.response_types_supported, ["code"]);
  assert.deepEqual(body.grant_types_supported.toSorted(), [
    "authorization_code",
    "client_credentials",
    "refresh_token",
  ]);
  for (const name of ["authorization", "token", "revocation", "introspection", "userinfo", "registration"])
    assert.ok(body[`${name}_endpoint`].startsWith(`${market.origin}/oauth/`), name);
  assert.ok(body.scopes_supported.includes("ai:execute") && body.scopes_supported.includes("openid"));
});
