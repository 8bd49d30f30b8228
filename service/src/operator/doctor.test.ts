import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { hasDraft } from "../../test/factories.ts";
import { type Market, openMarket } from "../../test/market.ts";
import { hasFile } from "../../test/uploads.ts";
import { examine } from "./doctor.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

const filesFinding = async () => {
  const { config, pool } = market.service.ctx;
  const target = String(pool.options.connectionString);
  const found = await examine({ config, target, embedded: null, leave: async () => {} });
  return found.find(({ check }) => check === "files")!;
};

test("the doctor looks for the newest files, and names S3_URL when another node has them", async () => {
  const seller = await market.hasUser();
  const productId = await hasDraft(seller);
  await hasFile(seller, productId, { name: "a.md", bytes: "a" });
  assert.equal((await filesFinding()).ok, true);
  await rm(join(market.service.ctx.config.dataDir, "files"), { recursive: true });
  const { ok, note } = await filesFinding();
  assert.equal(ok, false);
  assert.match(note, /1 of the newest 1 are not there: nodes that share a database need S3_URL/);
});
