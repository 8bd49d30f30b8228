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

const findingOf = async (wanted: string) => {
  const { config, pool } = market.service.ctx;
  const target = String(pool.options.connectionString);
  const found = await examine({ config, target, embedded: null, leave: async () => {} });
  return found.find(({ check }) => check === wanted)!;
};
const filesFinding = () => findingOf("files");

test("the doctor and /metrics tell by how much a process's clock is off", async (t) => {
  assert.deepEqual((await findingOf("clock")).warning, undefined);
  const tell = async () => {
    market.clock.now = new Date();
    const { text } = await market.as(null).get("/metrics");
    return Number(/^clock_ahead_seconds (.*)$/m.exec(text)?.[1]);
  };
  assert.ok(Math.abs(await tell()) < 5);
  const seconds = 30;
  for (const [direction, name] of [
    [1, "ahead of"],
    [-1, "behind"],
  ] as const) {
    t.mock.timers.enable({ apis: ["Date"], now: Date.now() + direction * seconds * 1000 });
    const ahead = await tell();
    const { ok, warning, note } = await findingOf("clock");
    t.mock.timers.reset();
    assert.ok(Math.abs(ahead - direction * seconds) < 5, `${ahead} s`);
    assert.deepEqual([ok, warning], [true, true]);
    assert.match(note, new RegExp(`^\\d+\\.\\d s ${name} the database's: .* NTP$`));
  }
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() + 90_000 });
  const { ok, note } = await findingOf("clock");
  t.mock.timers.reset();
  assert.equal(ok, false);
  assert.match(note, /(89|90) s ahead of the database's, so its workers do not run: .* NTP$/);
});

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

test("the doctor says whether telemetry is on, and where it goes", async () => {
  assert.equal((await findingOf("telemetry")).note, "off");
  market.service.ctx.config.telemetry = {
    serviceName: null,
    traces: "http://collector:4318",
    metrics: "none",
  };
  assert.equal((await findingOf("telemetry")).note, "traces to http://collector:4318, metrics to none");
});
