import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { nextPayoutTime } from "@stoa/service/commerce/payouts/schedule.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { bookEarnings, ledgerSums } from "@stoa/service/test/payouts.ts";
import { until } from "@stoa/service/test/until.ts";
import { environmentWith, temporaryFolder } from "./service-process.ts";

const DAY_MS = 86_400_000;
const SELLERS = 25;
const STANDSTILL_DAYS = 4;

const keys = { master: randomBytes(32), session: randomBytes(32) };
const workers: ChildProcess[] = [];

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let market: Market;
before(async () => {
  folder = await temporaryFolder();
  market = await openMarket({
    now: () => new Date(),
    config: { masterKeys: [{ id: "1", bytes: keys.master }], sessionKeys: [keys.session] },
  });
});
after(async () => {
  for (const worker of workers) {
    const ended = new Promise((resolve) => worker.once("close", resolve));
    if (worker.exitCode === null && worker.signalCode === null && worker.kill("SIGTERM")) await ended;
  }
  await market.close();
  await folder.remove();
});

const secret = (bytes: Buffer) => `1:${bytes.toString("base64")}`;

/** A worker that serves only health checks. */
function startWorker(): ChildProcess {
  const env = environmentWith({
    DATABASE_URL: String(market.service.ctx.pool.options.connectionString),
    STOA_DATA_DIR: folder.path,
    STOA_ROLES: "worker",
    PORT: "0",
    STOA_MASTER_KEYS: secret(keys.master),
    STOA_SESSION_KEYS: secret(keys.session),
    STOA_PAYOUT_SCHEDULE: "daily",
    STOA_MAIL: "off",
  });
  const command = new URL("../service/bin/stoa-server.mjs", import.meta.url).pathname;
  const worker = spawn(process.execPath, [command, "start"], { env, stdio: ["ignore", "ignore", "inherit"] });
  workers.push(worker);
  return worker;
}

const count = async (what: string) => (await market.query(`select from ${what}`)).rowCount!;

/** The number of scheduled times between two dates. There is one more if the next one passes during the test. */
function slotsBetween(from: Date, to: Date): number {
  let count = 0;
  for (let slot = nextPayoutTime("daily", from); slot <= to; slot = nextPayoutTime("daily", slot)) count++;
  return count;
}

/** A seller whose balance matured before the missed scheduled times. */
async function hasSeller(): Promise<Client> {
  const seller = await market.createUser({ role: "seller" });
  const maturesAt = new Date(Date.now() - STANDSTILL_DAYS * DAY_MS);
  await bookEarnings(market, seller, { amountMinor: 5000n, maturesAt });
  return seller;
}

test("two workers after days of standstill: each seller is paid once", async () => {
  const sellers = await Promise.all(Array.from({ length: SELLERS }, hasSeller));
  const last = new Date(Date.now() - STANDSTILL_DAYS * DAY_MS);
  await market.query("insert into scheduled_runs (job, slot, done_at) values ('pay-out', '-infinity', $1)", [
    last,
  ]);
  const before = await count("scheduled_runs");
  startWorker();
  startWorker();
  await until("every slot is ended", async () => {
    const ended = await count("scheduled_runs where job = 'pay-out' and done_at is not null");
    return ended === before + slotsBetween(last, new Date());
  });
  await until(
    "every payout is made",
    async () => (await count("payouts where status = 'completed'")) === SELLERS,
  );
  for (const seller of sellers) {
    const { data } = (await seller.get("/v1/payouts")).body;
    assert.deepEqual(
      data.map(({ amount, status }: { amount: number; status: string }) => [amount, status]),
      [[50, "completed"]],
    );
  }
  assert.equal(await count("fake_provider.payouts"), SELLERS);
  assert.equal((await ledgerSums(market))["USD"], 0);
  const { rows } = await market.query("select runs, failures from job_runs where job = 'pay-out'");
  assert.deepEqual([rows[0].runs > 0, rows[0].failures], [true, 0]);
});
