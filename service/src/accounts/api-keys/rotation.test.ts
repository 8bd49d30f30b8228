import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { emailsToUser, unwrapLines } from "../../../test/emails.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { DAY_MS, HOUR_MS } from "../../core/dates.ts";

let market: Market;
let owner: Client;
before(async () => {
  market = await openMarket();
  const { userId } = await market.createUser({ name: "Owner" });
  owner = await market.createSession(userId);
});
after(() => market.close());

const inFuture = (ms: number) => new Date(market.clock.now.getTime() + ms).toISOString();
const ask = async (key: string) => (await market.as(key).get("/v1/categories")).status;
const rotate = (id: string, body?: object) => owner.post(`/v1/api-keys/${id}/rotate`, body);

async function make(more: object = {}): Promise<{ id: string; key: string }> {
  const permissions = { "products:read": true, "ai:execute": true };
  const reply = await owner.post("/v1/api-keys", { name: "Rotated", permissions, ...more });
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data;
}

/** Each call also uses the session, which would end when it is idle for days. */
async function statusOf(id: string): Promise<string> {
  owner = await market.createSession(owner.userId);
  const { body } = await owner.get("/v1/api-keys?limit=100");
  return body.data.find((key: { id: string }) => key.id === id).status;
}

test("POST /api-keys/:keyId/rotate, no graceHours: the old key works for 24 hours beside the new one", async () => {
  const old = await make();
  const reply = await rotate(old.id);
  assert.equal(reply.status, 201, reply.text);
  const { id, key, ...rest } = reply.body.data;
  assert.notEqual(key, old.key);
  assert.deepEqual(
    [rest.name, rest.permissions["ai:execute"], rest.permissions["products:write"], rest.expiresAt],
    ["Rotated", true, false, null],
  );
  assert.deepEqual(rest.replaced, { id: old.id, expiresAt: inFuture(DAY_MS) });
  assert.deepEqual([await statusOf(old.id), await statusOf(id)], ["replaced", "active"]);
  market.clock.forward(DAY_MS - 1);
  assert.deepEqual([await ask(old.key), await ask(key)], [200, 200]);
  market.clock.forward(1);
  assert.deepEqual([await ask(old.key), await ask(key)], [401, 200]);
  assert.equal(await statusOf(old.id), "expired");
});

suite("the grace period of a rotated key", () => {
  for (const graceHours of [0, 1, 168]) {
    test(`${graceHours} hours: ends to the millisecond`, async () => {
      owner = await market.createSession(owner.userId);
      const old = await make();
      assert.equal(await ask(old.key), 200);
      assert.equal((await rotate(old.id, { graceHours })).status, 201);
      if (graceHours > 0) {
        market.clock.forward(graceHours * HOUR_MS - 1);
        assert.equal(await ask(old.key), 200);
        market.clock.forward(1);
      }
      assert.equal(await ask(old.key), 401);
    });
  }

  test("graceHours: an integer from 0 to 168", async () => {
    owner = await market.createSession(owner.userId);
    const { id } = await make();
    for (const graceHours of [-1, 169, 1.5, "24"]) {
      assertError(await rotate(id, { graceHours }), 400, "INVALID_REQUEST", "graceHours");
    }
    assertError(await rotate(id, { gracePeriod: 1 }), 400, "INVALID_REQUEST", "gracePeriod");
    assert.equal(await statusOf(id), "active");
  });

  test("never extends the expiry of the old key", async () => {
    owner = await market.createSession(owner.userId);
    const expiresAt = inFuture(HOUR_MS);
    const { id } = await make({ expiresAt });
    const { body } = await rotate(id, { graceHours: 168 });
    assert.equal(body.data.replaced.expiresAt, expiresAt);
  });
});

test("the new key lasts as long as the old one was created for", async () => {
  owner = await market.createSession(owner.userId);
  const { id } = await make({ expiresAt: inFuture(10 * DAY_MS) });
  market.clock.forward(4 * DAY_MS);
  owner = await market.createSession(owner.userId);
  const { body } = await rotate(id);
  assert.equal(body.data.expiresAt, inFuture(10 * DAY_MS));
});

test("rotation, ten parallel requests: one succeeds; an inactive key is refused", async () => {
  owner = await market.createSession(owner.userId);
  const { id } = await make();
  const replies = await Promise.all(Array.from({ length: 10 }, () => rotate(id)));
  assert.equal(replies.filter(({ status }) => status === 201).length, 1);
  for (const reply of replies) {
    if (reply.status === 201) continue;
    const { current, allowed } = assertError(reply, 409, "INVALID_STATE");
    assert.deepEqual([current, allowed], ["replaced", ["active"]]);
  }
  const expired = await make({ expiresAt: inFuture(HOUR_MS) });
  const revoked = await make();
  await owner.delete(`/v1/api-keys/${revoked.id}`);
  market.clock.forward(HOUR_MS);
  owner = await market.createSession(owner.userId);
  assert.equal(assertError(await rotate(expired.id), 409, "INVALID_STATE").current, "expired");
  assert.equal(assertError(await rotate(revoked.id), 409, "INVALID_STATE").current, "revoked");
});

test("a rotated key, revoked within its grace period: it ends, the new key works", async () => {
  owner = await market.createSession(owner.userId);
  const old = await make();
  const { body } = await rotate(old.id);
  assert.equal((await owner.delete(`/v1/api-keys/${old.id}`)).body.data.status, "revoked");
  assert.deepEqual([await ask(old.key), await ask(body.data.key)], [401, 200]);
});

test("rotation with 25 active keys: succeeds", async () => {
  const { userId } = await market.createUser();
  owner = await market.createSession(userId);
  const ids = [];
  for (let count = 1; count < 25; count++) ids.push((await make()).id);
  assertError(await owner.post("/v1/api-keys", { name: "26th", permissions: {} }), 422, "VALIDATION_ERROR");
  assert.equal((await rotate(ids[0]!)).status, 201);
});

test("rotation: the owner's email names the day on which the old key ends", async () => {
  const { userId } = await market.createUser();
  owner = await market.createSession(userId);
  const old = await make({ name: "Server", permissions: {} });
  const { body } = await rotate(old.id, { graceHours: 2 });
  const [message, ...more] = await emailsToUser(market, userId);
  assert.deepEqual(
    more.map(({ subject }) => subject),
    ["A new API key was created"],
  );
  const text = unwrapLines(message!.text);
  assert.ok(text.includes(old.key.slice(0, 22)) && text.includes("Server"));
  assert.ok(text.includes(new Date(inFuture(2 * HOUR_MS)).toUTCString()), text);
  assert.ok(!text.includes(body.data.key.slice(22)));
});
