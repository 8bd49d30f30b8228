import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { assertError, type Market, openMarket } from "../../../test/market.ts";
import { bookEarnings, type FakeBank, installFakeBank, requestPayout } from "../../../test/payouts.ts";
import { DAY_MS } from "../../core/dates.ts";

let market: Market;
let bank: FakeBank;
before(async () => {
  market = await openMarket();
  bank = installFakeBank(market);
});
after(() => market.close());

test("GET /payouts/:id/items and /statement: equal to the ledger, also after a partial and a failed payout", async () => {
  const seller = await market.createUser({ role: "seller", name: "Poets Ltd" });
  const poet = await createProduct(seller, { title: "Poet", price: 100 });
  for (const _ of [1, 2]) await buyProduct(await market.createUser(), poet);
  const maturities = async () => (await seller.get("/v1/balance/maturities")).body.data;
  const date = new Date(market.clock.now.getTime() + 14 * DAY_MS).toISOString().slice(0, 10);
  assert.deepEqual(await maturities(), [{ date, currency: "USD", amount: 180, sales: 2 }]);
  assert.deepEqual((await seller.get("/v1/balance/maturities?currency=EUR")).body.data, []);
  market.clock.forward(15 * DAY_MS);
  assert.deepEqual(await maturities(), []);

  const pay = async (amount: number) => {
    market.clock.forward(1_000);
    const reply = await requestPayout(market, seller, { amount });
    assert.equal(reply.status, 201, reply.text);
    const { id } = reply.body.data;
    const [detail, items] = await Promise.all([
      seller.get(`/v1/payouts/${id}`),
      seller.get(`/v1/payouts/${id}/items`),
    ]);
    return { id, statement: detail.body.data.statement, items: items.body.data };
  };
  bank.begins = "failed";
  const first = await pay(50);
  assert.deepEqual(first.statement, { opening: 0, added: 180, closing: 130 });
  assert.equal(first.items.length, 2);
  assert.partialDeepStrictEqual(first.items[0], {
    ...{ kind: "sale", share: "earnings", amount: 90, currency: "USD" },
    product: { id: poet, title: "Poet" },
  });
  bank.begins = "completed";
  const second = await pay(100);
  assert.deepEqual(second.statement, { opening: 130, added: 50, closing: 80 });
  assert.deepEqual(
    second.items.map(({ kind, amount }: { kind: string; amount: number }) => [kind, amount]),
    [["payout_failed", 50]],
  );
  market.clock.forward(1_000);
  await bookEarnings(market, seller, { amountMinor: -500n });
  const third = await pay(70);
  assert.deepEqual(third.statement, { opening: 80, added: -5, closing: 5 });
  const [balance] = (await seller.get("/v1/balance")).body.data;
  assert.equal(balance.available, 5, "the last closing balance is what is available");

  const csv = await seller.get(`/v1/payouts/${first.id}/statement?format=csv`);
  assert.match(csv.headers.get("content-disposition") ?? "", /payout-.*\.csv/);
  const lines = csv.text.trim().split("\r\n");
  assert.equal(lines.length, 1 + 1 + 2 + 2);
  assert.match(lines[1] ?? "", /^opening_balance,.*,USD,0$/);
  assert.match(lines.at(-2) ?? "", /^payout,.*,-50,USD,130$/);
  const pdf = await seller.get(`/v1/payouts/${second.id}/statement`);
  assert.ok(pdf.text.startsWith("%PDF-"));
  const other = await market.createUser({ role: "seller" });
  for (const path of ["", "/items", "/statement"])
    assertError(await other.get(`/v1/payouts/${first.id}${path}`), 404, "PAYOUT_NOT_FOUND");
});
