import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { endpoints } from "@stoa/contract";
import { emailsToUser } from "../../../test/emails.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";

const MINUTE_MS = 60_000;
/** These require an authenticator code, which a stolen session does not have. */
const ASK_FOR_CODE = ["twoFactor.confirm", "twoFactor.renewBackupCodes"];

let market: Market;
let user: Client;
let admin: Client;
before(async () => {
  market = await openMarket();
  user = await market.createUser({ role: "seller" });
  admin = await market.createUser({ role: "admin" });
});
after(() => market.close());

const guarded = endpoints.filter(({ requiresFreshSignIn }) => requiresFreshSignIn);
const subjects = async () => (await emailsToUser(market, user.userId)).map(({ subject }) => subject);
const pathOf = ({ base, path }: (typeof endpoints)[number]) => base + path.replace(/:\w+/g, "x");

const signInFor = ({ access }: (typeof endpoints)[number]) =>
  access.who === "admin"
    ? market.createSession(admin.userId, { secondFactor: true })
    : market.createSession(user.userId);

suite("endpoints that need a fresh sign-in", () => {
  test("that return a secret: the contract requires a fresh sign-in or a code", () => {
    const unguarded = endpoints.filter(
      ({ showsSecret, requiresFreshSignIn }) => showsSecret && !requiresFreshSignIn,
    );
    assert.deepEqual(
      unguarded.map(({ name }) => name),
      ASK_FOR_CODE,
    );
  });

  for (const endpoint of guarded) {
    test(`${endpoint.name}: a session of 15 minutes ago is refused with instructions`, async () => {
      const session = await signInFor(endpoint);
      market.clock.forward(15 * MINUTE_MS);
      const reply = await session.request(endpoint.method, pathOf(endpoint), { json: {} });
      const details = assertError(reply, 403, "UNAUTHORIZED");
      assert.deepEqual(details, { required: "fresh-sign-in", reason: "sign_in_too_old" });
      assert.match(reply.body.error.message, /Sign in again/);
    });

    test(`${endpoint.name}: a new session passes`, async () => {
      const session = await signInFor(endpoint);
      market.clock.forward(15 * MINUTE_MS - 1);
      const reply = await session.request(endpoint.method, pathOf(endpoint), { json: {} });
      assert.notEqual(reply.body.error?.details?.required, "fresh-sign-in", reply.text);
      if (reply.status < 300 && endpoint.name.startsWith("twoFactor"))
        await market.query("delete from authenticators where user_id = $1", [user.userId]);
    });
  }

  test("an API key with webhooks:write: passes, since it is no session", async () => {
    market.clock.forward(60 * MINUTE_MS);
    const reply = await user.post("/v1/webhooks", { url: "https://hooks.example/key" });
    assert.equal(reply.status, 201, reply.text);
  });
});

suite("emails about lasting access", () => {
  test("each key, client, endpoint and secret: an email and an audit entry", async () => {
    const session = await market.createSession(user.userId);
    const before = (await subjects()).length;
    const key = await session.post("/v1/api-keys", {
      name: "Reader",
      permissions: { "products:read": true },
    });
    await session.post(`/v1/api-keys/${key.body.data.id}/rotate`, {});
    const client = await session.post("/v1/oauth-clients", {
      name: "App",
      redirectUris: ["https://app.example/cb"],
    });
    await session.post(`/v1/oauth-clients/${client.body.data.clientId}/rotate-secret`);
    const hook = await session.post("/v1/webhooks", { url: "https://hooks.example/a" });
    await session.patch(`/v1/webhooks/${hook.body.data.id}`, { url: "https://hooks.example/b" });
    await session.post(`/v1/webhooks/${hook.body.data.id}/rotate-secret`, {});
    await session.delete(`/v1/webhooks/${hook.body.data.id}`);
    await session.post("/v1/account/callback-secret");
    const sent = await subjects();
    assert.deepEqual(sent.slice(0, sent.length - before), [
      "Your account has a new callback secret",
      "A webhook endpoint has a new secret",
      "A webhook endpoint has a new address",
      "A new webhook endpoint was registered",
      "An OAuth client has a new secret",
      "A new OAuth client was created",
      "An API key was replaced",
      "A new API key was created",
    ]);
    const { rows } = await market.query(
      "select action from audit_log where actor_id = $1 order by id desc limit 9",
      [user.userId],
    );
    assert.deepEqual(
      rows.map(({ action }) => action),
      [
        ...["callback_secret.rotated", "webhook.removed", "webhook.secret_rotated", "webhook.moved"],
        ...["webhook.created", "oauth_client.secret_rotated", "oauth_client.created"],
        ...["api_key.rotated", "api_key.created"],
      ],
    );
  });

  test("a new OAuth client: no client credentials and read scopes, unless requested", async () => {
    const session = await market.createSession(user.userId);
    const { data } = (
      await session.post("/v1/oauth-clients", { name: "Least", redirectUris: ["https://app.example/cb"] })
    ).body;
    assert.deepEqual(data.grantTypes, ["authorization_code", "refresh_token"]);
    assert.deepEqual(data.scopes, ["products:read"]);
  });
});
