import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { assertError, type Client, type Market } from "../../../test/market.ts";
import {
  assertOAuthError,
  createOAuthClient,
  openOAuthMarket,
  postTokenRequest,
  registerPublicClient,
  requestTokens,
} from "../../../test/oauth.ts";

let market: Market;
let maker: Client;
let settings: Client;
before(async () => {
  market = await openOAuthMarket();
  maker = await market.createUser({ plan: "enterprise" });
  settings = await market.createSession(maker.userId);
});
after(() => market.close());

const input = {
  name: "Sync",
  redirectUris: ["https://sync.example/callback"],
  grantTypes: ["authorization_code", "refresh_token", "client_credentials"],
  scopes: ["products:read"],
};
const deedsOf = async (clientId: string) => {
  const { rows } = await market.query(
    "select action, actor_id from audit_log where target_id = $1 order by id",
    [clientId],
  );
  assert.ok(rows.every((row) => row.actor_id === maker.userId));
  return rows.map((row) => row.action);
};

test("an OAuth client: created, listed, given a new secret and deleted, each with an audit entry", async () => {
  const made = await settings.post("/v1/oauth-clients", input);
  assert.equal(made.status, 201, made.text);
  const { clientSecret, ...client } = made.body.data;
  assert.match(clientSecret, /^stoa_client_[\w-]{43}$/);
  assert.deepEqual(client, {
    clientId: client.clientId,
    ...input,
    postLogoutRedirectUris: [],
    createdAt: client.createdAt,
  });
  const listed = await settings.get("/v1/oauth-clients");
  assert.deepEqual(listed.body.data[0], client);
  assert.doesNotMatch(listed.text, /stoa_client_/);

  const own = (secret: string) =>
    postTokenRequest(
      market,
      { id: client.clientId, secret, redirectUri: "" },
      { grant_type: "client_credentials", scope: "products:read" },
    );
  assert.equal((await own(clientSecret)).status, 200);
  const rotated = await settings.post(`/v1/oauth-clients/${client.clientId}/rotate-secret`);
  assert.equal(rotated.status, 200, rotated.text);
  assertOAuthError(await own(clientSecret), 401, "invalid_client");
  assert.equal((await own(rotated.body.data.clientSecret)).status, 200);

  const removed = await settings.delete(`/v1/oauth-clients/${client.clientId}`);
  assert.deepEqual(removed.body.data, { clientId: client.clientId, deleted: true });
  assertOAuthError(await own(rotated.body.data.clientSecret), 401, "invalid_client");
  assert.deepEqual(await deedsOf(client.clientId), [
    "oauth_client.created",
    "oauth_client.secret_rotated",
    "oauth_client.removed",
  ]);
});

test("another account's client, and a self-registered one: not visible, not changeable", async () => {
  const stranger = await market.createSession((await market.createUser()).userId);
  const { id } = await createOAuthClient(market, maker);
  const ownerless = await registerPublicClient(market);
  for (const [who, clientId] of [
    [stranger, id],
    [settings, ownerless.id],
    [settings, "client_unknown"],
  ] as const) {
    assertError(await who.delete(`/v1/oauth-clients/${clientId}`), 404, "OAUTH_CLIENT_NOT_FOUND");
    const rotated = await who.post(`/v1/oauth-clients/${clientId}/rotate-secret`);
    assertError(rotated, 404, "OAUTH_CLIENT_NOT_FOUND");
  }
  assert.deepEqual((await stranger.get("/v1/oauth-clients")).body.data, []);
});

test("a client that signs users in: needs a redirect URI; a client-credentials client needs none", async () => {
  const needed = await settings.post("/v1/oauth-clients", { name: "No way back" });
  assertError(needed, 400, "INVALID_REQUEST", "redirectUris");
  const machine = await settings.post("/v1/oauth-clients", {
    name: "Machine",
    grantTypes: ["client_credentials"],
  });
  assert.equal(machine.status, 201, machine.text);
});

test("a client's name: one line of visible characters", async () => {
  for (const name of ["Stoa\u202eppA", "Stoa\nsupport", "\u200b", "Stoa\u2028x", "Sto\u200da", "\ue000"]) {
    const reply = await settings.post("/v1/oauth-clients", { ...input, name });
    assertError(reply, 400, "INVALID_REQUEST", "name");
  }
  assert.equal((await settings.post("/v1/oauth-clients", { ...input, name: "Ⅻ 日本 é 🏛" })).status, 201);
});

test("POST /oauth-clients: at most 25 clients an account, in parallel too", async () => {
  const owner = await market.createSession((await market.createUser({ plan: "enterprise" })).userId);
  const replies = await Promise.all(Array.from({ length: 30 }, () => owner.post("/v1/oauth-clients", input)));
  assert.equal(replies.filter(({ status }) => status === 201).length, 25);
  for (const reply of replies) if (reply.status !== 201) assertError(reply, 409, "CONFLICT");
  assert.equal((await owner.get("/v1/oauth-clients")).body.meta.total, 25);
});

test("grants: listed and revoked by their user only, with an audit entry", async () => {
  const app = await createOAuthClient(market, maker, { name: "Sync" });
  const alice = await market.createUser();
  await requestTokens(market, alice.userId, app, { scope: "openid products:read offline_access" });
  const session = await market.createSession(alice.userId);
  const { body } = await session.get("/v1/account/grants");
  assert.equal(body.meta.total, 1);
  const [grant] = body.data;
  assert.match(grant.id, /^grant_/);
  assert.deepEqual(grant.client, { clientId: app.id, name: "Sync", redirectHosts: ["app.example"] });
  assert.deepEqual(grant.scopes.toSorted(), ["offline_access", "openid", "products:read"]);
  assert.ok(grant.lastUsedAt && grant.expiresAt > grant.createdAt);

  assertError(await settings.delete(`/v1/account/grants/${grant.id}`), 404, "GRANT_NOT_FOUND");
  assertError(await session.delete("/v1/account/grants/grant_nonsense"), 404, "GRANT_NOT_FOUND");
  const removed = await session.delete(`/v1/account/grants/${grant.id}`);
  assert.deepEqual(removed.body.data, { id: grant.id, deleted: true });
  assertError(await session.delete(`/v1/account/grants/${grant.id}`), 404, "GRANT_NOT_FOUND");
  const { rows } = await market.query("select action from audit_log where target_id = $1 order by id", [
    grant.id,
  ]);
  assert.deepEqual(
    rows.map(({ action }) => action),
    ["oauth_grant.given", "oauth_grant.revoked"],
  );
});

test("the same client is allowed again: one grant with both scopes", async () => {
  const app = await registerPublicClient(market);
  const alice = await market.createUser();
  for (const scope of ["products:read", "ai:execute"])
    await requestTokens(market, alice.userId, app, { scope });
  const { body } = await (await market.createSession(alice.userId)).get("/v1/account/grants");
  assert.deepEqual(
    body.data.map(({ scopes }: { scopes: string[] }) => scopes.toSorted()),
    [["ai:execute", "products:read"]],
  );
});
