import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { enableTwoFactor } from "../../../test/authenticator.ts";
import {
  isSignedIn,
  registerAccount,
  requestMagicLink,
  sessionIdOf,
  signInByLink,
  tokenFromEmail,
  uniqueEmail,
} from "../../../test/emails.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { createKeyAsOperator } from "../api-keys/keys.ts";
import { linkIdentity } from "../people/identities.ts";
import { createUser } from "../people/users.ts";
import { mintOneTimeToken } from "./one-time-tokens.ts";

const MINUTE_MS = 60_000;
const PASSWORD = "correct horse battery staple";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

const verify = (token: unknown, headers: Record<string, string> = {}) =>
  market.as(null).post("/api/auth/verify", { token }, headers);
const logIn = (email: string, password: string) =>
  market.as(null).post("/api/auth/login", { email, password });
const withCookie = (session: Client) => ({ cookie: `__Host-session=${session.key}` });

async function userWith(email: string) {
  const { rows } = await market.query("select * from users where email = $1", [email]);
  return rows[0];
}

async function auditOf(userId: string): Promise<{ action: string; details: Record<string, unknown> }[]> {
  const { rows } = await market.query(
    "select action, details from audit_log where actor_id = $1 order by id",
    [userId],
  );
  return rows;
}

suite("a magic link", () => {
  test("the token: in the envelope, beside it and in the cookie; it works at the API", async () => {
    const reply = await verify(await requestMagicLink(market, uniqueEmail()));
    assert.equal(reply.status, 200, reply.text);
    assert.equal(reply.body.data.sessionToken, reply.body.sessionToken);
    assert.equal(
      reply.headers.getSetCookie()[0],
      `__Host-session=${reply.body.sessionToken}; Max-Age=2592000; Path=/; HttpOnly; Secure; SameSite=Lax`,
    );
    assert.equal(reply.headers.get("cache-control"), "no-store");
    assert.ok(await isSignedIn(market.as(reply.body.sessionToken)));
  });

  test("an unknown address: a verified account with a name that reveals no part of the address", async () => {
    const email = `grace.hopper+shop@${crypto.randomUUID()}.example`;
    await signInByLink(market, email);
    const user = await userWith(email);
    assert.match(user.name, /^Member [0-9a-f]{6}$/);
    assert.deepEqual(user.email_verified_at, market.clock.now);
    assert.equal(user.verified, false, "the author's badge is for moderators to give");
    assert.equal(user.role, "user");
    assert.deepEqual(
      (await auditOf(user.id)).map(({ action }) => action),
      ["user.registered", "session.started"],
    );
  });

  test("a known address in any spelling: its account", async () => {
    const email = uniqueEmail();
    const userId = await createUser(market.service.ctx, { email: email.toUpperCase(), name: "Known" });
    await market.as(null).post("/api/auth/magic-link", { email: email.replace("example", "Example") });
    await verify(await tokenFromEmail(market, email));
    assert.equal((await userWith(email)).id, userId);
    assert.deepEqual(
      (await auditOf(userId)).map(({ action }) => action),
      ["session.started"],
    );
  });

  test("20 parallel redemptions: exactly one succeeds", async () => {
    const email = uniqueEmail();
    const token = await requestMagicLink(market, email);
    const replies = await Promise.all(Array.from({ length: 20 }, () => verify(token)));
    const losers = replies.filter(({ status }) => status !== 200);
    assert.equal(losers.length, 19);
    for (const loser of losers) assertError(loser, 401, "INVALID_TOKEN");
    const { rows } = await market.query("select count(*) from sessions where user_id = $1", [
      (await userWith(email)).id,
    ]);
    assert.equal(rows[0].count, 1);
  });

  test("two links of an unknown address, redeemed at once: one account", async () => {
    const email = uniqueEmail();
    const first = await requestMagicLink(market, email);
    market.clock.forward(MINUTE_MS);
    const second = await requestMagicLink(market, email);
    const replies = await Promise.all([verify(first), verify(second)]);
    assert.deepEqual(
      replies.map(({ status }) => status),
      [200, 200],
    );
    const { rows } = await market.query("select id from users where email = $1", [email]);
    assert.equal(rows.length, 1);
  });

  test("a newer link, requested or used: the older one stays valid", async () => {
    const email = uniqueEmail();
    const older = await requestMagicLink(market, email);
    market.clock.forward(MINUTE_MS);
    assert.equal((await verify(await requestMagicLink(market, email))).status, 200);
    assert.equal((await verify(older)).status, 200);
  });

  test("works for ten minutes", async () => {
    const [early, late] = [
      await requestMagicLink(market, uniqueEmail()),
      await requestMagicLink(market, uniqueEmail()),
    ];
    market.clock.forward(10 * MINUTE_MS - 1);
    assert.equal((await verify(early)).status, 200);
    market.clock.forward(1);
    assertError(await verify(late), 401, "INVALID_TOKEN");
  });
});

test("unknown, used, expired, malformed or banned: the same answer", async () => {
  const used = await requestMagicLink(market, uniqueEmail());
  await verify(used);
  const expired = await requestMagicLink(market, uniqueEmail());
  market.clock.forward(10 * MINUTE_MS);
  const email = uniqueEmail();
  const userId = await createUser(market.service.ctx, { email, name: "Banned" });
  await market.query("update users set banned_at = $1 where id = $2", [market.clock.now, userId]);
  const banned = await requestMagicLink(market, email);
  const challenge = await mintOneTimeToken(market.service.ctx, market.service.ctx.db, {
    purpose: "two-factor",
    userId,
    lifetimeMs: MINUTE_MS,
  });
  const tokens = [used, expired, banned, challenge, "x".repeat(43), "", "a.b.c", "'; drop table users", "é"];
  const errors = new Set<string>();
  for (const token of tokens) {
    const reply = await verify(token);
    assertError(reply, 401, "INVALID_TOKEN");
    assert.equal(reply.headers.get("set-cookie"), null);
    errors.add(JSON.stringify(reply.body.error));
  }
  assert.equal(errors.size, 1);
  for (const token of [undefined, null, 7, ["x"]])
    assertError(await verify(token), 400, "INVALID_REQUEST", "token");
});

suite("pre-account hijack:", () => {
  test("a stranger's registered password: refused after the owner used a link", async () => {
    const email = uniqueEmail();
    await market.as(null).post("/api/auth/register", { email, password: "the stranger's", name: "Eve" });
    const strangersLink = await tokenFromEmail(market, email);
    const owner = await signInByLink(market, email);
    assert.equal((await userWith(email)).password_hash, null);
    assertError(await logIn(email, "the stranger's"), 401, "INVALID_CREDENTIALS");
    assert.equal((await verify(strangersLink)).status, 200, "the link proves the mailbox all the same");
    assertError(await logIn(email, "the stranger's"), 401, "INVALID_CREDENTIALS");
    assert.ok(await isSignedIn(owner));
  });

  test("the first proof deletes password, second factor, identities, sessions, keys and challenges", async () => {
    const email = uniqueEmail();
    const { ctx } = market.service;
    const donor = uniqueEmail();
    await registerAccount(market, donor, PASSWORD);
    const userId = await createUser(ctx, {
      email,
      name: "Squatter",
      emailVerified: false,
      passwordHash: (await userWith(donor)).password_hash,
    });
    const { key } = await createKeyAsOperator(ctx, {
      userId,
      name: "squatter",
      permissions: ["purchases:read"],
    });
    const session = await market.createSession(userId);
    await enableTwoFactor(market, session);
    await ctx.db
      .transaction()
      .execute((tx) => linkIdentity(ctx, tx, { provider: "github", subject: "squatter" }, userId));
    const challenge = await mintOneTimeToken(ctx, ctx.db, {
      purpose: "two-factor",
      userId,
      lifetimeMs: 60 * MINUTE_MS,
    });
    assertError(await logIn(email, PASSWORD), 401, "INVALID_CREDENTIALS");
    assert.ok(await isSignedIn(market.as(key)));

    const owner = await signInByLink(market, email);
    assert.ok(await isSignedIn(owner));
    for (const credential of [session, market.as(key)])
      assertError(await credential.get("/v1/purchases"), 401, "INVALID_API_KEY");
    assertError(await logIn(email, PASSWORD), 401, "INVALID_CREDENTIALS");
    assertError(
      await market.as(null).post("/api/auth/two-factor", { challenge, code: "123456" }),
      401,
      "INVALID_TOKEN",
    );
    const user = await userWith(email);
    assert.deepEqual([user.email_verified_at, user.password_hash], [market.clock.now, null]);
    assert.deepEqual((await market.query("select 1 from identities where user_id = $1", [userId])).rows, []);
    const proof = (await auditOf(userId)).find(({ action }) => action === "mailbox.proven");
    assert.deepEqual(proof?.details, { by: "magic-link", sessionsEnded: 1, keysRevoked: 1 });
  });

  test("a later proof: deletes nothing", async () => {
    const email = uniqueEmail();
    const first = await registerAccount(market, email, PASSWORD);
    market.clock.forward(MINUTE_MS);
    const second = await signInByLink(market, email);
    assert.ok(await isSignedIn(first));
    assert.ok(await isSignedIn(second));
    assert.equal((await logIn(email, PASSWORD)).status, 200);
  });
});

suite("session fixation and login CSRF:", () => {
  test("each sign-in: a session with a new id", async () => {
    const email = uniqueEmail();
    const first = await registerAccount(market, email, PASSWORD);
    const second = await logIn(email, PASSWORD);
    assert.notEqual(sessionIdOf(first.key), sessionIdOf(second.body.sessionToken));
  });

  test("a planted session: ends, and the owner gets a new one", async () => {
    const attacker = await signInByLink(market, uniqueEmail());
    const victim = uniqueEmail();
    const reply = await verify(await requestMagicLink(market, victim), withCookie(attacker));
    assert.equal(reply.status, 200);
    assert.notEqual(sessionIdOf(reply.body.sessionToken), sessionIdOf(attacker.key));
    assert.ok(!(await isSignedIn(attacker)));
    const owner = await userWith(victim);
    const { rows } = await market.query(
      "select user_id from sessions where ended_at is null and user_id = $1",
      [owner.id],
    );
    assert.equal(rows.length, 1);
  });

  test("a sign-in by password: ends the browser's previous session", async () => {
    const earlier = await signInByLink(market, uniqueEmail());
    const email = uniqueEmail();
    await registerAccount(market, email, PASSWORD);
    const credentials = { email, password: PASSWORD };
    await market.as(null).post("/api/auth/login", { ...credentials, password: "wrong" }, withCookie(earlier));
    assert.ok(await isSignedIn(earlier), "a failed one ends nothing");
    await market.as(null).post("/api/auth/login", credentials, withCookie(earlier));
    assert.ok(!(await isSignedIn(earlier)));
  });

  test("a foreign cookie: ignored", async () => {
    for (const cookie of ["__Host-session=", "__Host-session=a.b.c", `__Host-session=${"x".repeat(3000)}`]) {
      assert.equal((await verify(await requestMagicLink(market, uniqueEmail()), { cookie })).status, 200);
    }
  });

  for (const path of ["verify", "login", "register", "two-factor", "magic-link", "logout"]) {
    test(`POST ${path} from a page of another site: refused`, async () => {
      for (const headers of [
        { "sec-fetch-site": "cross-site" },
        { "sec-fetch-site": "same-site" },
        { "sec-fetch-site": "none" },
        { origin: "https://evil.example" },
        { origin: "null" },
        { "sec-fetch-site": "cross-site", origin: market.origin },
      ] as Record<string, string>[]) {
        const reply = await market.as(null).post(`/api/auth/${path}`, {}, headers);
        assertError(reply, 403, "UNAUTHORIZED");
        assert.equal(reply.headers.get("set-cookie"), null);
      }
    });
  }

  test("a form of another site, which cannot send JSON: 415", async () => {
    const token = await requestMagicLink(market, uniqueEmail());
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
      const reply = await market.as(null).request("POST", "/api/auth/verify", {
        body: JSON.stringify({ token }),
        headers: { "content-type": type },
      });
      assertError(reply, 415, "UNSUPPORTED_MEDIA_TYPE");
    }
    assert.equal((await verify(token, { "sec-fetch-site": "same-origin" })).status, 200);
  });
});

test("a ban: ends the session at once, and every sign-in is refused", async () => {
  const email = uniqueEmail();
  const session = await registerAccount(market, email, PASSWORD);
  assert.ok(await isSignedIn(session));
  await market.query("update users set banned_at = $1 where email = $2", [market.clock.now, email]);
  assertError(await session.get("/v1/purchases"), 401, "INVALID_API_KEY");
  assertError(await logIn(email, PASSWORD), 401, "INVALID_CREDENTIALS");
  assertError(await verify(await requestMagicLink(market, email)), 401, "INVALID_TOKEN");
  const { rows } = await market.query("select count(*) from sessions where user_id = $1", [
    (await userWith(email)).id,
  ]);
  assert.equal(rows[0].count, 1, "no session was started meanwhile");
});
