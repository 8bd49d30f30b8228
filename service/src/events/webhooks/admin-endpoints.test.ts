import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { assertError, type Client } from "../../../test/market.ts";
import { openWebhookMarket } from "../../../test/webhooks.ts";
import { toId } from "../../core/ids.ts";

const { deliver, happens, hasEndpoint, market, receiver } = await openWebhookMarket();
let owner: Client;
beforeEach(async () => {
  owner = await market.createUser();
});

test("GET /v1/admin/webhooks: endpoints of all owners without secrets, filtered by owner and status", async () => {
  const admin = await market.createSession((await market.createUser({ role: "admin" })).userId, {
    secondFactor: true,
  });
  const other = await market.createUser({ name: "Other" });
  const disabled = await hasEndpoint(owner, { enabled: false });
  const failing = await hasEndpoint(other, { url: `${receiver.url}/failing` });
  const healthy = await hasEndpoint(owner);
  await owner.delete(`/v1/webhooks/${(await hasEndpoint(owner)).id}`);
  receiver.answer = 500;
  await happens(other);
  await deliver();
  const found = async (query: string) => {
    const reply = await admin.get(`/v1/admin/webhooks?${query}`);
    assert.equal(reply.body.data.length, reply.body.meta.total);
    return reply.body.data.map(({ id }: { id: string }) => id);
  };
  assert.deepEqual(await found(""), [healthy.id, failing.id, disabled.id]);
  assert.deepEqual(await found("status=enabled"), [healthy.id, failing.id]);
  assert.deepEqual(await found("status=failing"), [failing.id]);
  assert.deepEqual(await found("status=disabled"), [disabled.id]);
  assert.deepEqual(await found(`owner=${toId("usr", owner.userId)}`), [healthy.id, disabled.id]);
  assert.deepEqual(await found("owner=nobody"), []);
  const { body } = await admin.get("/v1/admin/webhooks?status=failing&limit=1");
  const { secret, ...fields } = failing;
  assert.deepEqual(body.data, [
    {
      ...fields,
      owner: { id: toId("usr", other.userId), name: "Other" },
      failingSince: market.clock.now.toISOString(),
      failedDeliveries: 0,
    },
  ]);
  assert.ok(secret);
  assertError(await admin.get("/v1/admin/webhooks?status=lost"), 400, "INVALID_REQUEST", "status");
  assertError(await owner.get("/v1/admin/webhooks"), 403, "UNAUTHORIZED");
});
