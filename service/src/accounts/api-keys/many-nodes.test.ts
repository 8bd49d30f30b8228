import assert from "node:assert/strict";
import { after, before, beforeEach, suite, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { inFullRun } from "../../../test/full-size.ts";
import { type Client, clientOf, type Market, openMarket } from "../../../test/market.ts";
import { until } from "../../../test/until.ts";
import type { Service } from "../../app.ts";
import { toId } from "../../core/ids.ts";
import { sendKeyExpiryEmails } from "./expiry-emails.ts";

const WITHIN_MS = 1_000;

let market: Market;
let other: Service;
let owner: Client;
before(async () => {
  market = await openMarket();
  other = await market.startNode();
});
after(() => market.close());
beforeEach(async () => {
  const { userId } = await market.createUser({ name: "Owner" });
  owner = await market.createSession(userId);
});

const areCurrent = () =>
  market.service.ctx.notifications.areCurrent() && other.ctx.notifications.areCurrent();

async function make(): Promise<{ id: string; key: string; here: Client; there: Client }> {
  const permissions = { "products:read": true };
  const { body } = await owner.post("/v1/api-keys", { name: "Shared", permissions });
  const { id, key } = body.data;
  return { id, key, here: clientOf(market.origin, key), there: clientOf(other.origin, key) };
}

const statusOf = async (client: Client) => (await client.get("/v1/categories")).status;

/** Fills the caches of both nodes. */
async function cacheOnBothNodes(key: string): Promise<void> {
  await market.waitForNotifications();
  for (const origin of [market.origin, other.origin]) {
    for (let times = 0; times < 2; times++) assert.equal(await statusOf(clientOf(origin, key)), 200);
  }
}

/** The next requests use the cache, also when the machine pauses for longer than a proof is valid. */
async function trustCache(t: TestContext): Promise<void> {
  await market.waitForNotifications();
  t.mock.method(market.service.ctx.notifications, "areCurrent", () => true);
}

/** Writes past the service, so the test does not wait until caches drop the key. */
const change = (text: string, ...values: unknown[]) => market.service.ctx.pool.query(text, values);

test("a cached key, the table of keys locked: authenticates without a query", async (t) => {
  const [known, unknown] = [await make(), await make()];
  await cacheOnBothNodes(known.key);
  const client = await market.service.ctx.pool.connect();
  try {
    await client.query("begin");
    await client.query("lock table api_keys in access exclusive mode");
    await trustCache(t);
    assert.equal(await statusOf(known.here), 200);
    const waiting = statusOf(unknown.here);
    assert.equal(await Promise.race([waiting, sleep(50, "waits")]), "waits");
    await client.query("commit");
    assert.equal(await waiting, 200);
  } finally {
    client.release(true);
  }
});

suite("a change on one node: the other node applies it within a second", () => {
  for (const [what, act] of [
    ["a key is revoked over the API", ({ id }: { id: string }) => owner.delete(`/v1/api-keys/${id}`)],
    [
      "a key is replaced without grace",
      ({ id }: { id: string }) => owner.post(`/v1/api-keys/${id}/rotate`, { graceHours: 0 }),
    ],
    [
      "its owner is banned",
      () => change("update users set banned_at = $1 where id = $2", market.clock.now, owner.userId),
    ],
    [
      "its owner closes the account",
      () => change("update users set closed_at = $1 where id = $2", market.clock.now, owner.userId),
    ],
    ["its owner is deleted", () => change("delete from users where id = $1", owner.userId)],
  ] as const) {
    test(`${what}: the key is refused`, async () => {
      const { id, key, there } = await make();
      await cacheOnBothNodes(key);
      await act({ id });
      await until("it is refused", async () => (await statusOf(there)) === 401, WITHIN_MS);
      assert.equal(await statusOf(there), 401);
    });
  }

  test("a permission is removed: it is missing", async () => {
    const { key, there } = await make();
    await cacheOnBothNodes(key);
    await change("update api_keys set permissions = '{}' where user_id = $1", owner.userId);
    await until("it is refused", async () => (await statusOf(there)) === 403, WITHIN_MS);
  });

  test("role, plan and quota change: the next callers have them", async () => {
    const { key } = await make();
    await cacheOnBothNodes(key);
    const { authenticateApiKey } = await import("./authenticate-key.ts");
    const quota = [{ requests: 5, seconds: 60 }];
    await change(
      "update users set role = 'seller', plan = 'business', quota = $1 where id = $2",
      JSON.stringify(quota),
      owner.userId,
    );
    const caller = async () => (await authenticateApiKey(other.ctx, key))!;
    await until("the other node has the role", async () => (await caller()).role === "seller", WITHIN_MS);
    const { plan, quota: known } = await caller();
    assert.deepEqual([plan, known], ["business", quota]);
  });
});

suite("a change on one node: the other node applies it to a cached session within a second", () => {
  for (const [what, act] of [
    ["the session signs out", (session: Client) => session.post("/api/auth/logout")],
    ["all others are ended", () => owner.delete("/v1/account/sessions")],
    [
      "its owner is banned",
      ({ userId }: Client) =>
        change("update users set banned_at = $1 where id = $2", market.clock.now, userId),
    ],
    ["its row is deleted", ({ userId }: Client) => change("delete from sessions where user_id = $1", userId)],
  ] as const) {
    test(`${what}: the session is refused`, async () => {
      const session = await market.createSession(owner.userId);
      const there = clientOf(other.origin, session.key);
      await cacheOnBothNodes(session.key);
      await act(session);
      await until("it is refused", async () => (await statusOf(there)) === 401, WITHIN_MS);
      assert.equal(await statusOf(there), 401);
    });
  }

  test("role and second factor change, and a view starts and ends: the next requests have them", async () => {
    const { userId, key } = await market.createSession(owner.userId, { secondFactor: true });
    const viewed = await market.createUser({ name: "Viewed" });
    const [here, there] = [market.as(key), clientOf(other.origin, key)];
    const listUsers = async (node = there) => (await node.get("/v1/admin/users")).status;
    const name = async () => (await there.get("/v1/account")).body.data.name;
    const view = { userId: toId("usr", viewed.userId), reason: "A payout is missing" };
    await cacheOnBothNodes(key);
    assert.equal(await listUsers(), 403);
    await change("update users set role = 'admin' where id = $1", userId);
    for (const node of [there, here])
      await until("it is an administrator", async () => (await listUsers(node)) === 200, WITHIN_MS);
    assert.equal((await here.put("/v1/admin/view", view)).status, 200);
    await until("the other account is shown", async () => (await name()) === "Viewed", WITHIN_MS);
    await change("update users set role = 'admin' where id = $1", viewed.userId);
    await until("administrators are not shown", async () => (await name()) === "Owner", WITHIN_MS);
    assert.equal((await here.delete("/v1/admin/view")).status, 200);
    await until("the view is over", async () => (await listUsers()) === 200, WITHIN_MS);
    await change("update sessions set second_factor = false where user_id = $1", userId);
    await until("the second factor is missing", async () => (await listUsers()) === 403, WITHIN_MS);
  });

  test("used on one node only: stays alive on the other, whose cached row is idle", async () => {
    const { key } = await market.createSession(owner.userId);
    await cacheOnBothNodes(key);
    for (let days = 0; days < 20; days += 10) {
      market.clock.forward(10 * 86_400_000);
      assert.equal(await statusOf(market.as(key)), 200);
      await until("the use is stored", async () => {
        const { rows } = await change(
          "select max(last_seen_at) as at from sessions where user_id = $1",
          owner.userId,
        );
        return rows[0].at.getTime() === market.clock.now.getTime();
      });
    }
    assert.equal(await statusOf(clientOf(other.origin, key)), 200);
  });

  test("a cached session, the table of sessions locked: authenticates without a query", async (t) => {
    await cacheOnBothNodes(owner.key);
    const client = await market.service.ctx.pool.connect();
    try {
      await client.query("begin");
      await client.query("lock table sessions in access exclusive mode");
      await trustCache(t);
      assert.equal(await statusOf(owner), 200);
    } finally {
      client.release(true);
    }
  });
});

test("a cached key expires on time", async () => {
  const expiresAt = new Date(market.clock.now.getTime() + 60_000).toISOString();
  const { body } = await owner.post("/v1/api-keys", {
    name: "Short",
    permissions: { "products:read": true },
    expiresAt,
  });
  await cacheOnBothNodes(body.data.key);
  const here = clientOf(market.origin, body.data.key);
  market.clock.forward(59_999);
  assert.equal(await statusOf(here), 200);
  market.clock.forward(1);
  assert.equal(await statusOf(here), 401);
});

test("lastUsedAt and sent reminders, which change all the time: no notification", async () => {
  const { key } = await make();
  const payloads: string[] = [];
  const client = await market.service.ctx.pool.connect();
  client.on("notification", ({ payload = "" }) => payloads.push(payload));
  try {
    await client.query("listen api_key_changed");
    await client.query("listen user_changed");
    await statusOf(clientOf(other.origin, key));
    await change("update api_keys set last_used_at = $1, expiry_emailed_days = 3", market.clock.now);
    await change("update users set name = 'Other', role = role, plan = plan where id = $1", owner.userId);
    await sendKeyExpiryEmails(market.service.ctx);
    await client.query("select 1");
    assert.deepEqual(payloads, []);
    await change(
      "update api_keys set revoked_at = $1 where lookup = $2",
      market.clock.now,
      key.slice(10, 22),
    );
    await client.query("select 1");
    assert.deepEqual(payloads, [key.slice(10, 22)], "the listener is connected");
  } finally {
    client.release(true);
  }
});

suite("the connection for notifications is lost", () => {
  const listeners =
    "pg_stat_activity where datname = current_database() and application_name = 'stoa notices'";
  /** From another database, which PostgreSQL requires and which accepts connections the whole time. */
  const allowConnections = async (allowed: boolean) => {
    const database = new URL(market.target).pathname.slice(1);
    const admin = new pg.Client({ connectionString: process.env["STOA_TEST_DATABASE"]! });
    await admin.connect();
    await admin.query(`alter database ${database} with allow_connections ${allowed}`);
    await admin.end();
  };
  /** A full pool needs no new connection, also while the node writes in the background. */
  const fillPool = async ({ ctx: { pool } }: Service) => {
    const clients = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()));
    for (const client of clients) client.release();
  };

  test("the cache is not used until it is back: a revoked key is refused at once", async () => {
    const { key, there } = await make();
    await cacheOnBothNodes(key);
    await Promise.all([market.service, other].map(fillPool));
    await allowConnections(false);
    try {
      await change(`select pg_terminate_backend(pid) from ${listeners}`);
      await until("the loss is noticed", () => !other.ctx.notifications.areCurrent(), WITHIN_MS);
      assert.equal(await statusOf(there), 200, "asked of the database");
      await change(
        "update api_keys set revoked_at = $1 where lookup = $2",
        market.clock.now,
        key.slice(10, 22),
      );
      assert.equal(await statusOf(there), 401);
    } finally {
      await allowConnections(true);
    }
    await until("it is back", areCurrent);
    assert.equal(await statusOf(there), 401);
    const again = await make();
    await cacheOnBothNodes(again.key);
    await owner.delete(`/v1/api-keys/${again.id}`);
    await until("notices work again", async () => (await statusOf(again.there)) === 401, WITHIN_MS);
  });

  test(
    "lost repeatedly during revocations: no key works a second after its revocation",
    inFullRun,
    async () => {
      for (let round = 0; round < 5; round++) {
        const { id, key, there } = await make();
        await cacheOnBothNodes(key);
        await Promise.all([
          change(`select pg_terminate_backend(pid) from ${listeners}`),
          owner.delete(`/v1/api-keys/${id}`),
          statusOf(there),
        ]);
        await until("it is refused", async () => (await statusOf(there)) === 401, WITHIN_MS);
        for (let times = 0; times < 5; times++) assert.equal(await statusOf(there), 401, "and stays so");
      }
    },
  );
});
