import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { permissions } from "@stoa/contract";
import fc from "fast-check";
import { dumpDatabase } from "../../../test/dump.ts";
import { emailsToUser } from "../../../test/emails.ts";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { until } from "../../../test/until.ts";
import { DAY_MS, HOUR_MS } from "../../core/dates.ts";
import { toId } from "../../core/ids.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

/** A signed-in user, whose only key is the market's. */
async function hasOwner(): Promise<Client> {
  const { userId } = await market.createUser();
  await market.query("delete from api_keys where user_id = $1", [userId]);
  return market.createSession(userId);
}

const input = { name: "My server", permissions: { "products:read": true } };
const ask = (key: string) => market.as(key).get("/v1/categories");
const inFuture = (ms: number) => new Date(market.clock.now.getTime() + ms).toISOString();

async function make(owner: Client, more: object = {}): Promise<{ id: string; key: string }> {
  const reply = await owner.post("/v1/api-keys", { ...input, ...more });
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data;
}

async function listed(owner: Client): Promise<Record<string, unknown>[]> {
  const reply = await owner.get("/v1/api-keys");
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
}

async function deedsOf(owner: Client): Promise<[action: string, target: string, details: unknown][]> {
  const { rows } = await market.query(
    "select action, target_id, details from audit_log where actor_id = $1 and action like 'api_key.%' order by id",
    [owner.userId],
  );
  return rows.map(({ action, target_id, details }) => [action, target_id, details]);
}

suite("POST /api-keys", () => {
  test("answers the five fields, and the key works within its permissions", async () => {
    const owner = await hasOwner();
    const reply = await owner.post("/v1/api-keys", input);
    assert.equal(reply.status, 201, reply.text);
    const { id, key, ...rest } = reply.body.data;
    assert.match(id, /^key_[0-9a-z]{26}$/);
    assert.match(key, /^stoa_test_[0-9A-Za-z]{50}$/);
    assert.deepEqual(rest, {
      name: "My server",
      permissions: Object.fromEntries(permissions.map((name) => [name, name === "products:read"])),
      expiresAt: null,
    });
    assert.equal((await ask(key)).status, 200);
    const refused = await market.as(key).get("/v1/purchases");
    assert.equal(assertError(refused, 403, "UNAUTHORIZED").required, "purchases:read");
  });

  test("a map of permissions: grants those that are true", async () => {
    const owner = await hasOwner();
    const map = fc.dictionary(fc.constantFrom(...permissions), fc.boolean());
    await fc.assert(
      fc.asyncProperty(map, async (input) => {
        const { id } = await make(owner, { permissions: input });
        const { rows } = await market.query("select permissions from api_keys order by id desc limit 1");
        assert.deepEqual(
          new Set(rows[0].permissions),
          new Set(permissions.filter((name) => input[name] === true)),
        );
        assert.equal((await owner.delete(`/v1/api-keys/${id}`)).status, 200);
      }),
      { numRuns: runs(20) },
    );
  });

  test("all permissions false: the key grants nothing", async () => {
    const owner = await hasOwner();
    const { key } = await make(owner, { permissions: { "products:read": false } });
    assertError(await ask(key), 403, "UNAUTHORIZED");
  });

  for (const [field, body] of [
    ["permissions.products:read", { ...input, permissions: { "products:read": "true" } }],
    ["permissions.products:read", { ...input, permissions: { "products:read": 1 } }],
    ["permissions.products:delete", { ...input, permissions: { "products:delete": true } }],
    ["permissions.manage:all", { ...input, permissions: { "manage:all": false } }],
    ["permissions.__proto__", { ...input, permissions: JSON.parse('{"__proto__": true}') }],
    ["permissions", { ...input, permissions: ["products:read"] }],
    ["permissions", { ...input, permissions: "all" }],
    ["permissions", { name: "No permissions" }],
    ["name", { permissions: {} }],
    ["name", { ...input, name: "   " }],
    ["name", { ...input, name: "n".repeat(101) }],
    ["expiresAt", { ...input, expiresAt: "tomorrow" }],
    ["expiresAt", { ...input, expiresAt: "2026-06-15" }],
    ["expiresAt", { ...input, expiresAt: 1_800_000_000 }],
    ["key", { ...input, key: "stoa_test_mine" }],
  ] as const) {
    test(`${JSON.stringify(body)}: refused, names ${field}`, async () => {
      const owner = await hasOwner();
      assertError(await owner.post("/v1/api-keys", body), 400, "INVALID_REQUEST", field);
      assert.deepEqual(await listed(owner), []);
    });
  }

  test("expiresAt: in the future, at most five years ahead", async () => {
    const owner = await hasOwner();
    const fiveYears = new Date(market.clock.now);
    fiveYears.setUTCFullYear(fiveYears.getUTCFullYear() + 5);
    const at = (time: Date, ms: number) => new Date(time.getTime() + ms).toISOString();
    for (const expiresAt of [at(market.clock.now, 0), at(market.clock.now, -DAY_MS), at(fiveYears, 1)]) {
      const reply = await owner.post("/v1/api-keys", { ...input, expiresAt });
      assertError(reply, 400, "INVALID_REQUEST", "expiresAt");
    }
    for (const expiresAt of [at(market.clock.now, 1), fiveYears.toISOString(), null]) {
      const reply = await owner.post("/v1/api-keys", { ...input, expiresAt });
      assert.equal(reply.body.data.expiresAt, expiresAt, reply.text);
    }
  });

  test("expiresAt in any time zone: the key works until then", async () => {
    const owner = await hasOwner();
    const zoned = inFuture(HOUR_MS + 2 * HOUR_MS).replace("Z", "+02:00");
    const { key } = await make(owner, { expiresAt: zoned });
    market.clock.forward(HOUR_MS - 1);
    assert.equal((await ask(key)).status, 200);
    market.clock.forward(1);
    assertError(await ask(key), 401, "INVALID_API_KEY");
    assert.equal((await listed(owner))[0]!["status"], "expired");
  });

  test("the 26th active key, in parallel too: refused", async () => {
    const owner = await hasOwner();
    const { id: soonRevoked } = await make(owner);
    await make(owner, { expiresAt: inFuture(HOUR_MS) });
    const replies = await Promise.all(
      Array.from({ length: 30 }, (_, at) => owner.post("/v1/api-keys", { ...input, name: `Key ${at}` })),
    );
    const made = replies.filter(({ status }) => status === 201);
    assert.equal(made.length, 23);
    for (const reply of replies) {
      if (reply.status !== 201) assert.equal(assertError(reply, 422, "VALIDATION_ERROR").limit, 25);
    }
    const oneMore = () => owner.post("/v1/api-keys", input);
    assertError(await oneMore(), 422, "VALIDATION_ERROR");
    await owner.delete(`/v1/api-keys/${soonRevoked}`);
    assert.equal((await oneMore()).status, 201, "a revoked key gives its place free");
    assertError(await oneMore(), 422, "VALIDATION_ERROR");
    market.clock.forward(HOUR_MS);
    const later = await market.createSession(owner.userId);
    const oneMoreLater = () => later.post("/v1/api-keys", input);
    assert.equal((await oneMoreLater()).status, 201, "an expired key gives its place free");
    assertError(await oneMoreLater(), 422, "VALIDATION_ERROR");
    const other = await hasOwner();
    assert.equal((await other.post("/v1/api-keys", input)).status, 201, "others have 25 of their own");
  });

  test("sends an email, with a warning when the key can spend money", async () => {
    const owner = await hasOwner();
    await make(owner, { permissions: { "products:read": true, "products:write": true } });
    const [first, ...others] = await emailsToUser(market, owner.userId);
    assert.deepEqual(others, []);
    assert.doesNotMatch(`${first!.subject} ${first!.text}`, /spend|cost/);
    await make(owner, { name: "Runner", permissions: { "ai:execute": true } });
    assert.match((await emailsToUser(market, owner.userId))[0]!.subject, /spend money/);
    const { key } = await make(owner, { name: "Spender", permissions: { "purchases:write": true } });
    const [message, ...more] = await emailsToUser(market, owner.userId);
    assert.equal(more.length, 2);
    assert.match(message!.subject, /spend money/);
    assert.match(message!.text, /Spender/);
    assert.ok(message!.text.includes(key.slice(0, 22)));
    assert.ok(!JSON.stringify(message).includes(key.slice(22)), "the secret is in no email");
  });
});

suite("GET /api-keys", () => {
  test("newest first, with all fields and without the value", async () => {
    const owner = await hasOwner();
    const createdAt = market.clock.now.toISOString();
    const first = await make(owner, { name: "First", expiresAt: inFuture(DAY_MS) });
    const second = await make(owner, { name: "Second" });
    const reply = await owner.get("/v1/api-keys");
    assert.ok(!reply.text.includes(first.key.slice(22)) && !reply.text.includes(second.key.slice(22)));
    assert.deepEqual(
      reply.body.data.map(({ id }: { id: string }) => id),
      [second.id, first.id],
    );
    assert.deepEqual(reply.body.data[1], {
      id: first.id,
      name: "First",
      prefix: first.key.slice(0, 22),
      permissions: Object.fromEntries(permissions.map((name) => [name, name === "products:read"])),
      status: "active",
      createdAt,
      expiresAt: inFuture(DAY_MS),
      lastUsedAt: null,
      revokedAt: null,
    });
  });

  test("contains the last use", async () => {
    const owner = await hasOwner();
    const { key } = await make(owner);
    await ask(key);
    const used = market.clock.now.toISOString();
    // A request does not wait for the write of its last use.
    await until("the last use is stored", async () => (await listed(owner))[0]!["lastUsedAt"]);
    assert.equal((await listed(owner))[0]!["lastUsedAt"], used);
  });

  test("has pages, and no keys of other accounts", async () => {
    const [owner, other] = [await hasOwner(), await hasOwner()];
    for (const name of ["One", "Two", "Three"]) await make(owner, { name });
    await make(other);
    const reply = await owner.get("/v1/api-keys?page=2&limit=2");
    assert.deepEqual(
      reply.body.data.map(({ name }: { name: string }) => name),
      ["One"],
    );
    assert.equal(reply.body.meta.total, 3);
    assertError(await owner.get("/v1/api-keys?status=active"), 400, "INVALID_REQUEST", "status");
  });
});

suite("PATCH /api-keys/{id}", () => {
  test("changes the name only, with an entry in the audit log", async () => {
    const owner = await hasOwner();
    const { id, key } = await make(owner);
    const [before] = await listed(owner);
    const reply = await owner.patch(`/v1/api-keys/${id}`, { name: "  Shop 2 " });
    assert.deepEqual(reply.body.data, { ...before, name: "Shop 2" });
    assert.deepEqual(await listed(owner), [reply.body.data]);
    assert.equal((await ask(key)).status, 200);
    const { rows } = await market.query(
      "select count(*) from audit_log where action = 'api_key.renamed' and target_id = $1",
      [id],
    );
    assert.equal(rows[0].count, 1);
  });

  test("a bad name, another account's key: refused", async () => {
    const [owner, other] = [await hasOwner(), await hasOwner()];
    const { id } = await make(owner);
    for (const name of ["", "a\u0000b", "x".repeat(101), 5, null])
      assertError(await owner.patch(`/v1/api-keys/${id}`, { name }), 400, "INVALID_REQUEST", "name");
    assertError(
      await owner.patch(`/v1/api-keys/${id}`, { name: "A", permissions: {} }),
      400,
      "INVALID_REQUEST",
      "permissions",
    );
    assertError(await other.patch(`/v1/api-keys/${id}`, { name: "Mine" }), 404, "API_KEY_NOT_FOUND");
  });
});

suite("DELETE /api-keys/:keyId", () => {
  test("the key ends at once and stays listed; a repeat succeeds", async () => {
    const owner = await hasOwner();
    const { id, key } = await make(owner);
    assert.equal((await ask(key)).status, 200);
    assert.equal((await ask(key)).status, 200, "from memory by now");
    // A request does not wait for this write, and the answers below contain its time.
    await until("the last use is stored", async () => (await listed(owner))[0]?.lastUsedAt);
    const reply = await owner.delete(`/v1/api-keys/${id}`);
    assert.equal(reply.status, 200, reply.text);
    assertError(await ask(key), 401, "INVALID_API_KEY");
    const revokedAt = market.clock.now.toISOString();
    assert.equal(reply.body.data.status, "revoked");
    assert.equal(reply.body.data.revokedAt, revokedAt);
    market.clock.forward(HOUR_MS);
    const again = await owner.delete(`/v1/api-keys/${id}`);
    assert.deepEqual(again.body.data, reply.body.data);
    assert.deepEqual(await listed(owner), [reply.body.data]);
    assert.deepEqual(
      (await deedsOf(owner)).map(([action]) => action),
      ["api_key.created", "api_key.revoked"],
    );
  });

  const tries = runs(100);
  test(`a key used just before: refused right after the answer, in ${tries} of ${tries} tries`, async () => {
    const owner = await hasOwner();
    for (let round = 0; round < tries; round++) {
      const { id, key } = await make(owner);
      await Promise.all([ask(key), ask(key), owner.delete(`/v1/api-keys/${id}`)]);
      assert.equal((await ask(key)).status, 401, `round ${round}`);
    }
  });
});

suite("access to the endpoints of API keys", () => {
  test("another account's key, or an unknown id: API_KEY_NOT_FOUND, nothing changes", async () => {
    const [owner, other] = [await hasOwner(), await hasOwner()];
    const { id, key } = await make(owner);
    const nothing = toId("key", "0190b8d0-0000-7000-8000-000000000000");
    for (const name of [id, nothing, "key_", "nothing", toId("usr", owner.userId), `${id}%00`]) {
      assertError(await other.delete(`/v1/api-keys/${name}`), 404, "API_KEY_NOT_FOUND");
      assertError(await other.post(`/v1/api-keys/${name}/rotate`, {}), 404, "API_KEY_NOT_FOUND");
    }
    assert.equal((await ask(key)).status, 200);
  });

  test("a key with every permission: cannot list, create, rotate or revoke keys", async () => {
    const { userId, key } = await market.createUser();
    const owner = await market.createSession(userId);
    const { id } = await make(owner);
    const client = market.as(key);
    const attempts: Promise<Reply>[] = [
      client.get("/v1/api-keys"),
      client.post("/v1/api-keys", input),
      client.post(`/v1/api-keys/${id}/rotate`, {}),
      client.delete(`/v1/api-keys/${id}`),
    ];
    for (const attempt of attempts)
      assert.equal(assertError(await attempt, 403, "UNAUTHORIZED").required, "session");
    assert.equal((await listed(owner)).length, 2);
  });

  test("no credentials, and a guest: refused", async () => {
    assertError(await market.as(null).get("/v1/api-keys"), 401, "INVALID_API_KEY");
    const { value } = market.service.ctx.guests.cookie();
    const cookie = `__Host-guest=${value}`;
    assertError(await market.as(null).get("/v1/api-keys", { cookie }), 403, "UNAUTHORIZED");
  });

  test("each change: in the audit log with its origin and without a secret", async () => {
    const owner = await hasOwner();
    const { id, key } = await make(owner);
    const { body } = await owner.post(`/v1/api-keys/${id}/rotate`, { graceHours: 1 });
    await owner.delete(`/v1/api-keys/${body.data.id}`);
    assert.deepEqual(await deedsOf(owner), [
      ["api_key.created", id, { permissions: ["products:read"] }],
      ["api_key.rotated", id, { replacedBy: body.data.id, graceHours: 1 }],
      ["api_key.revoked", body.data.id, {}],
    ]);
    const { rows } = await market.query(
      "select ip, request_id, audit_log::text as row from audit_log where actor_id = $1",
      [owner.userId],
    );
    for (const { ip, request_id, row } of rows) {
      assert.equal(ip, "127.0.0.1");
      assert.ok(request_id);
      for (const secret of [key, body.data.key]) assert.ok(!row.includes(secret.slice(22)));
    }
  });
});

test("the value of a key: in no table and no log", async () => {
  const owner = await hasOwner();
  const idempotency = { "idempotency-key": "make-one" };
  const made = await owner.post(
    "/v1/api-keys",
    { ...input, permissions: { "ai:execute": true } },
    idempotency,
  );
  const { id, key } = made.body.data;
  const { body } = await owner.post(`/v1/api-keys/${id}/rotate`, {}, { "idempotency-key": "rotate-one" });
  await ask(key);
  await market.as(null).get(`/v1/categories?api_key=${body.data.key}`);
  const secrets = [key, body.data.key].map((value: string) => value.slice(22, 54));
  const dump = await dumpDatabase(market);
  for (const secret of secrets) assert.ok(!dump.includes(secret));
  for (const line of market.logs) for (const secret of secrets) assert.ok(!line.includes(secret), line);
});
