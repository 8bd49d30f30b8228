import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createDraft } from "../../../test/factories.ts";
import { type Market, openMarket } from "../../../test/market.ts";
import { uploadFile } from "../../../test/uploads.ts";
import { runChecks } from "./doctor.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

async function findAll() {
  const { config, pool } = market.service.ctx;
  const found = await runChecks({ config, target: String(pool.options.connectionString) });
  return new Map(found.map((finding) => [finding.check, finding]));
}
const findingOf = async (name: string) => (await findAll()).get(name)!;
const filesFinding = () => findingOf("files");

test("doctor and /metrics: the clock skew of each process", async (t) => {
  assert.deepEqual((await findingOf("clock")).warning, undefined);
  const measuredSkew = async () => {
    market.clock.now = new Date(Date.now());
    const { text } = await market.as(null).get("/metrics");
    return Number(/^clock_ahead_seconds (.*)$/m.exec(text)?.[1]);
  };
  assert.ok(Math.abs(await measuredSkew()) < 5);
  const seconds = 30;
  // This clock goes on as the database's does.
  const realNow = Date.now;
  const skewClock = (ms: number) => t.mock.method(Date, "now", () => realNow() + ms).mock;
  for (const [direction, name] of [
    [1, "ahead of"],
    [-1, "behind"],
  ] as const) {
    const skewed = skewClock(direction * seconds * 1000);
    const ahead = await measuredSkew();
    const { ok, warning, note } = await findingOf("clock");
    skewed.restore();
    assert.ok(Math.abs(ahead - direction * seconds) < 5, `${ahead} s`);
    assert.deepEqual([ok, warning], [true, true]);
    assert.match(note, new RegExp(`^\\d+\\.\\d s ${name} the database's: .* NTP$`));
  }
  const skewed = skewClock(90_000);
  const { ok, note } = await findingOf("clock");
  skewed.restore();
  assert.equal(ok, false);
  assert.match(note, /(89|90) s ahead of the database's, so its workers do not run: .* NTP$/);
});

test("doctor, files on another node: names S3_URL", async () => {
  const seller = await market.createUser();
  const productId = await createDraft(seller);
  await uploadFile(seller, productId, { name: "a.md", bytes: "a" });
  assert.equal((await filesFinding()).ok, true);
  await rm(join(market.service.ctx.config.dataDir, "files"), { recursive: true });
  const { ok, note } = await filesFinding();
  assert.equal(ok, false);
  assert.match(note, /1 of the newest 1 are not there: nodes that share a database need S3_URL/);
});

test("doctor: reports whether telemetry is on, and its destination", async () => {
  assert.equal((await findingOf("telemetry")).note, "off");
  market.service.ctx.config.telemetry = {
    serviceName: null,
    traces: "http://collector:4318",
    metrics: "none",
  };
  assert.equal((await findingOf("telemetry")).note, "traces to http://collector:4318, metrics to none");
});

test("doctor: a migration that was changed after it ran, named as at a start", async () => {
  assert.equal((await findingOf("migrations")).note, "all have run");
  const setChecksum = (text: string) =>
    market.query(
      "update schema_migrations set checksum = $1 where name = '0001_people.sql' returning checksum",
      [text],
    );
  const { rows } = await market.query(
    "select checksum from schema_migrations where name = '0001_people.sql'",
  );
  await setChecksum("other");
  const { ok, note } = await findingOf("migrations");
  await setChecksum(rows[0].checksum);
  assert.equal(ok, false);
  assert.match(note, /^Migration 0001_people\.sql was changed after it ran/);
});

test("doctor: Redis and public URL that do not answer, and healthy disk and connections", async () => {
  const { config } = market.service.ctx;
  const healthy = await findAll();
  assert.match(healthy.get("disk")!.note, /^\d+\.\d GB free \(\d+ %\) for the data folder/);
  assert.deepEqual(healthy.get("connections"), {
    ...{ check: "connections", ok: true, note: "PostgreSQL itself, notifications arrive" },
  });
  for (const url of ["http://127.0.0.1:1", market.origin]) {
    Object.assign(config, { publicUrl: url, redisUrl: "redis://127.0.0.1:1" });
    const found = await findAll();
    Object.assign(config, { publicUrl: null, redisUrl: null });
    const publicUrl = found.get("public URL")!;
    assert.equal(publicUrl.warning === true, url !== market.origin, publicUrl.note);
    assert.match(found.get("Redis")!.note, /^REDIS_URL does not answer, .*ECONNREFUSED/);
  }
  assert.equal(healthy.get("Redis")!.note, "not used: each node counts rate limits for itself");
});

test("doctor and /metrics: an event without deliveries, its age", async () => {
  const age = async () => {
    const { text } = await market.as(null).get("/metrics");
    return Number(/^webhook_events_waiting_oldest_seconds (.*)$/m.exec(text)?.[1]);
  };
  await market.query("update events set seq = nextval('events_seq') where seq is null");
  assert.equal(await age(), 0);
  assert.equal((await findingOf("webhooks")).warning, undefined);
  await market.query(
    "insert into events (id, type, body, created_at) values (gen_random_uuid(), 'test', '{}', $1)",
    [new Date(Date.now() - 90_000)],
  );
  market.clock.now = new Date();
  assert.ok(Math.abs((await age()) - 90) < 10);
  const { warning, note } = await findingOf("webhooks");
  assert.equal(warning, true);
  assert.match(note, /oldest event without deliveries is 9\d s old: does a worker run\?/);
});
