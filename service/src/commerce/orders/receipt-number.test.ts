import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { toUuid } from "../../core/ids.ts";
import { formatMoney } from "../../core/money/amount.ts";

let market: Market;
before(async () => {
  market = await openMarket({ config: { taxRates: new Map([["DE", 1_900]]) } });
});
after(() => market.close());

const detailOf = async (buyer: Client, orderId: string) =>
  (await buyer.get(`/v1/purchases/${orderId}`)).body.data;
const numberOf = async (buyer: Client, orderId: string): Promise<string> =>
  (await detailOf(buyer, orderId)).receipt.number;
const soldTo = async (buyer: Client, seller: Client) =>
  numberOf(buyer, await buyProduct(buyer, await createProduct(seller)));

test("concurrent sales of a seller: numbers without a gap", async () => {
  const seller = await market.createUser();
  const products = await Promise.all(Array.from({ length: 3 }, () => createProduct(seller)));
  const buyers = await Promise.all(Array.from({ length: runs(10) }, () => market.createUser()));
  const numbers = await Promise.all(
    buyers.flatMap((buyer) =>
      products.map(async (productId) => numberOf(buyer, await buyProduct(buyer, productId))),
    ),
  );
  const begins = numbers[0]!.slice(0, -5);
  assert.match(begins, /^R-[0-9A-Z]{5}-2026-$/);
  const expected = numbers.map((_, at) => `${begins}${String(at + 1).padStart(5, "0")}`);
  assert.deepEqual(numbers.toSorted(), expected);
});

test("a failed sale: uses no number", async () => {
  const [seller, buyer] = [await market.createUser(), await market.createUser()];
  const productId = await createProduct(seller);
  for (const paymentMethodId of ["pm_test_declined", "pm_test_requires_action"])
    await buyer.post("/v1/purchases", { productId, paymentMethodId });
  assert.match(await soldTo(buyer, seller), /-00001$/);
  const { data } = (await buyer.get("/v1/purchases?status=failed")).body;
  assert.equal(await numberOf(buyer, data[0].orderId), null);
});

test("each seller and each UTC year: counts from one, and a number never changes", async () => {
  const [one, other, buyer] = [
    await market.createUser(),
    await market.createUser(),
    await market.createUser(),
  ];
  market.clock.now = new Date("2026-12-31T23:59:59.999Z");
  const orderId = await buyProduct(buyer, await createProduct(one));
  const old = await numberOf(buyer, orderId);
  const others = await soldTo(buyer, other);
  market.clock.forward(1);
  const next = [await soldTo(buyer, one), await soldTo(buyer, one)];
  assert.match(old, /-2026-00001$/);
  assert.deepEqual(
    next.map((number) => number.slice(-10)),
    ["2027-00001", "2027-00002"],
  );
  assert.equal(others.slice(-10), "2026-00001");
  assert.notEqual(others, old, "the seller's part keeps them apart");
  assert.equal(await numberOf(buyer, orderId), old);
});

test("the number: the same on the page, in the name of the PDF and in the purchase", async () => {
  const buyer = await market.createUser();
  const orderId = await buyProduct(buyer, await createProduct(await market.createUser()));
  const { receipt } = await detailOf(buyer, orderId);
  assert.ok((await (await fetch(receipt.url)).text()).includes(receipt.number));
  const pdf = await fetch(receipt.pdf);
  assert.equal(pdf.headers.get("content-disposition"), `inline; filename="receipt-${receipt.number}.pdf"`);
});

test("a receipt: shows each refund of its order with its date", async () => {
  const [buyer, { userId }] = [await market.createUser(), await market.createUser({ role: "admin" })];
  const orderId = await buyProduct(buyer, await createProduct(await market.createUser(), { price: 10 }));
  for (const [amount, at] of [
    [1.5, "2027-02-03T04:05:06.000Z"],
    [0.5, "2027-02-28T23:59:59.999Z"],
  ] as const) {
    market.clock.now = new Date(at);
    const admin = await market.createSession(userId, { secondFactor: true });
    const input = { amount, reason: "not_working" };
    const reply = await admin.post(`/v1/admin/orders/${orderId}/refund`, input);
    assert.equal(reply.body.data?.status, "succeeded", reply.text);
  }
  const page = await (await fetch((await detailOf(buyer, orderId)).receipt.url)).text();
  assert.match(page, /Refunded on 3 February 2027<\/dt><dd>−1\.50 USD/);
  assert.match(page, /Refunded on 28 February 2027<\/dt><dd>−0\.50 USD/);
  assert.match(page, /Paid after refund<\/dt><dd>8\.00 USD/);
});

for (const [currency, price] of [
  ["JPY", 1_999],
  ["USD", 19.99],
  ["KWD", 19.999],
] as const)
  test(`receipt, order and ledger in ${currency}: agree to the last digit`, async () => {
    const [seller, buyer, referrer] = [
      await market.createUser(),
      await market.createUser(),
      await market.createUser(),
    ];
    await (await market.createSession(buyer.userId)).patch("/v1/account", { country: "DE" });
    const { code } = (await referrer.get("/v1/account/referral")).body.data;
    const productId = await createProduct(seller, { price, currency });
    await seller.post("/v1/discount-codes", { code: "ODD", percentOff: 33.33 });
    const input = { productId, discountCode: "ODD", referralCode: code };
    const { body } = await buyer.post("/v1/purchases", input);
    const order = await detailOf(buyer, body.data.orderId);
    const { rows } = await market.query(
      "select account, amount_minor from ledger_entries where order_id = $1",
      [toUuid("ord", order.orderId)],
    );
    const booked = Object.fromEntries(rows.map((row) => [row.account, row.amount_minor as number]));
    const charged = await market.query("select amount_minor from fake_provider.charges where order_id = $1", [
      order.orderId,
    ]);
    // The provider's balance: the charge less its fee.
    const held = -booked["provider_clearing"]! - booked["processor_fees"]!;
    assert.equal(held, charged.rows[0].amount_minor);
    const { seller: sellers, referrer: referrers, platform_revenue: fee, tax_payable: tax } = booked;
    assert.equal(sellers! + referrers! + fee! + tax!, charged.rows[0].amount_minor);
    const page = await (await fetch(order.receipt.url)).text();
    for (const [label, minor] of [
      ["Total", charged.rows[0].amount_minor],
      ["Tax \\(DE, 19 %\\)", tax],
    ] as const)
      assert.match(
        page,
        new RegExp(`<dt>${label}</dt><dd>${formatMoney(minor!, currency).replace(".", "\\.")}<`),
      );
    const unit = 10 ** { JPY: 0, USD: 2, KWD: 3 }[currency];
    assert.equal(Math.round(order.lines.total * unit), charged.rows[0].amount_minor);
    assert.equal(Math.round(order.lines.tax * unit), tax);
    const [sale] = (await seller.get("/v1/sales")).body.data;
    assert.deepEqual(
      [sale.fee, sale.commission, sale.tax, sale.earnings].map((part: number) => Math.round(part * unit)),
      [fee, referrers, tax, sellers],
    );
  });
