import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { openHooks } from "../../test/hooks.ts";
import { somebodyWaits } from "../../test/locks.ts";
import type { Client } from "../../test/market.ts";
import { fanOut } from "./fan-out.ts";

const { deliveriesOf, happens, hasEndpoint, market } = await openHooks();
let owner: Client;
beforeEach(async () => {
  owner = await market.hasUser();
});

test("an event that no endpoint wants is seen all the same, and holds up no other", async () => {
  await happens(owner);
  assert.equal(await fanOut(market.service.ctx), 1);
  assert.equal(await fanOut(market.service.ctx), 0);
});

test("an event that is handed out while its type is left out goes nowhere", async () => {
  const endpoint = await hasEndpoint(owner);
  await happens(owner);
  const held = await market.service.ctx.pool.connect();
  try {
    await held.query("begin; select from webhook_lanes for no key update");
    const told = fanOut(market.service.ctx);
    await somebodyWaits(market);
    await held.query("update webhook_endpoints set event_types = '{payout.completed}'; commit");
    assert.equal(await told, 1);
  } finally {
    held.release();
  }
  assert.deepEqual(await deliveriesOf(owner, endpoint), []);
});
