import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { isSignedIn, signInByLink, uniqueEmail } from "../../../test/emails.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";

let market: Market;
let session: Client;
before(async () => {
  market = await openMarket();
  session = await signInByLink(market, uniqueEmail());
});
after(() => market.close());

const logOut = (headers: Record<string, string>) =>
  market.as(null).post("/api/auth/logout", undefined, headers);
const cookieOf = ({ key }: Client) => ({ cookie: `__Host-session=${key}` });
const bearerOf = ({ key }: Client) => ({ authorization: `Bearer ${key}` });

function assertCookieCleared(reply: Reply) {
  assert.equal(
    reply.headers.get("set-cookie"),
    "__Host-session=; Max-Age=0; Path=/; HttpOnly; Secure; SameSite=Lax",
  );
}

test("POST /api/auth/logout: the session of the cookie ends, and the cookie is cleared", async () => {
  const one = await signInByLink(market, uniqueEmail());
  assert.ok(await isSignedIn(one));
  const reply = await logOut(cookieOf(one));
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(reply.body.data, { signedOut: true });
  assertCookieCleared(reply);
  assert.ok(!(await isSignedIn(one)));
  const { rows } = await market.query("select action from audit_log order by id desc limit 1");
  assert.deepEqual(rows, [{ action: "session.ended" }]);
});

test("POST /api/auth/logout, a token in the header: that session ends, no other", async () => {
  const one = await signInByLink(market, uniqueEmail());
  assert.equal((await logOut({ ...bearerOf(one), ...cookieOf(session) })).status, 200);
  assert.ok(!(await isSignedIn(one)));
  assert.ok(await isSignedIn(session));
});

test("POST /api/auth/logout, no live session: 401, and the cookie is cleared", async () => {
  const over = await signInByLink(market, uniqueEmail());
  await logOut(bearerOf(over));
  const user = await market.createUser();
  for (const headers of [
    {},
    cookieOf(over),
    bearerOf(over),
    bearerOf(user),
    { cookie: "__Host-session=a.b.c" },
    { authorization: "Basic eDp5" },
    { ...cookieOf(session), authorization: "Bearer a.b.c" },
  ] as Record<string, string>[]) {
    const reply = await logOut(headers);
    assertError(reply, 401, "INVALID_SESSION");
    assertCookieCleared(reply);
  }
  assert.ok(await isSignedIn(session), "a bad header never falls through to the cookie");
});

test("parallel POST /api/auth/logout: one ends the session, no other session ends", async () => {
  const one = await signInByLink(market, uniqueEmail());
  const replies = await Promise.all(Array.from({ length: 8 }, () => logOut(bearerOf(one))));
  assert.ok(replies.some(({ status }) => status === 200));
  assert.ok(!(await isSignedIn(one)));
  assert.ok(await isSignedIn(session));
});
