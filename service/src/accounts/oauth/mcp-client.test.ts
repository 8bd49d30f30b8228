import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { auth, extractWWWAuthenticateParams } from "@modelcontextprotocol/client";
import { assertError, type Client, type Market } from "../../../test/market.ts";
import { OAuthTestClient } from "../../../test/mcp.ts";
import { openOAuthMarket } from "../../../test/oauth.ts";

let market: Market;
let alice: Client;
before(async () => {
  market = await openOAuthMarket();
  alice = await market.createUser({ name: "Alice" });
});
after(() => market.close());

const products = () => new URL("/v1/products", market.origin);
const call = (token: string) => fetch(products(), { headers: { authorization: `Bearer ${token}` } });

test("a stock MCP client: 401, discovery, registration, PKCE, token, call and refresh work", async () => {
  const refused = await fetch(products());
  assert.equal(refused.status, 401);
  const { resourceMetadataUrl } = extractWWWAuthenticateParams(refused);
  assert.equal(resourceMetadataUrl?.href, `${market.origin}/.well-known/oauth-protected-resource/v1`);

  const desk = new OAuthTestClient(market, alice);
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

test("a stock MCP client at /mcp: gets a refresh token and reconnects without a browser", async () => {
  const refused = await fetch(new URL("/mcp", market.origin), { method: "POST" });
  const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(refused);
  const desk = new OAuthTestClient(market, alice);
  const where = {
    serverUrl: new URL("/mcp", market.origin),
    resourceMetadataUrl: resourceMetadataUrl!,
    ...(scope !== undefined && { scope }),
  };
  await auth(desk, where);
  const { code, iss } = Object.fromEntries(desk.answer!);
  await auth(desk, { ...where, authorizationCode: code!, iss: iss! });
  assert.ok(desk.kept?.refresh_token, JSON.stringify(desk.kept?.scope));
  const first = desk.kept.access_token;
  desk.answer = undefined;
  assert.equal(await auth(desk, where), "AUTHORIZED");
  assert.notEqual(desk.kept.access_token, first);
  assert.equal(desk.answer, undefined);
});

test("a token without the needed scope: WWW-Authenticate names it (RFC 6750)", async () => {
  const desk = new OAuthTestClient(market, alice);
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

test("each resource: its metadata names the authorization server", async () => {
  for (const [path, resource] of [
    ["", "/v1"],
    ["/v1", "/v1"],
    ["/mcp", "/mcp"],
  ]) {
    const { body, headers } = await market.as(null).get(`/.well-known/oauth-protected-resource${path}`);
    assert.equal(body.resource, market.origin + resource);
    assert.ok(body.scopes_supported.includes("offline_access"));
    assert.deepEqual(body.authorization_servers, [market.origin]);
    assert.equal(headers.get("access-control-allow-origin"), "*");
  }
});
