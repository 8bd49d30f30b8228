import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { type Client, clientOf, type Market, openMarket } from "../../../test/market.ts";
import { until } from "../../../test/until.ts";
import type { Service } from "../../app.ts";
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

/** Both nodes know the key, in memory. */
async function inMemory(key: string): Promise<void> {
  await until("notices are heard", areCurrent);
  for (const origin of [market.origin, other.origin]) {
    for (let times = 0; times < 2; times++) assert.equal(await statusOf(clientOf(origin, key)), 200);
  }
}

/** Past the service: what memory forgets over it is not waited for. */
const change = (text: string, ...values: unknown[]) => market.service.ctx.pool.query(text, values);

test("a known key is not looked up: it gets in while nobody can read the table of keys", async () => {
  const [known, unknown] = [await make(), await make()];
  await inMemory(known.key);
  const client = await market.service.ctx.pool.connect();
  try {
    await client.query("begin");
    await client.query("lock table api_keys in access exclusive mode");
    await until("notices are heard", areCurrent);
    assert.equal(await statusOf(known.here), 200);
    const waiting = statusOf(unknown.here);
    assert.equal(await Promise.race([waiting, sleep(50, "waits")]), "waits");
    await client.query("commit");
    assert.equal(await waiting, 200);
  } finally {
    client.release(true);
  }
});

suite("what happens on one node is so on the other within a second", () => {
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
      await inMemory(key);
      await act({ id });
      await until("it is refused", async () => (await statusOf(there)) === 401, WITHIN_MS);
      assert.equal(await statusOf(there), 401);
    });
  }

  test("a permission is taken: it is lacking", async () => {
    const { key, there } = await make();
    await inMemory(key);
    await change("update api_keys set permissions = '{}' where user_id = $1", owner.userId);
    await until("it is refused", async () => (await statusOf(there)) === 403, WITHIN_MS);
  });

  test("role, plan and quota change: the next callers carry them", async () => {
    const { key } = await make();
    await inMemory(key);
    const { authenticateApiKey } = await import("./authenticate-key.ts");
    const quota = [{ requests: 5, seconds: 60 }];
    await change(
      "update users set role = 'seller', plan = 'business', quota = $1 where id = $2",
      JSON.stringify(quota),
      owner.userId,
    );
    const told = async () => (await authenticateApiKey(other.ctx, key))!;
    await until("the role is known", async () => (await told()).role === "seller", WITHIN_MS);
    const { plan, quota: known } = await told();
    assert.deepEqual([plan, known], ["business", quota]);
  });
});

test("a key in memory expires at its moment", async () => {
  const expiresAt = new Date(market.clock.now.getTime() + 60_000).toISOString();
  const { body } = await owner.post("/v1/api-keys", {
    name: "Short",
    permissions: { "products:read": true },
    expiresAt,
  });
  await inMemory(body.data.key);
  const here = clientOf(market.origin, body.data.key);
  market.clock.forward(59_999);
  assert.equal(await statusOf(here), 200);
  market.clock.forward(1);
  assert.equal(await statusOf(here), 401);
});

test("what is written all the time sends no notices: the last use, and what was told of the end", async () => {
  const { key } = await make();
  const heard: string[] = [];
  const client = await market.service.ctx.pool.connect();
  client.on("notification", ({ payload = "" }) => heard.push(payload));
  try {
    await client.query("listen api_key_changed");
    await client.query("listen user_changed");
    await statusOf(clientOf(other.origin, key));
    await change("update api_keys set last_used_at = $1, expiry_emailed_days = 3", market.clock.now);
    await change("update users set name = 'Other', role = role, plan = plan where id = $1", owner.userId);
    await sendKeyExpiryEmails(market.service.ctx);
    await client.query("select 1");
    assert.deepEqual(heard, []);
    await change(
      "update api_keys set revoked_at = $1 where lookup = $2",
      market.clock.now,
      key.slice(10, 22),
    );
    await client.query("select 1");
    assert.deepEqual(heard, [key.slice(10, 22)], "the listener does hear");
  } finally {
    client.release(true);
  }
});

suite("when the connection for notices is lost", () => {
  const listeners =
    "pg_stat_activity where datname = current_database() and application_name = 'stoa notices'";
  /** Asked of another database, as PostgreSQL demands. */
  const allowConnections = async (allowed: boolean) => {
    const { rows } = await change("select current_database() as name");
    const admin = new pg.Client({ connectionString: process.env["STOA_TEST_DATABASE"]! });
    await admin.connect();
    await admin.query(`alter database ${rows[0].name} with allow_connections ${allowed}`);
    await admin.end();
  };

  test("nothing in memory is believed until it is back: a revoked key is refused at once", async () => {
    const { key, there } = await make();
    await inMemory(key);
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
    await inMemory(again.key);
    await owner.delete(`/v1/api-keys/${again.id}`);
    await until("notices work again", async () => (await statusOf(again.there)) === 401, WITHIN_MS);
  });

  test("again and again in the middle of revocations, no key outlives its own by a second", async () => {
    for (let round = 0; round < 5; round++) {
      const { id, key, there } = await make();
      await inMemory(key);
      await Promise.all([
        change(`select pg_terminate_backend(pid) from ${listeners}`),
        owner.delete(`/v1/api-keys/${id}`),
        statusOf(there),
      ]);
      await until("it is refused", async () => (await statusOf(there)) === 401, WITHIN_MS);
      for (let times = 0; times < 5; times++) assert.equal(await statusOf(there), 401, "and stays so");
    }
  });
});
