import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, suite, test } from "node:test";
import { decodeJwt, decodeProtectedHeader } from "jose";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { becomes } from "../../../test/until.ts";
import { DAY_MS } from "../../core/dates.ts";
import { toId } from "../../core/ids.ts";
import { authenticateSession, endSessions, startSession } from "./sessions.ts";

const source = { ip: "192.0.2.7", userAgent: "test", requestId: "test" };

let market: Market;
let member: Client;
before(async () => {
  market = await openMarket();
  member = await market.createUser({ name: "Ada" });
});
after(() => market.close());

const user = async () => {
  const { rows } = await market.query("select id, email, name from users where id = $1", [member.userId]);
  return rows[0] as { id: string; email: string; name: string };
};

async function start(): Promise<string> {
  const { ctx } = market.service;
  return startSession(ctx, ctx.db, { user: await user(), via: "operator", secondFactor: false, source });
}

const isLive = async (token: string) => (await market.as(token).get("/v1/categories")).status === 200;

suite("a session token", () => {
  test("has the five claims of the specification and its own id, and no role", async () => {
    const token = await start();
    const { email, name } = await user();
    const issuedAt = market.clock.now.getTime() / 1000;
    const { jti, ...claims } = decodeJwt(token);
    assert.deepEqual(claims, {
      sub: toId("usr", member.userId),
      email,
      name,
      iat: issuedAt,
      exp: issuedAt + 2_592_000,
    });
    assert.match(jti!, /^ses_[0-9a-z]{26}$/);
    assert.equal(decodeProtectedHeader(token).alg, "HS256");
  });

  test("two sign-ins in one second: two different tokens", async () => {
    assert.notEqual(await start(), await start());
  });

  test("used regularly: works for 30 days and not longer", async () => {
    const token = await start();
    for (let days = 0; days < 30; days += 10) {
      assert.ok(await isLive(token), `on day ${days}`);
      await lastSeenIsNow(token);
      market.clock.forward(10 * DAY_MS - (days === 20 ? 1000 : 0));
    }
    assert.ok(await isLive(token));
    market.clock.forward(1000);
    assertError(await market.as(token).get("/v1/categories"), 401, "INVALID_API_KEY");
  });

  test("unused for 14 days: refused", async () => {
    const [used, idle] = [await start(), await start()];
    market.clock.forward(14 * DAY_MS - 1);
    assert.ok(await isLive(used));
    await lastSeenIsNow(used);
    market.clock.forward(1);
    assert.deepEqual([await isLive(used), await isLive(idle)], [true, false]);
  });

  test("signed with an older key of the ring: accepted; with a removed key: refused", async () => {
    const { ctx } = market.service;
    const token = await start();
    const ring = ctx.config.sessionKeys;
    const withRing = (sessionKeys: Buffer[]) =>
      authenticateSession({ ...ctx, config: { ...ctx.config, sessionKeys } }, token);
    assert.ok(await withRing([randomBytes(32), ...ring]));
    assert.equal(await withRing([randomBytes(32)]), null);
  });
});

suite("sessions of an account", () => {
  test("one, all but one, or all: end at once", async () => {
    const { ctx } = market.service;
    const tokens = [await start(), await start(), await start()];
    const ids = await Promise.all(
      tokens.map(async (token) => (await authenticateSession(ctx, token))!.sessionId),
    );
    const live = async () => {
      await ctx.notifications.catchUp();
      return Promise.all(tokens.map(isLive));
    };
    await endSessions(ctx, ctx.db, member.userId, { only: ids[0]! });
    assert.deepEqual(await live(), [false, true, true]);
    await endSessions(ctx, ctx.db, member.userId, { but: ids[2]! });
    assert.deepEqual(await live(), [false, false, true]);
    assert.equal(await endSessions(ctx, ctx.db, member.userId), 1);
    assert.deepEqual(await live(), [false, false, false]);
  });

  test("the 21st: ends the oldest", async () => {
    const tokens: string[] = [];
    for (let count = 0; count < 22; count++) {
      market.clock.forward(1);
      tokens.push(await start());
    }
    const live = await Promise.all(tokens.map(isLive));
    assert.deepEqual(
      live,
      tokens.map((_, at) => at >= 2),
    );
  });

  test("a role change and a ban: apply to the next request", async () => {
    const { ctx } = market.service;
    const token = await start();
    await market.query("update users set role = 'admin' where id = $1", [member.userId]);
    assert.equal((await authenticateSession(ctx, token))?.role, "admin");
    await market.query("update users set banned_at = $2 where id = $1", [member.userId, market.clock.now]);
    assert.equal(await isLive(token), false);
    await market.query("update users set banned_at = null, role = 'user' where id = $1", [member.userId]);
    assert.ok(await isLive(token));
  });
});

test("a database dump: contains no usable session", async () => {
  const token = await start();
  const { rows } = await market.query("select s::text as row from sessions s");
  const signature = token.split(".")[2]!;
  assert.ok(rows.length > 0);
  assert.ok(rows.every(({ row }) => !row.includes(signature)));
  await market.as(token).get("/v1/categories");
  assert.ok(market.logs.every((line) => !line.includes(signature)));
});

/** A request does not wait for the write of its last use. */
async function lastSeenIsNow(token: string): Promise<void> {
  const { sessionId } = (await authenticateSession(market.service.ctx, token))!;
  const lastSeen = async (): Promise<Date> => {
    const { rows } = await market.query("select last_seen_at as at from sessions where id = $1", [sessionId]);
    return rows[0].at;
  };
  await becomes(lastSeen, (at) => at.getTime() === market.clock.now.getTime(), "the last use");
}
