import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { type Authenticator, enableTwoFactor } from "../../../test/authenticator.ts";
import {
  isSignedIn,
  registerAccount,
  requestMagicLink,
  sessionIdOf,
  signInByLink,
  uniqueEmail,
} from "../../../test/emails.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { toUuid } from "../../core/ids.ts";

const MINUTE_MS = 60_000;
const PASSWORD = "correct horse battery staple";

let market: Market;
let email: string;
let session: Client;
let app: Authenticator;
before(async () => {
  market = await openMarket();
  email = uniqueEmail();
  session = await registerAccount(market, email, PASSWORD);
  app = await enableTwoFactor(market, session);
});
after(() => market.close());

const post = (path: string, json: object, headers: Record<string, string> = {}) =>
  market.as(null).post(`/api/auth/${path}`, json, headers);
const logIn = (code?: string) => post("login", { email, password: PASSWORD, ...(code && { code }) });
const answer = (challenge: string, code: string, headers: Record<string, string> = {}) =>
  post("two-factor", { challenge, code }, headers);

function challengeOf(reply: Reply): string {
  const { challenge } = assertError(reply, 401, "TWO_FACTOR_REQUIRED");
  assert.equal(reply.headers.get("set-cookie"), null);
  assert.equal(reply.body.sessionToken, undefined);
  return challenge;
}

async function sessionOf(reply: Reply) {
  assert.equal(reply.status, 200, reply.text);
  const id = toUuid("ses", sessionIdOf(reply.body.sessionToken));
  const { rows } = await market.query("select via, second_factor from sessions where id = $1", [id]);
  return rows[0];
}

/** So that neither this test's wrong codes nor its right ones are the next one's. */
const later = () => market.clock.forward(16 * MINUTE_MS);

suite("two-factor authentication is on", () => {
  test("a right password: no session without the code, in the same request or the next", async () => {
    later();
    const challenge = challengeOf(await logIn());
    const second = await answer(challenge, app.nextCode());
    assert.deepEqual(await sessionOf(second), { via: "password", second_factor: true });
    assert.ok(await isSignedIn(market.as(second.body.sessionToken)));
    assert.match(second.headers.get("set-cookie")!, /^__Host-session=/);
    const together = await logIn(app.nextCode());
    assert.deepEqual(await sessionOf(together), { via: "password", second_factor: true });
  });

  test("a magic link: asks for the code too", async () => {
    later();
    const token = await requestMagicLink(market, email);
    const challenge = challengeOf(await post("verify", { token }));
    assertError(await post("verify", { token }), 401, "INVALID_TOKEN");
    assert.deepEqual(await sessionOf(await answer(challenge, app.nextCode())), {
      via: "magic-link",
      second_factor: true,
    });
  });

  test("wrong codes: one log line each, and an audit entry for the 1st, 10th … of an account", async () => {
    later();
    const { id } = (await session.get("/v1/account")).body.data;
    const challenge = challengeOf(await logIn());
    for (let tries = 0; tries < 3; tries++)
      assertError(await answer(challenge, app.wrongCode()), 401, "INVALID_CREDENTIALS");
    const { rows } = await market.query(
      `select action, details->'via' as via, details->'failures' as failures, target_id from audit_log
        where action = 'sign_in.code_refused'`,
    );
    assert.deepEqual(rows, [{ action: "sign_in.code_refused", via: "password", failures: 1, target_id: id }]);
    const lines = market.logs
      .map((line) => JSON.parse(line))
      .filter(({ action }) => action === "sign_in.code_refused");
    assert.deepEqual(
      lines.map(({ ip, account, msg }) => [ip, account, msg]),
      Array.from({ length: 3 }, () => ["127.0.0.1", id, "a sign-in failed: wrong second-factor code"]),
    );
  });

  test("login, a wrong code: refused; a wrong password: no challenge", async () => {
    later();
    assertError(await logIn(app.wrongCode()), 401, "INVALID_CREDENTIALS");
    const reply = await post("login", { email, password: "wrong", code: app.nextCode() });
    assertError(reply, 401, "INVALID_CREDENTIALS");
    assert.equal((await logIn(app.code())).status, 200, "the code was not used up by the wrong password");
  });
});

suite("a challenge", () => {
  test("survives wrong codes until the account is locked; the lock ends after 15 minutes", async () => {
    later();
    const challenge = challengeOf(await logIn());
    for (let tries = 0; tries < 4; tries++)
      assertError(await answer(challenge, app.wrongCode()), 401, "INVALID_CREDENTIALS");
    assert.equal((await answer(challenge, app.nextCode())).status, 200);
    const another = challengeOf(await logIn());
    for (let tries = 0; tries < 5; tries++) await answer(another, app.wrongCode());
    assertError(await answer(another, app.nextCode()), 429, "RATE_LIMIT_EXCEEDED");
    later();
    assertError(await answer(another, app.nextCode()), 401, "INVALID_TOKEN");
    assert.equal((await logIn(app.nextCode())).status, 200);
  });

  test("a right code: redeems it", async () => {
    later();
    const challenge = challengeOf(await logIn());
    assert.equal((await answer(challenge, app.nextCode())).status, 200);
    assertError(await answer(challenge, app.nextCode()), 401, "INVALID_TOKEN");
  });

  test("parallel calls, one code or several backup codes: exactly one succeeds", async () => {
    later();
    const code = app.nextCode();
    const backups = app.backupCodes.splice(0, 4);
    for (const codes of [Array.from({ length: 4 }, () => code), backups]) {
      const challenge = challengeOf(await logIn());
      const replies = await Promise.all(codes.map((one) => answer(challenge, one)));
      assert.equal(replies.filter(({ status }) => status === 200).length, 1);
      later();
    }
  });

  test("works for five minutes", async () => {
    later();
    const [early, late] = [challengeOf(await logIn()), challengeOf(await logIn())];
    market.clock.forward(5 * MINUTE_MS - 1);
    assert.equal((await answer(early, app.code())).status, 200);
    market.clock.forward(1);
    assertError(await answer(late, app.nextCode()), 401, "INVALID_TOKEN");
  });

  test("a challenge as link, a link as challenge, unknown or malformed: the same answer", async () => {
    later();
    const challenge = challengeOf(await logIn());
    assertError(await post("verify", { token: challenge }), 401, "INVALID_TOKEN");
    const token = await requestMagicLink(market, email);
    const errors = new Set<string>();
    for (const wrong of [token, "x".repeat(43), "", session.key]) {
      const reply = await answer(wrong, app.nextCode());
      assertError(reply, 401, "INVALID_TOKEN");
      errors.add(JSON.stringify(reply.body.error));
    }
    assert.equal(errors.size, 1);
    assert.equal((await answer(challenge, app.nextCode())).status, 200);
  });

  test("the user is banned meanwhile: refused", async () => {
    later();
    const challenge = challengeOf(await logIn());
    await market.query("update users set banned_at = $1 where email = $2", [market.clock.now, email]);
    assertError(await answer(challenge, app.nextCode()), 401, "INVALID_TOKEN");
    await market.query("update users set banned_at = null where email = $1", [email]);
  });

  test("answered: the previous session of the browser ends", async () => {
    later();
    const planted = await signInByLink(market, uniqueEmail());
    const cookie = { cookie: `__Host-session=${planted.key}` };
    const challenge = challengeOf(await post("login", { email, password: PASSWORD }, cookie));
    assert.ok(await isSignedIn(planted), "half a sign-in ends nothing");
    assert.equal((await answer(challenge, app.nextCode(), cookie)).status, 200);
    assert.ok(!(await isSignedIn(planted)));
  });
});
