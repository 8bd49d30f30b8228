import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import { enableTwoFactor } from "../../../test/authenticator.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { toId } from "../../core/ids.ts";
import { SESSION_COOKIE } from "../../platform/http/authenticate.ts";
import { createFirstAdminLink } from "./first-admin.ts";

const MINUTE_MS = 60_000;

let market: Market;
before(async () => {
  market = await openMarket();
});
beforeEach(async () => {
  await market.query("update users set role = 'user' where role = 'admin'");
});
after(() => market.close());

const tokenIn = (link: string | null) => /^http\S+\/auth\/first-admin#token=([\w-]{43})$/.exec(link!)![1]!;
/** The link that a start prints. */
const start = async () => tokenIn(await createFirstAdminLink(market.service.ctx));
const redeem = (who: Client, token: string) => who.post("/api/auth/first-admin", { token });
const hasSession = async () => market.createSession((await market.createUser()).userId);
const admins = async () =>
  (await market.query("select id from users where role = 'admin'")).rows.map(({ id }) => id as string);

suite("the first administrator", () => {
  test("a signed-in user who opens the link; the page asks for two factors", async () => {
    const session = await hasSession();
    const reply = await redeem(session, await start());
    assert.equal(reply.status, 200, reply.text);
    const { id, role, twoFactor, message } = reply.body.data;
    assert.deepEqual([id, role, twoFactor], [toId("usr", session.userId), "admin", { enabled: false }]);
    assert.match(message, /two-factor/);
    assert.deepEqual(await admins(), [session.userId]);
  });

  test("admin rights: only after two factors are set up", async () => {
    const session = await hasSession();
    await redeem(session, await start());
    const details = assertError(await session.get("/v1/admin/users"), 403, "UNAUTHORIZED");
    assert.equal(details.required, "two-factor");
    await enableTwoFactor(market, session);
    assert.equal((await session.get("/v1/admin/users")).status, 200);
  });

  test("the session may come from a cookie", async () => {
    const { key, userId } = await hasSession();
    const headers = { cookie: `${SESSION_COOKIE}=${key}`, "sec-fetch-site": "same-origin" };
    const reply = await market.as(null).post("/api/auth/first-admin", { token: await start() }, headers);
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual(await admins(), [userId]);
  });

  test("no session, or an API key: refused, the link stays valid", async () => {
    const token = await start();
    const member = await market.createUser();
    for (const client of [market.as(null), member, market.as("x.y.z")])
      assertError(await redeem(client, token), 401, "INVALID_SESSION");
    const badHeader = {
      authorization: "Bearer x.y.z",
      cookie: `${SESSION_COOKIE}=${(await hasSession()).key}`,
    };
    const reply = await market.as(null).post("/api/auth/first-admin", { token }, badHeader);
    assertError(reply, 401, "INVALID_SESSION");
    assert.equal((await redeem(await hasSession(), token)).status, 200);
  });

  test("an audit entry without the token", async () => {
    const session = await hasSession();
    const token = await start();
    await redeem(session, token);
    const { rows } = await market.query(
      "select action, target_id, details::text from audit_log where actor_id = $1",
      [session.userId],
    );
    assert.equal(rows.length, 1);
    assert.deepEqual([rows[0].action, rows[0].target_id], ["user.changed", toId("usr", session.userId)]);
    assert.ok(!JSON.stringify(rows).includes(token));
  });
});

suite("the link of the first administrator", () => {
  test("works once; of parallel calls, one succeeds", async () => {
    const token = await start();
    const sessions = await Promise.all(Array.from({ length: 8 }, hasSession));
    const replies = await Promise.all(sessions.map((session) => redeem(session, token)));
    assert.deepEqual(
      replies.map(({ status }) => status).sort(),
      [200, ...Array.from({ length: 7 }, () => 401)].sort(),
    );
    assert.equal((await admins()).length, 1);
    assertError(await redeem(sessions[0]!, token), 401, "INVALID_TOKEN");
  });

  test("works for 30 minutes", async () => {
    const [early, late] = [await start(), await hasSession()];
    market.clock.forward(30 * MINUTE_MS);
    assertError(await redeem(late, early), 401, "INVALID_TOKEN");
    const token = await start();
    market.clock.forward(30 * MINUTE_MS - 1);
    assert.equal((await redeem(late, token)).status, 200);
  });

  test("ends with the next start", async () => {
    const [first, second] = [await start(), await start()];
    const session = await hasSession();
    assertError(await redeem(session, first), 401, "INVALID_TOKEN");
    assert.equal((await redeem(session, second)).status, 200);
  });

  test("none while an administrator exists, and the last link ends", async () => {
    const token = await start();
    const admin = await market.createUser({ role: "admin" });
    assertError(await redeem(await hasSession(), token), 409, "INVALID_STATE");
    assert.equal(await createFirstAdminLink(market.service.ctx), null);
    assertError(await redeem(await hasSession(), token), 401, "INVALID_TOKEN");
    assert.deepEqual(await admins(), [admin.userId]);
  });

  test("created again after the only administrator has left", async () => {
    const admin = await market.createUser({ role: "admin" });
    await market.query("update users set closed_at = $2, role = 'user' where id = $1", [
      admin.userId,
      market.clock.now,
    ]);
    assert.equal((await redeem(await hasSession(), await start())).status, 200);
  });

  test("stored as a digest only, and in no log line", async () => {
    const token = await start();
    await redeem(await hasSession(), token);
    const { rows } = await market.query("select t::text as row from one_time_tokens t");
    assert.ok(rows.length > 0 && rows.every(({ row }) => !row.includes(token)));
    assert.ok(market.logs.every((line) => !line.includes(token)));
  });
});
