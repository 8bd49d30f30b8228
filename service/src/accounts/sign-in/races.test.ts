import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import { authenticatorOf, enableTwoFactor } from "../../../test/authenticator.ts";
import { registerAccount, requestMagicLink, uniqueEmail } from "../../../test/emails.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";

const PASSWORD = "correct horse battery staple";

let market: Market;
let email: string;
let owner: Client;
before(async () => {
  market = await openMarket();
});
beforeEach(async () => {
  email = uniqueEmail();
  owner = await registerAccount(market, email, PASSWORD);
});
after(() => market.close());

const post = (path: string, json: object) => market.as(null).post(`/api/auth/${path}`, json);
const logIn = (code?: string) => post("login", { email, password: PASSWORD, ...(code && { code }) });

/** Locks the account as the service does, starts `act`, then changes the account (`$1`) and commits while `act` waits for the lock. */
async function changeDuring(act: () => Promise<Reply>, change: string): Promise<Reply> {
  const client = await market.service.ctx.pool.connect();
  const { rows } = await client.query("select id from users where email = $1", [email]);
  await client.query("begin");
  await client.query("select 1 from users where id = $1 for no key update", [rows[0].id]);
  const reply = act();
  await waitForBlockedStatements(market);
  await client.query(change, [rows[0].id]);
  await client.query("commit");
  client.release();
  return reply;
}

async function sessions(): Promise<string[]> {
  const { rows } = await market.query(
    "select via from sessions s join users u on u.id = s.user_id where u.email = $1 order by s.id",
    [email],
  );
  return rows.map(({ via }) => via);
}

const FIRST_SESSION = "magic-link";
const TURN_ON = "update authenticators set confirmed_at = created_at where user_id = $1";
const BAN = "update users set banned_at = created_at where id = $1";
const CHANGE_PASSWORD = "update users set password_hash = 'another' where id = $1";

suite("a change during a sign-in", () => {
  for (const way of ["password", "link"]) {
    test(`by ${way}, a second factor is turned on: asks for the code`, async () => {
      const setUp = await owner.post("/v1/account/two-factor");
      const token = await requestMagicLink(market, email);
      const act = () => (way === "link" ? post("verify", { token }) : logIn());
      const { challenge } = assertError(await changeDuring(act, TURN_ON), 401, "TWO_FACTOR_REQUIRED");
      assert.deepEqual(await sessions(), [FIRST_SESSION]);
      const code = authenticatorOf(market, setUp.body.data.secret).code();
      assert.equal((await post("two-factor", { challenge, code })).status, 200);
    });

    test(`by ${way}, the account is banned: refused, and no session exists after an unban`, async () => {
      const token = await requestMagicLink(market, email);
      const act = () => (way === "link" ? post("verify", { token }) : logIn());
      const refusal = way === "link" ? "INVALID_TOKEN" : "INVALID_CREDENTIALS";
      assertError(await changeDuring(act, BAN), 401, refusal);
      assert.deepEqual(await sessions(), [FIRST_SESSION]);
    });
  }

  test("by password, the password changes: refused", async () => {
    assertError(await changeDuring(() => logIn(), CHANGE_PASSWORD), 401, "INVALID_CREDENTIALS");
    assert.deepEqual(await sessions(), [FIRST_SESSION]);
  });

  test("by password, the password changes: no challenge either", async () => {
    await enableTwoFactor(market, owner);
    assertError(await changeDuring(() => logIn(), CHANGE_PASSWORD), 401, "INVALID_CREDENTIALS");
  });

  test("with a code, the second factor is turned off: a session without second factor", async () => {
    const app = await enableTwoFactor(market, owner);
    const act = () => logIn(app.backupCodes[0]);
    const reply = await changeDuring(act, "delete from authenticators where user_id = $1");
    assert.equal(reply.status, 200, reply.text);
    const { rows } = await market.query("select second_factor from sessions order by id desc limit 1");
    assert.deepEqual(rows, [{ second_factor: false }]);
  });
});

test("the database connection breaks: 503, and the next sign-in works", async () => {
  const kill =
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and $1::uuid is not null";
  const reply = await changeDuring(() => logIn(), kill);
  assertError(reply, 503, "SERVICE_UNAVAILABLE");
  assert.deepEqual(await sessions(), [FIRST_SESSION]);
  assert.equal((await logIn()).status, 200);
});

test("the session ends while it turns on a second factor: it stays off", async () => {
  const thief = await market.createSession(await ownersId());
  const setUp = await thief.post("/v1/account/two-factor");
  const confirm = () =>
    thief.post("/v1/account/two-factor/confirm", {
      code: authenticatorOf(market, setUp.body.data.secret).code(),
    });
  const end = "update sessions set ended_at = created_at where user_id = $1 and via = 'operator'";
  assertError(await changeDuring(confirm, end), 401, "INVALID_API_KEY");
  assert.equal((await owner.get("/v1/account/two-factor")).body.data.enabled, false);
});

async function ownersId(): Promise<string> {
  return (await market.query("select id from users where email = $1", [email])).rows[0].id;
}
