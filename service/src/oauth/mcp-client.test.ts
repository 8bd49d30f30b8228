import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  auth,
  extractWWWAuthenticateParams,
  type OAuthClientProvider,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
} from "@modelcontextprotocol/client";
import { assertError, type Client, type Market } from "../../test/market.ts";
import { browserOf, consent, openOAuthMarket } from "../../test/oauth.ts";

let market: Market;
let alice: Client;
before(async () => {
  market = await openOAuthMarket();
  alice = await market.hasUser({ name: "Alice" });
});
after(() => market.close());

type DiscoveryState = Parameters<NonNullable<OAuthClientProvider["saveDiscoveryState"]>>[0];

/** What such a client remembers; its browser is Alice's, who presses the button that she is shown. */
class Desk implements OAuthClientProvider {
  readonly redirectUrl = "http://127.0.0.1:7777/callback";
  readonly clientMetadata = {
    client_name: "Desk",
    redirect_uris: [this.redirectUrl],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  };
  information: StoredOAuthClientInformation | undefined;
  kept: StoredOAuthTokens | undefined;
  answer: URLSearchParams | undefined;
  asked: URL | undefined;
  #verifier = "";
  #discovery: DiscoveryState | undefined;

  clientInformation = () => this.information;
  saveClientInformation(information: StoredOAuthClientInformation) {
    this.information = information;
  }
  tokens = () => this.kept;
  saveTokens(tokens: StoredOAuthTokens) {
    this.kept = tokens;
  }
  saveCodeVerifier(verifier: string) {
    this.#verifier = verifier;
  }
  codeVerifier = () => this.#verifier;
  saveDiscoveryState(state: DiscoveryState) {
    this.#discovery = state;
  }
  discoveryState = () => this.#discovery;
  async redirectToAuthorization(url: URL) {
    this.asked = url;
    this.answer = await consent(await browserOf(market, alice.userId), url);
  }
}

const products = () => new URL("/v1/products", market.origin);
const call = (token: string) => fetch(products(), { headers: { authorization: `Bearer ${token}` } });

test("a stock MCP client comes in: 401, discovery, registration, PKCE, token, call, refresh", async () => {
  const refused = await fetch(products());
  assert.equal(refused.status, 401);
  const { resourceMetadataUrl } = extractWWWAuthenticateParams(refused);
  assert.equal(resourceMetadataUrl?.href, `${market.origin}/.well-known/oauth-protected-resource/v1`);

  const desk = new Desk();
  const where = { serverUrl: products(), resourceMetadataUrl: resourceMetadataUrl! };
  assert.equal(await auth(desk, where), "REDIRECT");
  assert.equal(desk.asked?.searchParams.get("resource"), `${market.origin}/v1`);
  const code = desk.answer?.get("code");
  const iss = desk.answer?.get("iss");
  assert.ok(code && iss);
  assert.equal(await auth(desk, { ...where, authorizationCode: code, iss }), "AUTHORIZED");
  const first = desk.kept!;
  assert.equal((await call(first.access_token)).status, 200);

  assert.equal(await auth(desk, where), "AUTHORIZED");
  assert.notEqual(desk.kept?.access_token, first.access_token);
  assert.equal((await call(desk.kept!.access_token)).status, 200);
});

test("a token that lacks a scope is told which, in the words of RFC 6750", async () => {
  const desk = new Desk();
  const where = { serverUrl: products(), scope: "products:read" };
  await auth(desk, where);
  const { code, iss } = Object.fromEntries(desk.answer!);
  await auth(desk, { ...where, authorizationCode: code!, iss: iss! });
  const reply = await market.as(desk.kept!.access_token).get("/v1/purchases");
  assert.equal(assertError(reply, 403, "UNAUTHORIZED").required, "purchases:read");
  assert.equal(
    reply.headers.get("www-authenticate"),
    `Bearer realm="stoa", error="insufficient_scope", scope="purchases:read", resource_metadata="${market.origin}/.well-known/oauth-protected-resource/v1"`,
  );
});

test("every resource says which server gives tokens for it", async () => {
  for (const [path, resource] of [
    ["", "/v1"],
    ["/v1", "/v1"],
    ["/mcp", "/mcp"],
  ]) {
    const { body, headers } = await market.as(null).get(`/.well-known/oauth-protected-resource${path}`);
    assert.equal(body.resource, market.origin + resource);
    assert.deepEqual(body.authorization_servers, [market.origin]);
    assert.equal(headers.get("access-control-allow-origin"), "*");
  }
});
