import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { verifyLedger } from "@stoa/service/commerce/ledger/verification.ts";
import { forkProgram } from "@stoa/service/test/child.ts";
import { createProduct } from "@stoa/service/test/factories.ts";
import { isFullSize } from "@stoa/service/test/full-size.ts";
import { type Client as Account, type Market, openMarket } from "@stoa/service/test/market.ts";
import { Stoa } from "../src/index.ts";
import { type Fault, type FaultProxy, startFaultProxy } from "./fault-proxy.ts";
import { type BuyerInput, type PlannedPurchase, readJournal } from "./purchase-journal.ts";

/** `STOA_TEST_PURCHASES=10000` makes another number of purchases. */
const PURCHASES = Number(process.env["STOA_TEST_PURCHASES"] ?? (isFullSize ? 2_000 : 60));
const FAULTS_IN_100_REQUESTS = 30;
const REQUESTS_PER_KILL = isFullSize ? 200 : 20;
const PROGRAM = new URL("./buyer-process.ts", import.meta.url);

const faults: (() => Fault)[] = [
  () => "lose-request",
  () => "lose-response",
  () => ({ cutAfterBytes: randomInt(1, 400) }),
  () => ({ delayMs: randomInt(10, 3_000) }),
  () => ({ status: 503 }),
  () => ({ statusAfterWork: 503 }),
];
const drawFault = (): Fault =>
  randomInt(100) < FAULTS_IN_100_REQUESTS ? faults[randomInt(faults.length)]!() : "pass";

let market: Market;
let proxy: FaultProxy;
let folder: string;
before(async () => {
  market = await openMarket();
  proxy = await startFaultProxy(market.origin);
  folder = await mkdtemp(join(tmpdir(), "stoa-sdk-purchases-"));
});
after(async () => {
  await proxy.close();
  await market.close();
  await rm(folder, { recursive: true });
});

/** An account buys a product once, so there are about as many buyers as products. */
async function planPurchases(): Promise<{ buyers: Account[]; purchases: PlannedPurchase[] }> {
  const side = Math.ceil(Math.sqrt(PURCHASES));
  const seller = await market.createUser();
  const products: string[] = [];
  for (let n = 0; n < side; n++) products.push(await createProduct(seller, { title: `Product ${n}` }));
  const buyers: Account[] = [];
  for (let n = 0; n < side; n++) buyers.push(await market.createUser());
  const pairs = buyers.flatMap(({ key }) => products.map((productId) => ({ apiKey: key, productId })));
  const purchases = pairs
    .slice(0, PURCHASES)
    .map((pair, index) => ({ ...pair, idempotencyKey: `purchase-${index}` }));
  return { buyers, purchases };
}

/** Runs the program again and again until it ends by itself. Returns how often it was killed. */
async function runWithKills(input: BuyerInput): Promise<number> {
  for (let kills = 0; ; kills++) {
    const { child, ended, answer } = forkProgram(PROGRAM, input);
    const killAt = proxy.requests.length + randomInt(REQUESTS_PER_KILL / 2, REQUESTS_PER_KILL * 2);
    proxy.decide = (n) => {
      if (n >= killAt) child.kill("SIGKILL");
      return drawFault();
    };
    const isDone = await answer().then(
      () => true,
      async (error) => {
        if ((await ended) !== "SIGKILL") throw error;
        return false;
      },
    );
    if (isDone) return kills;
  }
}

const countRows = async (rows: string) =>
  (await market.query(`select count(*)::int as count from ${rows}`)).rows[0].count as number;

test(`${PURCHASES} purchases, 30 % of the requests fail, the client is killed: one order and charge each`, async () => {
  const { buyers, purchases } = await planPurchases();
  const journal = join(folder, "journal");
  const kills = await runWithKills({ baseUrl: `${proxy.origin}/v1`, purchases, journal });
  assert.ok(kills > 0, "the client was killed");
  assert.ok(proxy.requests.length > PURCHASES, "requests were repeated");

  const orderIds = new Map(readJournal(journal));
  assert.equal(orderIds.size, PURCHASES);
  const listed: string[] = [];
  for (const { key } of buyers) {
    const stoa = new Stoa({ baseUrl: `${market.origin}/v1`, apiKey: key });
    for await (const { orderId } of stoa.purchases.list({ limit: 100 })) listed.push(orderId);
  }
  assert.deepEqual(listed.toSorted(), [...orderIds.values()].toSorted());

  const counts = {
    orders: await countRows("orders"),
    completed: await countRows("orders where status = 'completed'"),
    charges: await countRows("fake_provider.charges"),
    entitlements: await countRows("entitlements"),
  };
  const one = PURCHASES;
  assert.deepEqual(counts, { orders: one, completed: one, charges: one, entitlements: one });
  assert.deepEqual((await verifyLedger(market.service.ctx.db)).problems, []);
});
