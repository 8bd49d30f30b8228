import assert from "node:assert/strict";
import { test } from "node:test";
import { assertError, openMarket } from "../../../test/market.ts";

const begin = "/oauth/authorize?client_id=nobody&response_type=code";

test("many OAuth flows from one network: limited there, not on another network", async () => {
  const market = await openMarket({ config: { trustProxy: ["127.0.0.1"] } });
  const from = (ip: string, path = begin) => market.as(null).get(path, { "x-forwarded-for": ip });
  const statuses = await Promise.all(
    Array.from({ length: 121 }, async () => (await from("198.51.100.7")).status),
  );
  assert.equal(statuses.filter((status) => status === 429).length, 1);
  assertError(await from("198.51.100.7"), 429, "RATE_LIMIT_EXCEEDED");
  assertError(await from("198.51.100.7", "/oauth/par"), 429, "RATE_LIMIT_EXCEEDED");
  assert.notEqual((await from("198.51.100.8")).status, 429);
  market.clock.forward(60_000);
  assert.notEqual((await from("198.51.100.7")).status, 429);
  await market.close();
});
