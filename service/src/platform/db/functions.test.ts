import assert from "node:assert/strict";
import { test } from "node:test";
import { type Market, openMarket } from "../../../test/market.ts";
import { migrate } from "./migrate.ts";

const definitionOf = async ({ query }: Market, name: string): Promise<string> => {
  const { rows } = await query("select pg_get_functiondef($1::regproc) as text", [name]);
  return rows[0].text;
};

/** Replaces the function by one of another release. */
async function hasOtherFunction({ query }: Market, name: string, version: number): Promise<void> {
  await query(
    `create or replace function ${name}(queues uuid[], at timestamptz, is_cut boolean) returns void language sql as 'select'`,
  );
  await query("update schema_functions set version = $2, checksum = 'other' where name = $1", [
    name,
    version,
  ]);
}

const migrateAgain = ({ service }: Market): Promise<string[]> => migrate(service.ctx.pool, new Date());

test("migrate: a function has an older version in the database, two processes migrate: one replaces it", async (t) => {
  const market = await openMarket();
  t.after(() => market.close());
  const ours = await definitionOf(market, "schedule_queues");
  await hasOtherFunction(market, "schedule_queues", 0);
  assert.notEqual(await definitionOf(market, "schedule_queues"), ours);
  assert.equal((await market.as(null).get("/readyz")).status, 503);

  const applied = await Promise.all([migrateAgain(market), migrateAgain(market)]);

  assert.deepEqual(applied.flat(), ["schedule_queues"]);
  assert.equal(await definitionOf(market, "schedule_queues"), ours);
  assert.equal((await market.as(null).get("/readyz")).status, 200);
  assert.deepEqual(await migrateAgain(market), []);
});

test("migrate: a function has a newer version in the database: it stays, and the service is ready", async (t) => {
  const market = await openMarket();
  t.after(() => market.close());
  await hasOtherFunction(market, "schedule_queues", 99);
  const theirs = await definitionOf(market, "schedule_queues");
  assert.deepEqual(await migrateAgain(market), []);
  assert.equal(await definitionOf(market, "schedule_queues"), theirs);
  assert.equal((await market.as(null).get("/readyz")).status, 200);
});

test("migrate: a function differs in the database under the same version: refused with its name", async (t) => {
  const market = await openMarket();
  t.after(() => market.close());
  const { rows } = await market.query("select version from schema_functions where name = 'schedule_queues'");
  await hasOtherFunction(market, "schedule_queues", rows[0].version);
  const readiness = await market.as(null).get("/readyz");
  assert.equal(readiness.status, 503);
  assert.match(readiness.text, /the database has other migrations/);
  await assert.rejects(
    migrateAgain(market),
    /^MigrationMismatch: Function schedule_queues was changed .* "-- Version \d+"\.$/,
  );
});

test("migrate: a database without functions of rooms gets them, with their triggers", async (t) => {
  const market = await openMarket();
  t.after(() => market.close());
  const triggers = () => market.query("select tgname from pg_trigger where tgname = 'signal_workflow_run'");
  await market.query("drop function signal_workflow_run cascade; drop table schema_functions");
  assert.equal((await triggers()).rowCount, 0);
  const applied = await migrateAgain(market);
  assert.ok(applied.includes("signal_workflow_run") && applied.includes("claim_deliveries"));
  assert.equal((await triggers()).rowCount, 1);
});
