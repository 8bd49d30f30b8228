import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { type Market, openMarket } from "../../../test/market.ts";
import { runChecks } from "../../backoffice/operator/doctor.ts";
import { verifyLedgerNightly } from "./nightly-verification.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

const readMetric = async (name: string): Promise<number> => {
  const { text } = await market.as(null).get("/metrics");
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)![1]);
};
const readFinding = async () => {
  const { config } = market.service.ctx;
  const findings = await runChecks({ config, target: market.target }, market.clock.now);
  return findings.find(({ check }) => check === "books");
};
/** Seconds of the Unix clock, as in /metrics. */
const now = () => market.clock.now.getTime() / 1000;

test("verifyLedgerNightly: /metrics and doctor report its result and time", async () => {
  const { ctx } = market.service;
  assert.ok(
    Number.isNaN(await readMetric("ledger_problems")) &&
      Number.isNaN(await readMetric("ledger_verified_timestamp_seconds")),
  );
  assert.deepEqual(await readFinding(), {
    check: "books",
    ok: true,
    note: "not looked at yet: `stoa-server ledger verify` does",
  });

  await buyProduct(await market.createUser(), await createProduct(await market.createUser()));
  await verifyLedgerNightly(ctx);
  assert.deepEqual(
    [await readMetric("ledger_problems"), await readMetric("ledger_verified_timestamp_seconds")],
    [0, now()],
  );
  assert.equal((await readFinding())!.note, `all was well on ${market.clock.now.toISOString()}`);

  market.clock.forward(86_400_000);
  await market.query("update sales_movements set sales = 2");
  await verifyLedgerNightly(ctx);
  assert.deepEqual(
    [await readMetric("ledger_problems"), await readMetric("ledger_verified_timestamp_seconds")],
    [2, now()],
  );
  assert.deepEqual(await readFinding(), {
    ...{ check: "books", ok: true, warning: true },
    note: "2 problems: `stoa-server ledger verify` lists them",
  });
  assert.ok(
    market.logs.some((line) => line.includes("the ledger is wrong") && line.includes("sales of 2 and not 1")),
  );

  market.clock.forward(86_400_000);
  await market.query("update sales_movements set sales = 1");
  await verifyLedgerNightly(ctx);
  assert.deepEqual(
    [await readMetric("ledger_problems"), (await readFinding())!.note],
    [0, `all was well on ${market.clock.now.toISOString()}`],
  );
});
