import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Client, Market } from "../../../test/market.ts";
import {
  assertOAuthError,
  authorizeUrl,
  newVerifier,
  openOAuthMarket,
  REDIRECT_URI,
  register,
  requestTokens,
  signedInBrowser,
} from "../../../test/oauth.ts";
import { deleteExpiredOAuthData } from "./cleanup.ts";

let market: Market;
let alice: Client;
before(async () => {
  market = await openOAuthMarket();
  alice = await market.createUser();
});
after(() => market.close());

/** The next test starts with an unused hourly limit. */
const anHourLater = () =>
  market.query("update oauth_clients set created_at = created_at - interval '61 minutes'");

test("POST /oauth/register: a public client without a secret", async () => {
  const reply = await register(market, { application_type: "web" });
  assert.equal(reply.status, 201, reply.text);
  const { client_id, client_id_issued_at, ...rest } = reply.body;
  assert.match(client_id, /^client_[0-9a-f]{32}$/);
  assert.ok(Number.isInteger(client_id_issued_at));
  assert.equal(rest.token_endpoint_auth_method, "none");
  assert.deepEqual(rest.grant_types, ["authorization_code", "refresh_token"]);
  assert.deepEqual(rest.redirect_uris, [REDIRECT_URI]);
  for (const name of ["client_secret", "registration_access_token", "permissions"])
    assert.ok(!(name in rest), name);
  assert.equal(reply.headers.get("access-control-allow-origin"), "*");
});

test("registration with a secret or with client credentials: refused", async () => {
  for (const metadata of [
    { token_endpoint_auth_method: "client_secret_basic" },
    { token_endpoint_auth_method: "private_key_jwt", jwks: { keys: [] } },
    { grant_types: ["client_credentials"] },
    { grant_types: ["authorization_code", "urn:ietf:params:oauth:grant-type:device_code"] },
    { response_types: ["token"] },
  ])
    assertOAuthError(await register(market, metadata), 400, "invalid_client_metadata");
});

test("registration without a flow that asks the user: refused", async () => {
  const nowhere = { redirect_uris: [], response_types: [] };
  for (const metadata of [
    { ...nowhere, grant_types: [] },
    { ...nowhere, grant_types: ["refresh_token"] },
    { grant_types: [], response_types: [] },
    { grant_types: ["refresh_token"], response_types: [] },
  ])
    assert.equal((await register(market, metadata)).status, 400, JSON.stringify(metadata));
});

test("URLs in client metadata: never fetched, and not stored", async () => {
  const reply = await register(market, {
    sector_identifier_uri: `${market.origin}/healthz`,
    jwks_uri: `${market.origin}/healthz`,
    logo_uri: "https://evil.example/logo.png",
    scope: "products:read nonsense",
    permissions: [],
    client_secret: "chosen",
  });
  assert.equal(reply.status, 201, reply.text);
  assert.doesNotMatch(reply.text, /healthz|evil|nonsense|chosen/);
});

test("a deceptive client name: becomes one line of visible text, escaped on pages", async () => {
  const name = `\u202eknaB <b>Stoa</b>\n\u200b${"x".repeat(200)}`;
  const { body } = await register(market, { client_name: name });
  assert.match(body.client_name, /^knaB <b>Stoa<\/b> x+$/);
  assert.equal(body.client_name.length, 100);
  const client = { id: body.client_id, secret: null, redirectUri: REDIRECT_URI };
  const browser = await signedInBrowser(market, alice.userId);
  const page = await browser.open(authorizeUrl(market, client, { verifier: newVerifier() }));
  assert.match(page.text, /&lt;b&gt;Stoa&lt;\/b&gt;/);
  assert.doesNotMatch(page.text, /<b>/);
});

test("registrations, parallel ones too: at most 20 an hour from one network", async () => {
  await anHourLater();
  const replies = await Promise.all(Array.from({ length: 24 }, () => register(market)));
  assert.equal(replies.filter(({ status }) => status === 201).length, 20);
  for (const reply of replies) if (reply.status !== 201) assertOAuthError(reply, 429, "slow_down");
  await anHourLater();
  assert.equal((await register(market)).status, 201);
});

test("clients without grants: deleted after 30 days, with expired tokens", async () => {
  const ids = async () => {
    const { rows } = await market.query("select id from oauth_clients");
    return new Set(rows.map(({ id }) => id));
  };
  await anHourLater();
  const used = (await register(market)).body.client_id;
  const unused = (await register(market)).body.client_id;
  await requestTokens(market, alice.userId, { id: used, secret: null, redirectUri: REDIRECT_URI });
  const aged = "update oauth_clients set created_at = now() - make_interval(days => $1)";
  await market.query(aged, [29]);
  await deleteExpiredOAuthData(market.service.ctx);
  assert.ok((await ids()).has(unused));
  await market.query(aged, [31]);
  await deleteExpiredOAuthData(market.service.ctx);
  assert.deepEqual(await ids(), new Set([used]));

  await market.query("update oauth_tokens set expires_at = now() - interval '25 hours'");
  await market.query("update oauth_flows set expires_at = now() - interval '1 second'");
  await deleteExpiredOAuthData(market.service.ctx);
  for (const table of ["oauth_tokens", "oauth_flows"])
    assert.equal((await market.query(`select 1 from ${table}`)).rows.length, 0, table);
});
