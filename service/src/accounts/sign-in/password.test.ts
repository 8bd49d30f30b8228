import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import {
  emailsTo,
  emailsToUser,
  isSignedIn,
  registerAccount,
  signInByLink,
  uniqueEmail,
  unwrapLines,
} from "../../../test/emails.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { assertOAuthError, createOAuthClient, postTokenRequest } from "../../../test/oauth.ts";
import { mintOneTimeToken } from "./one-time-tokens.ts";

const MINUTE_MS = 60_000;
const nothingRevoked = { keysRevoked: 0, grantsRevoked: 0, clientSecretsRevoked: 0 };
const OLD = "correct horse battery staple";
const NEW = "a newer horse altogether";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

const change = (session: Client, json: object) => session.put("/v1/account/password", json);
const logIn = (email: string, password: string) =>
  market.as(null).post("/api/auth/login", { email, password });
async function idOf(email: string): Promise<string> {
  return (await market.query("select id from users where email = $1", [email])).rows[0].id;
}

test("PUT /account/password: ends other sessions and open challenges, sends an email", async () => {
  const email = uniqueEmail();
  const session = await registerAccount(market, email, OLD);
  const others = [
    market.as((await logIn(email, OLD)).body.sessionToken),
    await market.createSession(await idOf(email)),
  ];
  const { ctx } = market.service;
  const challenge = await mintOneTimeToken(ctx, ctx.db, {
    purpose: "two-factor",
    userId: await idOf(email),
    lifetimeMs: 5 * MINUTE_MS,
  });
  for (const other of others) assert.ok(await isSignedIn(other));

  const reply = await change(session, { password: NEW, currentPassword: OLD });
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(reply.body.data, { sessionsEnded: 2, ...nothingRevoked });
  for (const other of others) assert.ok(!(await isSignedIn(other)));
  assert.ok(await isSignedIn(session));
  assertError(await logIn(email, OLD), 401, "INVALID_CREDENTIALS");
  assert.equal((await logIn(email, NEW)).status, 200);
  assertError(
    await market.as(null).post("/api/auth/two-factor", { challenge, code: "123456" }),
    401,
    "INVALID_TOKEN",
  );
  const [message] = await emailsTo(market, email);
  assert.match(message!.subject, /password.*changed/);
  const { rows } = await market.query("select action, details from audit_log where action like 'password%'");
  assert.deepEqual(rows, [{ action: "password.changed", details: { sessionsEnded: 2, ...nothingRevoked } }]);
});

test("revokeAccess: ends API keys, grants, their tokens and secrets of own clients", async () => {
  const user = await market.createUser();
  const session = await market.createSession(user.userId);
  const client = await createOAuthClient(market, user);
  const ask = () =>
    postTokenRequest(market, client, { grant_type: "client_credentials", scope: "products:read" });
  const token = market.as((await ask()).body.access_token);
  assert.equal((await token.get("/v1/products")).status, 200);

  await session.delete("/v1/account/sessions");
  const unchanged = await change(session, { password: OLD });
  assert.deepEqual(unchanged.body.data, { sessionsEnded: 0, ...nothingRevoked });
  assert.equal((await user.get("/v1/products")).status, 200);
  assert.match((await emailsToUser(market, user.userId))[0]!.text, /go on/);

  const reply = await change(session, { password: NEW, revokeAccess: true });
  const revoked = { keysRevoked: 1, grantsRevoked: 0, clientSecretsRevoked: 1 };
  assert.deepEqual(reply.body.data, { sessionsEnded: 0, ...revoked });
  assertError(await user.get("/v1/products"), 401, "INVALID_API_KEY");
  assertError(await token.get("/v1/products"), 401, "INVALID_API_KEY");
  assertOAuthError(await ask(), 401, "invalid_client");
  assert.match(unwrapLines((await emailsToUser(market, user.userId))[0]!.text), /1 API keys/);
});

test("two parallel changes: the second fails, its session ended", async () => {
  const email = uniqueEmail();
  const owner = await registerAccount(market, email, OLD);
  const thief = await market.createSession(await idOf(email));
  const replies = await Promise.all([change(owner, { password: NEW }), change(thief, { password: NEW })]);
  assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 401]);
  assert.notEqual(await isSignedIn(owner), await isSignedIn(thief));
});

test("an account without a password, a fresh session: sets one", async () => {
  const email = uniqueEmail();
  const session = await signInByLink(market, email);
  assert.equal((await change(session, { password: NEW })).status, 200);
  assert.equal((await logIn(email, NEW)).status, 200);
});

suite("PUT /account/password requires", () => {
  test("the current password, once the sign-in is 15 minutes old", async () => {
    const email = uniqueEmail();
    const session = await registerAccount(market, email, OLD);
    market.clock.forward(15 * MINUTE_MS - 1);
    assert.equal((await change(session, { password: NEW })).status, 200);
    market.clock.forward(1);
    const details = assertError(await change(session, { password: OLD }), 403, "UNAUTHORIZED");
    assert.equal(details.required, "fresh-sign-in");
    assert.equal((await change(session, { password: OLD, currentPassword: NEW })).status, 200);
  });

  test("the right current password, in a fresh session too, in at most ten attempts in 15 minutes", async () => {
    const email = uniqueEmail();
    const session = await registerAccount(market, email, OLD);
    for (let tries = 0; tries < 10; tries++)
      assertError(
        await change(session, { password: NEW, currentPassword: "wrong" }),
        422,
        "VALIDATION_ERROR",
        "currentPassword",
      );
    const refusal = await change(session, { password: NEW, currentPassword: OLD });
    assertError(refusal, 429, "RATE_LIMIT_EXCEEDED");
    assert.equal(refusal.headers.get("retry-after"), "900");
    assert.equal((await logIn(email, OLD)).status, 200);
  });

  test("a new password that is long enough, uncommon and not the address", async () => {
    const session = await signInByLink(market, "charles.babbage@example.com");
    for (const password of ["short", "password", "charles.babbage", "x".repeat(201), "\u0001".repeat(9)])
      assertError(await change(session, { password }), 400, "INVALID_REQUEST", "password");
  });

  test("a session: an API key is refused", async () => {
    const user = await market.createUser();
    assertError(await change(user, { password: NEW }), 403, "UNAUTHORIZED");
    assertError(await change(market.as(null), { password: NEW }), 401, "INVALID_API_KEY");
  });

  test("the same origin, when the session is in a cookie", async () => {
    const session = await signInByLink(market, uniqueEmail());
    const cookie = `__Host-session=${session.key}`;
    const send = (headers: Record<string, string>) =>
      market
        .as(null)
        .request("PUT", "/v1/account/password", { json: { password: NEW }, headers: { cookie, ...headers } });
    for (const headers of [
      {},
      { "sec-fetch-site": "cross-site" },
      { origin: "https://evil.example" },
    ] as Record<string, string>[])
      assertError(await send(headers), 403, "UNAUTHORIZED");
    assert.equal((await send({ "sec-fetch-site": "same-origin" })).status, 200);
  });
});
