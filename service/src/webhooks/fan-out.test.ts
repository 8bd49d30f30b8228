import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { openHooks } from "../../test/hooks.ts";
import { somebodyWaits } from "../../test/locks.ts";
import type { Client } from "../../test/market.ts";
import { fanOut } from "./fan-out.ts";

const { happens, hasEndpoint, market } = await openHooks();
let owner: Client;
beforeEach(async () => {
  owner = await market.hasUser();
});

test("an event that no endpoint wants is seen all the same, and holds up no other", async () => {
  await happens(owner);
  assert.equal(await fanOut(market.service.ctx), 1);
  assert.equal(await fanOut(market.service.ctx), 0);
});

/** Fans out while somebody holds the lanes, and does something to the endpoint before they let go. */
async function fanOutBeside(change: string, meanwhile = () => {}): Promise<number> {
  const held = await market.service.ctx.pool.connect();
  try {
    await held.query("begin; select from webhook_lanes for no key update");
    const told = fanOut(market.service.ctx);
    await somebodyWaits(market);
    meanwhile();
    await held.query(`update webhook_endpoints set ${change}; commit`);
    return await told;
  } finally {
    held.release();
  }
}

const statuses = async () =>
  (await market.query("select status from webhook_deliveries")).rows.map(({ status }) => status);

for (const [name, change, expected] of [
  ["its type is left out", "event_types = '{payout.completed}'", []],
  ["its endpoint is removed", "deleted_at = created_at", []],
  ["its endpoint is switched off", "disabled_by = 'owner'", ["skipped"]],
] as const)
  test(`of an event that is handed out while ${name} nothing is sent`, async () => {
    await hasEndpoint(owner);
    await happens(owner);
    assert.equal(await fanOutBeside(change), 1);
    assert.deepEqual(await statuses(), expected);
  });

test("while one worker hands out another does not, so that no event is given two numbers", async () => {
  await hasEndpoint(owner);
  await happens(owner);
  let other: Promise<number> | undefined;
  const one = await fanOutBeside("description = ''", () => {
    other = fanOut(market.service.ctx);
  });
  assert.deepEqual([one, await other], [1, 0]);
});
