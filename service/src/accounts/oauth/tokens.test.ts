import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { endpoints, permissions } from "@stoa/contract";
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT } from "jose";
import { sampleOf } from "../../../test/full-size.ts";
import { assertError, type Client, type Market } from "../../../test/market.ts";
import {
  assertOAuthError,
  authorizeUrl,
  createOAuthClient,
  newVerifier,
  type OAuthClient,
  openOAuthMarket,
  postForm,
  postTokenRequest,
  refresh,
  registerPublicClient,
  requestTokens,
  signedInBrowser,
  type Tokens,
} from "../../../test/oauth.ts";
import { builtInPlans } from "../../core/config/plan-config.ts";
import { toId } from "../../core/ids.ts";

let market: Market;
let alice: Client;
let maker: Client;
let app: OAuthClient;
before(async () => {
  market = await openOAuthMarket();
  alice = await market.createUser({ role: "seller", plan: "enterprise" });
  maker = await market.createUser({ plan: "enterprise" });
  app = await createOAuthClient(market, maker);
});
after(() => market.close());

const products = (token: string) => market.as(token).get("/v1/products");
const assertDead = async (token: string) => assertError(await products(token), 401, "INVALID_API_KEY");
const ownToken = (client: OAuthClient, more: Record<string, string> = {}) =>
  postTokenRequest(market, client, {
    grant_type: "client_credentials",
    scope: permissions.join(" "),
    ...more,
  });

const openTo = (permission: string) =>
  endpoints.filter(
    ({ base, access }) =>
      base === "/v1" &&
      (access.who === "member" || access.who === "visitor") &&
      access.permission === permission,
  );

for (const [index, scope] of permissions.entries()) {
  test(`a token of ${scope}: the endpoints of ${scope} and no others`, async () => {
    const { body } = await ownToken(app, { scope });
    assert.equal(body.scope, scope);
    const token = market.as(body.access_token);
    const open = new Set(openTo(scope));
    for (const endpoint of sampleOf(endpoints, index)) {
      if (endpoint.base !== "/v1" || endpoint.access.who === "public") continue;
      const reply = await token.request(endpoint.method, `/v1${endpoint.path}`);
      const named = reply.body?.error?.details?.required;
      const mayPass =
        open.has(endpoint) || ("permission" in endpoint.access && endpoint.access.permission === null);
      const lacksPermission = reply.status === 403 && (permissions.includes(named) || named === "session");
      assert.equal(
        lacksPermission || named === "view:admin_panel",
        !mayPass,
        `${endpoint.name}: ${reply.text}`,
      );
      assert.notEqual(reply.status, 401, endpoint.name);
    }
  });
}

test("a token: refused where a session or an administrator is required", async () => {
  const admin = await market.createUser({ role: "admin", plan: "enterprise" });
  const client = await createOAuthClient(market, admin);
  const { body } = await ownToken(client);
  const token = market.as(body.access_token);
  const closed = endpoints.filter(
    ({ base, access }) => base === "/v1" && (access.who === "session" || access.who === "admin"),
  );
  assert.ok(closed.length >= 6);
  for (const { name, method, path } of closed) {
    const { required } = assertError(await token.request(method, `/v1${path}`), 403, "UNAUTHORIZED");
    assert.ok(required === "session" || required === "view:admin_panel", name);
  }
});

test("a token for /mcp: refused on /v1; an unknown resource: no token", async () => {
  const { body } = await ownToken(app, {
    resource: `${market.origin}/mcp`,
    scope: "ai:execute products:read",
  });
  assert.equal(body.scope, "ai:execute");
  await assertDead(body.access_token);
  for (const resource of [
    "https://evil.example/v1",
    `${market.origin}/v1/`,
    `${market.origin}/V1`,
    market.origin,
  ])
    assertOAuthError(await ownToken(app, { resource }), 400, "invalid_target");
});

test("a user's token for /mcp: cannot be exchanged for one for /v1", async () => {
  const tokens = await requestTokens(market, alice.userId, app, {
    scope: "ai:execute offline_access",
    resource: `${market.origin}/mcp`,
  });
  await assertDead(tokens.access_token);
  const reply = await refresh(market, app, tokens.refresh_token, { resource: `${market.origin}/v1` });
  assertOAuthError(reply, 400, "invalid_target");
});

test("refresh: scopes may shrink and cannot grow", async () => {
  const { refresh_token } = await requestTokens(market, alice.userId, app);
  for (const scope of ["products:read ai:execute", "products:write"])
    assertOAuthError(await refresh(market, app, refresh_token, { scope }), 400, "invalid_scope");

  const wide = await requestTokens(market, alice.userId, app, {
    scope: "products:read purchases:read offline_access",
  });
  const { body } = await refresh(market, app, wide.refresh_token, { scope: "products:read" });
  assert.equal(body.scope, "products:read");
  assertError(await market.as(body.access_token).get("/v1/purchases"), 403, "UNAUTHORIZED");
});

test("a client: gets at most the scopes that its owner allowed", async () => {
  const small = await createOAuthClient(market, maker, { scopes: ["products:read"] });
  assert.equal((await ownToken(small)).body.scope, "products:read");
  const tokens = await requestTokens(market, alice.userId, small, {
    scope: "products:read ai:execute offline_access",
  });
  assert.equal(tokens.scope, "products:read");
});

test("a token that is no access token: refused as bearer of /v1", async () => {
  const tokens = await requestTokens(market, alice.userId, app, {
    scope: "openid products:read offline_access",
  });
  assert.equal((await products(tokens.access_token)).status, 200);
  const claims = { sub: toId("usr", alice.userId), iss: market.origin, aud: `${market.origin}/v1` };
  const { privateKey, publicKey } = await generateKeyPair("RS256", { extractable: true });
  const jwk = await exportJWK(publicKey);
  for (const [what, value] of Object.entries({
    "an id token": tokens.id_token,
    "a refresh token": tokens.refresh_token,
    "a client's secret": app.secret!,
    "alg:none": new UnsecuredJWT(claims).setIssuedAt().setExpirationTime("1h").encode(),
    "a key of one's own in the header": await new SignJWT(claims)
      .setProtectedHeader({ alg: "RS256", jwk, typ: "at+jwt" })
      .setExpirationTime("1h")
      .sign(privateKey),
    "half a token": tokens.access_token.slice(0, -1),
    "a token in other letters": tokens.access_token.toUpperCase(),
  })) {
    const reply = await products(value);
    assert.equal(`${what}: ${reply.status} ${reply.body.error?.code}`, `${what}: 401 INVALID_API_KEY`);
  }
  assert.equal((await market.as(null).get(`/v1/products?api_key=${tokens.access_token}`)).status, 401);
});

test("a token of another kind: refused at /oauth/userinfo", async () => {
  const session = await market.createSession(alice.userId);
  const { access_token } = await requestTokens(market, alice.userId, app);
  for (const value of [alice.key, session.key, access_token, "nonsense"])
    assert.notEqual((await market.as(value).get("/oauth/userinfo")).status, 200, value.slice(0, 8));
});

test("a client is deleted: its tokens end at once", async () => {
  const doomed = await createOAuthClient(market, maker);
  const tokens = await requestTokens(market, alice.userId, doomed);
  const own = (await ownToken(doomed)).body;
  const session = await market.createSession(maker.userId);
  assert.equal((await session.delete(`/v1/oauth-clients/${doomed.id}`)).status, 200);
  await assertDead(tokens.access_token);
  await assertDead(own.access_token);
  assertOAuthError(await refresh(market, doomed, tokens.refresh_token), 401, "invalid_client");
});

test("a grant is revoked: its tokens end at once", async () => {
  const client = await registerPublicClient(market);
  const tokens = await requestTokens(market, alice.userId, client);
  const session = await market.createSession(alice.userId);
  const { body } = await session.get("/v1/account/grants");
  const grant = body.data.find(
    (item: { client: { clientId: string } }) => item.client.clientId === client.id,
  );
  assert.equal((await session.delete(`/v1/account/grants/${grant.id}`)).status, 200);
  await assertDead(tokens.access_token);
  assertOAuthError(await refresh(market, client, tokens.refresh_token), 400, "invalid_grant");
});

for (const end of ["banned_at", "closed_at"]) {
  test(`${end} of an account is set: its tokens end, and no new one is issued`, async () => {
    const user = await market.createUser();
    const browser = await signedInBrowser(market, user.userId);
    const client = await createOAuthClient(market, user);
    const own = (await ownToken(client)).body;
    const tokens = await requestTokens(market, user.userId, client);
    const ofAlice = await requestTokens(market, alice.userId, client);
    await market.query(`update users set ${end} = now() where id = $1`, [user.userId]);
    for (const { access_token } of [own, tokens, ofAlice] as Tokens[]) await assertDead(access_token);
    assertOAuthError(await ownToken(client), 401, "invalid_client");
    assertOAuthError(await refresh(market, client, tokens.refresh_token), 401, "invalid_client");
    const page = await browser.open(authorizeUrl(market, app, { verifier: newVerifier() }));
    assert.equal(page.url.pathname, "/auth/sign-in");
  });
}

test("introspection and revocation: a client's own tokens only", async () => {
  const { access_token } = await requestTokens(market, alice.userId, app);
  const other = await createOAuthClient(market, maker);
  for (const nosy of [other, await registerPublicClient(market)]) {
    const facts = await postForm(market, nosy, "/oauth/introspect", { token: access_token });
    assert.deepEqual(facts.body, { active: false });
    assert.equal((await postForm(market, nosy, "/oauth/revoke", { token: access_token })).status, 200);
    assert.equal((await products(access_token)).status, 200);
  }
  await postForm(market, app, "/oauth/revoke", { token: access_token });
  await assertDead(access_token);
});

test("a wrong, old or foreign client secret: no token", async () => {
  const other = await createOAuthClient(market, maker);
  for (const secret of ["wrong", "", other.secret!])
    assert.notEqual((await ownToken({ ...app, secret })).status, 200);
  const { rows } = await market.query("select secret_digest from oauth_clients where id = $1", [app.id]);
  for (const encoding of ["hex", "base64url", "base64"] as const)
    assertOAuthError(
      await ownToken({ ...app, secret: rows[0].secret_digest.toString(encoding) }),
      401,
      "invalid_client",
    );
});

test("a public client: no client credentials", async () => {
  assertOAuthError(await ownToken(await registerPublicClient(market)), 400, "invalid_request");
});

test("wrong secrets and tokens: counted like wrong API keys; right ones still pass", async () => {
  const failedCredentials = { requests: 5, seconds: 600 };
  const strict = await openOAuthMarket({ config: { planConfig: { ...builtInPlans, failedCredentials } } });
  const client = await createOAuthClient(strict, await strict.createUser());
  const wrong = { ...client, secret: "wrong" };
  const ask = { grant_type: "client_credentials" };
  for (const path of ["/oauth/token", "/oauth/introspect", "/oauth/revoke", "/oauth/par"])
    assertOAuthError(await postForm(strict, wrong, path, { ...ask, token: "x" }), 401, "invalid_client");
  assert.equal((await strict.as("no-token").get("/oauth/userinfo")).status, 401);
  const reply = await postTokenRequest(strict, wrong, ask);
  assertOAuthError(reply, 429, "slow_down");
  assert.ok(Number(reply.headers.get("retry-after")) > 0);
  assert.equal((await strict.as("no-token").get("/v1/account")).status, 429, "at the API's door too");
  assert.equal((await postTokenRequest(strict, client, ask)).status, 200, "an office shares an address");
  await strict.close();
});

test("CORS at the token endpoint: for clients without a secret only", async () => {
  const askFrom = (client: OAuthClient, secret = {}) =>
    market.as(null).request("POST", "/oauth/token", {
      body: new URLSearchParams({
        ...secret,
        client_id: client.id,
        grant_type: "refresh_token",
        refresh_token: "x",
      }),
      headers: { origin: "https://app.example" },
    });
  const reply = await askFrom(await registerPublicClient(market));
  assertOAuthError(reply, 400, "invalid_grant");
  assert.equal(reply.headers.get("access-control-allow-origin"), "https://app.example");
  assert.equal(reply.headers.get("access-control-allow-credentials"), null);
  const refused = await askFrom(app, { client_secret: app.secret });
  assertOAuthError(refused, 400, "invalid_request");
  assert.equal(refused.headers.get("access-control-allow-origin"), null);
});
