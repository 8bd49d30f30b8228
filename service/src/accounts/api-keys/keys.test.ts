import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { permissions } from "@stoa/contract";
import { emailsToUser, unwrapLines } from "../../../test/emails.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { becomes } from "../../../test/until.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { mintKey } from "./api-key.ts";
import { createKeyAsOperator, parsePermissions, revokeKeyAsOperator } from "./keys.ts";

const MINUTE_MS = 60_000;

let market: Market;
let owner: Client;
before(async () => {
  market = await openMarket();
  owner = await market.createUser({ name: "Owner" });
});
after(() => market.close());

const ask = (key: string) => market.as(key).get("/v1/categories");
const makeKey = (input: object = {}) =>
  createKeyAsOperator(market.service.ctx, {
    userId: owner.userId,
    name: "made",
    permissions: ["products:read"],
    ...input,
  });

const lookup = (key: string) => key.slice(10, 22);
async function lastUsed(key: string): Promise<Date | null> {
  const { rows } = await market.query("select last_used_at from api_keys where lookup = $1", [lookup(key)]);
  return rows[0].last_used_at;
}

/** A request does not wait for the write of its last use. */
async function lastUsedIs(key: string, expected: Date): Promise<void> {
  await becomes(
    () => lastUsed(key),
    (at) => at?.getTime() === expected.getTime(),
    "the last use",
  );
}

test("an invalid key, for any reason: the same answer", async () => {
  const { key: expired } = await makeKey({ expiresAt: market.clock.now });
  const { key: revoked } = await makeKey();
  await market.query("update api_keys set revoked_at = $1 where lookup = $2", [
    market.clock.now,
    lookup(revoked),
  ]);
  const { key: known } = await makeKey();
  const minted = mintKey("test").value;
  const wrong = {
    expired,
    revoked,
    "of another environment": mintKey("production").value,
    "never made": minted,
    mistyped: `${known.slice(0, -1)}${known.endsWith("0") ? "1" : "0"}`,
    "no key at all": "hello",
  };
  const answers = new Set<string>();
  for (const [why, key] of Object.entries(wrong)) {
    const reply = await market.as(null).get("/v1/categories", { authorization: `Bearer ${key}` });
    assertError(reply, 401, "INVALID_API_KEY");
    answers.add(JSON.stringify([reply.body.error, reply.headers.get("www-authenticate")]));
    assert.equal(answers.size, 1, why);
  }
});

test("a key with a known lookup and a wrong secret: finds no account", async () => {
  const { key } = await makeKey();
  const digest = mintKey("test").digest;
  await market.query("update api_keys set digest = $1 where lookup = $2", [digest, lookup(key)]);
  assertError(await ask(key), 401, "INVALID_API_KEY");
});

test("a key with an expiry: works until then", async () => {
  const { key } = await makeKey({ expiresAt: new Date(market.clock.now.getTime() + MINUTE_MS) });
  market.clock.forward(MINUTE_MS - 1);
  assert.equal((await ask(key)).status, 200);
  market.clock.forward(1);
  assertError(await ask(key), 401, "INVALID_API_KEY");
});

test("lastUsedAt: written once a minute, for this key only", async () => {
  const [{ key }, { key: unused }] = [await makeKey(), await makeKey()];
  assert.equal(await lastUsed(key), null);
  const first = market.clock.now;
  await ask(key);
  await lastUsedIs(key, first);
  market.clock.forward(MINUTE_MS - 1);
  await ask(key);
  market.clock.forward(2);
  await ask(key);
  await lastUsedIs(key, market.clock.now);
  assert.equal(await lastUsed(unused), null);
});

test("lastUsedAt, many requests within a minute: no second write", async () => {
  const { key } = await makeKey();
  const written = async () => {
    const { rows } = await market.query("select xmin::text from api_keys where lookup = $1", [lookup(key)]);
    return rows[0].xmin as string;
  };
  await ask(key);
  await lastUsedIs(key, market.clock.now);
  const before = await written();
  for (let times = 0; times < 5; times++) {
    market.clock.forward(10_000);
    await Promise.all([ask(key), ask(key), ask(key)]);
  }
  assert.equal(await written(), before);
});

test("a key: only the endpoints of its permissions", async () => {
  const { key } = await makeKey({ permissions: ["purchases:read"] });
  const client = market.as(key);
  assert.equal((await client.get("/v1/purchases")).status, 200);
  const refused: [reply: Promise<Reply>, permission: string][] = [
    [client.get("/v1/products"), "products:read"],
    [client.post("/v1/products", {}), "products:write"],
    [client.post("/v1/purchases", {}), "purchases:write"],
    [client.get("/v1/events"), "webhooks:write"],
    [client.post("/v1/ai/execute", {}), "ai:execute"],
  ];
  for (const [reply, permission] of refused) {
    assert.equal(assertError(await reply, 403, "UNAUTHORIZED").required, permission);
  }
});

suite("revokeKeyAsOperator", () => {
  const revoke = (idOrValue: string) => revokeKeyAsOperator(market.service.ctx, idOrValue);

  for (const by of ["id", "key"] as const) {
    test(`by ${by === "id" ? "id" : "pasted value"}: the key ends, and the owner gets one email`, async () => {
      const { userId } = await market.createUser();
      const made = await makeKey({ userId, name: "Leaked" });
      assert.equal((await ask(made.key)).status, 200);
      const expected = { id: made.id, user: toId("usr", userId), name: "Leaked", revoked: true };
      assert.deepEqual(await revoke(made[by]), expected);
      await market.service.ctx.notifications.catchUp();
      assertError(await ask(made.key), 401, "INVALID_API_KEY");
      assert.deepEqual(await revoke(made[by]), expected, "said again, nothing changes");
      const [message, ...more] = await emailsToUser(market, userId);
      assert.deepEqual(more, []);
      assert.match(unwrapLines(message!.text), /“Leaked” \(stoa_test_\w{12}…\) was revoked by the operator/);
      const { rows } = await market.query(
        "select action, actor_id, ip from audit_log where target_id = $1 order by id",
        [made.id],
      );
      assert.deepEqual(rows, [
        { action: "api_key.created", actor_id: null, ip: null },
        { action: "api_key.revoked", actor_id: null, ip: null },
      ]);
    });
  }

  test("a text that is no key of this environment: an error that says why", async () => {
    const { key } = await makeKey();
    const other = await makeKey();
    const forged = other.key.slice(0, 22) + key.slice(22);
    for (const name of ["key_", "", mintKey("production").value, mintKey("test").value, forged]) {
      await assert.rejects(revoke(name), /No API key of this test environment has this id or value/);
    }
    assert.equal((await ask(other.key)).status, 200);
  });
});

test('parsePermissions: "all", or names of permissions', () => {
  assert.deepEqual(parsePermissions("all"), [...permissions]);
  assert.deepEqual(parsePermissions("products:read, ai:execute"), ["products:read", "ai:execute"]);
  for (const text of ["", "products:read,", "admin", "ALL"]) {
    assert.throws(() => parsePermissions(text), ApiError);
  }
});
