import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import {
  isSignedIn,
  registerAccount,
  requestMagicLink,
  uniqueEmail,
  withoutMeta,
} from "../../../test/emails.ts";
import { isFullSize } from "../../../test/full-size.ts";
import { assertError, type Market, openMarket } from "../../../test/market.ts";
import { statementsOf } from "../../../test/statements.ts";
import { createUser } from "../people/users.ts";
import { countAttempts } from "./attempts.ts";

const MINUTE_MS = 60_000;
const PASSWORD = "correct horse battery staple";

let market: Market;
let email: string;
before(async () => {
  market = await openMarket({ config: { trustProxy: ["127.0.0.1"] } });
  email = uniqueEmail();
  await registerAccount(market, email, PASSWORD);
});
after(() => market.close());

const logIn = (address: string, password: string, headers: Record<string, string> = {}) =>
  market.as(null).post("/api/auth/login", { email: address, password }, headers);

test("POST /api/auth/login: the address in any case, the password in any normal form", async () => {
  const address = uniqueEmail();
  await registerAccount(market, address, "Caf\u00e9 au lait");
  for (const [spelling, password] of [
    [address, "Caf\u00e9 au lait"],
    [address.toUpperCase(), "Cafe\u0301 au lait"],
  ] as const) {
    const reply = await logIn(spelling, password);
    assert.equal(reply.status, 200, reply.text);
    assert.equal(reply.body.sessionToken, reply.body.data.sessionToken);
    assert.match(reply.headers.get("set-cookie")!, /^__Host-session=/);
    assert.ok(await isSignedIn(market.as(reply.body.sessionToken)));
  }
  assertError(await logIn(address, "caf\u00e9 au lait"), 401, "INVALID_CREDENTIALS");
});

test("an unknown, unverified, banned or passwordless address, or a wrong password: one answer, equal statements", async () => {
  const { ctx } = market.service;
  const { rows } = await market.query("select password_hash from users where email = $1", [email]);
  const [unproven, withoutPassword, banned] = [uniqueEmail(), uniqueEmail(), uniqueEmail()];
  const passwordHash = rows[0].password_hash;
  await createUser(ctx, { email: unproven, name: "U", emailVerified: false, passwordHash });
  await createUser(ctx, { email: withoutPassword, name: "W" });
  await createUser(ctx, { email: banned, name: "B", passwordHash });
  await market.query("update users set banned_at = $1 where email = $2", [market.clock.now, banned]);
  const wrong = uniqueEmail();
  await registerAccount(market, wrong, "another password");

  const answers: unknown[] = [];
  const statements: string[][] = [];
  for (const address of [wrong, uniqueEmail(), unproven, withoutPassword, banned]) {
    statements.push(
      await statementsOf(async () => {
        const reply = await logIn(address, PASSWORD);
        assertError(reply, 401, "INVALID_CREDENTIALS");
        answers.push(withoutMeta(reply));
      }),
    );
  }
  assert.ok(statements[0]!.length >= 4);
  for (const other of statements) assert.deepEqual(other, statements[0]);
  for (const other of answers) assert.deepEqual(other, answers[0]);
});

suite("wrong passwords", () => {
  test("one address, known or not: at most ten in 15 minutes, and a magic link still works", async () => {
    const known = uniqueEmail();
    await registerAccount(market, known, PASSWORD);
    for (const address of [known, uniqueEmail()]) {
      for (let tries = 0; tries < 10; tries++)
        assertError(await logIn(address, "wrong"), 401, "INVALID_CREDENTIALS");
      const refusal = await logIn(address, PASSWORD);
      assertError(refusal, 429, "RATE_LIMIT_EXCEEDED");
      assert.equal(refusal.headers.get("retry-after"), "900");
    }
    const token = await requestMagicLink(market, known);
    assert.equal((await market.as(null).post("/api/auth/verify", { token })).status, 200);
    market.clock.forward(15 * MINUTE_MS);
    assert.equal((await logIn(known, PASSWORD)).status, 200);
  });

  test("30 at once: counted before the check, ten are checked", async () => {
    const address = uniqueEmail();
    const replies = await Promise.all(Array.from({ length: 30 }, () => logIn(address, "wrong")));
    assert.equal(replies.filter(({ status }) => status === 401).length, 10);
    assert.equal(replies.filter(({ status }) => status === 429).length, 20);
  });

  test("one network: at most a hundred in 10 minutes", async () => {
    const from = (ip: string) => logIn(uniqueEmail(), "wrong", { "x-forwarded-for": ip });
    const { ctx } = market.service;
    // Each attempt verifies a password, which takes long, so most are counted without it.
    const counted = isFullSize ? 0 : 90;
    await ctx.db.transaction().execute(async (tx) => {
      for (let tries = 0; tries < counted; tries++)
        await countAttempts(ctx, tx, [["login from a network", "192.0.2.9"]]);
    });
    const replies = await Promise.all(Array.from({ length: 110 - counted }, () => from("192.0.2.9")));
    assert.equal(replies.filter(({ status }) => status === 429).length, 10);
    assert.equal((await from("192.0.2.10")).status, 401);
  });
});

suite("a browser in which the owner signed in", () => {
  const knownTo = async (address: string) => {
    const reply = await logIn(address, PASSWORD);
    return { cookie: /__Host-known=[^;]+/.exec(reply.headers.get("set-cookie")!)![0] };
  };
  const isClosed = async (address: string) => {
    for (let tries = 0; tries < 10; tries++) await logIn(address, "wrong");
    assertError(await logIn(address, PASSWORD), 429, "RATE_LIMIT_EXCEEDED");
  };

  test("strangers used up the address's attempts: the owner's browser still works, by its sealed cookie only", async () => {
    const [address, other] = [uniqueEmail(), email];
    await registerAccount(market, address, PASSWORD);
    const known = await knownTo(address);
    const { cookie } = known;
    await isClosed(address);
    for (const forged of [cookie.slice(0, -2), "__Host-known=", `__Host-known=["x","${address}"]`])
      assertError(await logIn(address, PASSWORD, { cookie: forged }), 429, "RATE_LIMIT_EXCEEDED");
    assertError(await logIn(address, PASSWORD, await knownTo(other)), 429, "RATE_LIMIT_EXCEEDED");
    assert.equal((await logIn(address, PASSWORD, known)).status, 200);
  });

  test("ten wrong passwords of its own, in parallel too", async () => {
    const address = uniqueEmail();
    await registerAccount(market, address, PASSWORD);
    const known = await knownTo(address);
    const guesses = Array.from({ length: 15 }, () => logIn(address, "wrong", known));
    const checked = (await Promise.all(guesses)).filter(({ status }) => status === 401);
    assert.equal(checked.length, 10);
  });
});

test("right passwords: not counted", async () => {
  const address = uniqueEmail();
  await registerAccount(market, address, PASSWORD);
  for (let tries = 0; tries < 9; tries++) await logIn(address, "wrong");
  for (let tries = 0; tries < 2; tries++) assert.equal((await logIn(address, PASSWORD)).status, 200);
  assertError(await logIn(address, "wrong"), 401, "INVALID_CREDENTIALS");
  assertError(await logIn(address, PASSWORD), 429, "RATE_LIMIT_EXCEEDED");
});

test("POST /api/auth/login: neither hash nor password in an answer or a log line", async () => {
  const { rows } = await market.query("select password_hash from users where email = $1", [email]);
  assert.match(rows[0].password_hash, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  const replies = [await logIn(email, PASSWORD), await logIn(email, "SECRETMARK")];
  for (const { text } of replies) assert.doesNotMatch(text, /argon2|SECRETMARK|correct horse/);
  assert.doesNotMatch(market.logs.join("\n"), /argon2|SECRETMARK|correct horse/);
});
