import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import fc from "fast-check";
import { emailsToUser } from "../../../test/emails.ts";
import { buyProduct, createProduct, type ProductInput, sharedProducts } from "../../../test/factories.ts";
import { isFullSize, runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { type PaymentConnection, withConnectionTrouble } from "../../../test/payments.ts";
import { accountsOf, createFakeRefunds, refundedMinorOf, withRefunds } from "../../../test/refunds.ts";
import { toUuid } from "../../core/ids.ts";
import {
  createFakePayments,
  type FakeProvider,
  memoryStore,
  startFakeProvider,
} from "../../integrations/payments/fake-payments.ts";
import type { RefundResult } from "../../integrations/payments/payments.ts";
import { reconcileCharges } from "../charges/charges.ts";
import { orderTarget, settleOrder } from "../checkout/order-payment.ts";
import { verifyLedger } from "../ledger/verification.ts";
import { reconcileRefunds, settleRefund, submitRefund, syncRefundFromProvider } from "./refund-submission.ts";
import { settleReturnedRefund } from "./returned-refunds.ts";

const MINUTE_MS = 60_000;

const book = createFakeRefunds();
const line: PaymentConnection = { trouble: "none" };
let provider: FakeProvider;
let market: Market;
let seller: Client;
let admin: Client;
before(async () => {
  provider = await startFakeProvider({ store: memoryStore(), now: () => market.clock.now });
  const charges = withConnectionTrouble(line, createFakePayments({ origin: provider.origin }));
  market = await openMarket({ payments: withRefunds(book, charges) });
  seller = await market.createUser({ name: "Seller" });
  const { userId } = await market.createUser({ role: "admin" });
  admin = await market.createSession(userId, { secondFactor: true });
});
beforeEach(() => {
  book.trouble = "none";
  line.trouble = "none";
  book.feeMinor = null;
});
after(async () => {
  await market.close();
  await provider.close();
});

interface Bought {
  buyer: Client;
  orderId: string;
}

const shareProduct = sharedProducts();

async function createOrder(input: ProductInput = {}): Promise<Bought> {
  const buyer = await market.createUser();
  return { buyer, orderId: await buyProduct(buyer, await shareProduct(seller, { price: 10, ...input })) };
}

const requestRefund = (buyer: Client, orderId: string) =>
  buyer.post(`/v1/purchases/${orderId}/refund`, { reason: "accidental" });
const refundAsAdmin = (orderId: string, amount?: number) =>
  admin.post(`/v1/admin/orders/${orderId}/refund`, { reason: "other", ...(amount && { amount }) });
const orderOf = async (buyer: Client, id: string) => (await buyer.get(`/v1/purchases/${id}`)).body.data;
const statusesOf = (order: { refunds: { status: string }[] }) => order.refunds.map(({ status }) => status);
const reconcile = () => reconcileRefunds(market.service.ctx);

async function refundedEvents(orderId: string): Promise<number> {
  const { rows } = await market.query(
    "select count(*) from events where type = 'purchase.refunded' and strpos(body, $1) > 0",
    [orderId],
  );
  return rows[0].count;
}

/** Refunded once and in full, in every table. */
async function assertRefunded({ buyer, orderId }: Bought): Promise<void> {
  const order = await orderOf(buyer, orderId);
  assert.equal(order.status, "refunded");
  assert.equal(order.entitlement.status, "revoked");
  assert.equal(await refundedMinorOf(market, book, orderId), 1_000n);
  assert.deepEqual(await accountsOf(market, orderId), {});
  assert.equal(await refundedEvents(orderId), 1);
}

suite("a refund without the provider's answer", () => {
  for (const trouble of ["answers get lost", "down"] as const) {
    test(`${trouble}: stays processing; the job completes it once`, async () => {
      const bought = await createOrder();
      book.trouble = trouble;
      book.asked = 0;
      const reply = await requestRefund(bought.buyer, bought.orderId);
      assert.deepEqual([reply.status, reply.body.data.status], [201, "processing"]);
      assertError(await requestRefund(bought.buyer, bought.orderId), 409, "CONFLICT");
      book.trouble = "none";
      market.clock.forward(MINUTE_MS);
      await reconcile();
      assert.equal(book.asked, 1, "not before a minute: the answer may still come");
      market.clock.forward(1);
      await reconcile();
      await reconcile();
      await assertRefunded(bought);
      assert.equal(book.asked, trouble === "down" ? 2 : 1, "asked again only where it was never heard");
    });
  }

  test("provider unavailable: stays processing and does not delay other refunds", async () => {
    const bought = await createOrder();
    book.trouble = "down";
    await requestRefund(bought.buyer, bought.orderId);
    market.clock.forward(24 * 60 * MINUTE_MS);
    await reconcile();
    assert.deepEqual(statusesOf(await orderOf(bought.buyer, bought.orderId)), ["processing"]);
    book.trouble = "none";
    market.clock.forward(2 * MINUTE_MS);
    await reconcile();
    await assertRefunded(bought);
  });

  test("webhook repeated and late: settled once", async () => {
    const { ctx } = market.service;
    const bought = await createOrder();
    book.trouble = "slow";
    const { id } = (await requestRefund(bought.buyer, bought.orderId)).body.data;
    const uuid = toUuid("refund", id)!;
    await syncRefundFromProvider(ctx, id);
    assert.deepEqual(statusesOf(await orderOf(bought.buyer, bought.orderId)), ["processing"]);
    const succeeded: RefundResult = { state: "succeeded", providerRefundId: "re_1" };
    book.refunds.set(id, { ...book.refunds.get(id)!, outcome: succeeded });
    await Promise.all(Array.from({ length: 5 }, () => syncRefundFromProvider(ctx, id)));
    await settleRefund(ctx, uuid, succeeded);
    await settleRefund(ctx, uuid, { state: "processing", providerRefundId: "re_1" });
    await assertRefunded(bought);
  });
});

test("a refund returned by the bank: credited to the buyer once, settled once by the operator", async () => {
  const { ctx } = market.service;
  const bought = await createOrder();
  const { id } = (await requestRefund(bought.buyer, bought.orderId)).body.data;
  const before = (await orderOf(bought.buyer, bought.orderId)).refundedAmount;
  const failed: RefundResult = { state: "failed", providerRefundId: "re_1", failureCode: "card_closed" };
  book.refunds.set(id, { ...book.refunds.get(id)!, outcome: failed });
  await Promise.all(Array.from({ length: 20 }, () => syncRefundFromProvider(ctx, id)));
  const late: RefundResult = { state: "succeeded", providerRefundId: "re_1" };
  await settleRefund(ctx, toUuid("refund", id)!, late);
  const { data } = (await bought.buyer.get(`/v1/refunds/${id}`)).body;
  assert.partialDeepStrictEqual(data, {
    status: "succeeded",
    failureCode: "card_closed",
    returnedAt: market.clock.now.toISOString(),
  });
  assert.equal((await orderOf(bought.buyer, bought.orderId)).refundedAmount, before, "it stays refunded");
  const { rows } = await market.query(
    `select e.account, e.owner_id, e.amount_minor as amount from ledger_entries e
       join ledger_transactions t on t.id = e.transaction_id
      where t.kind = 'refund_returned' and t.source_id = $1 order by 1`,
    [toUuid("refund", id)],
  );
  const amount = data.amount * 100;
  assert.deepEqual(rows, [
    { account: "buyer_credit", owner_id: bought.buyer.userId, amount },
    { account: "provider_clearing", owner_id: null, amount: -amount },
  ]);
  const settles = () => settleReturnedRefund(ctx, id, "SEPA 4711");
  const settled = await Promise.allSettled([settles(), settles()]);
  assert.deepEqual(settled.map(({ status }) => status).toSorted(), ["fulfilled", "rejected"]);
  await assert.rejects(settles(), /settled already/);
  const credit = await market.query(
    `select account, sum(amount_minor)::int as sum from ledger_entries
      where owner_id = $1 or account = 'bank' group by 1 order by 1`,
    [bought.buyer.userId],
  );
  assert.deepEqual(credit.rows, [
    { account: "bank", sum: amount },
    { account: "buyer_credit", sum: 0 },
  ]);
  const after = (await bought.buyer.get(`/v1/refunds/${id}`)).body.data;
  assert.equal(after.settledAt, market.clock.now.toISOString());
  assert.deepEqual((await verifyLedger(ctx.db)).problems, []);
  await assert.rejects(settleReturnedRefund(ctx, "refund_none", "x"), /no refund/);
  const subjects = (await emailsToUser(market, bought.buyer.userId)).map(({ subject }) => subject);
  assert.equal(subjects.filter((one) => one.startsWith("Your bank returned a refund")).length, 1);
  assert.equal(market.logs.filter((line) => line.includes("the bank returned a refund")).length >= 1, true);
});

suite("a process killed during a refund", () => {
  /** Simulates the end of the process: later steps fail. */
  async function failAt(statement: string, repair: string, work: () => Promise<unknown>): Promise<void> {
    await market.query(statement);
    await work();
    await market.query(repair);
  }
  const breakStatus = (status: string) =>
    `alter table refunds add constraint broken check (status <> '${status}') not valid`;
  const repair = "alter table refunds drop constraint broken";

  for (const [step, statement] of [
    ["after the approval, before the provider is asked", breakStatus("processing")],
    ["after the provider's answer, before it is noted", breakStatus("succeeded")],
  ] as const) {
    test(`${step}: the job completes it once`, async () => {
      const bought = await createOrder();
      await failAt(statement, repair, async () => {
        assert.equal((await requestRefund(bought.buyer, bought.orderId)).status, 500);
      });
      market.clock.forward(MINUTE_MS + 1);
      await reconcile();
      await assertRefunded(bought);
      const order = await orderOf(bought.buyer, bought.orderId);
      assert.deepEqual(statusesOf(order), ["succeeded"], "one refund");
    });
  }

  test("during settlement: rolled back; the job settles it", async () => {
    for (const [table, check] of [
      ["ledger_transactions", "kind <> 'refund'"],
      ["entitlements", "status <> 'revoked'"],
      ["events", "type <> 'purchase.refunded'"],
    ] as const) {
      const bought = await createOrder();
      const broken = `alter table ${table} add constraint broken check (${check}) not valid`;
      await failAt(broken, `alter table ${table} drop constraint broken`, async () => {
        assert.equal((await requestRefund(bought.buyer, bought.orderId)).status, 500);
        const order = await orderOf(bought.buyer, bought.orderId);
        assert.deepEqual([order.status, statusesOf(order)], ["completed", ["processing"]]);
        assert.equal(await refundedEvents(bought.orderId), 0);
        assert.notDeepEqual(await accountsOf(market, bought.orderId), {});
      });
      market.clock.forward(MINUTE_MS + 1);
      await reconcile();
      await assertRefunded(bought);
    }
  });

  test("ten concurrent jobs: refunded once", async () => {
    const bought = await createOrder();
    book.trouble = "down";
    const { id } = (await requestRefund(bought.buyer, bought.orderId)).body.data;
    book.trouble = "none";
    market.clock.forward(MINUTE_MS + 1);
    const { ctx } = market.service;
    const uuid = toUuid("refund", id)!;
    await Promise.all(
      Array.from({ length: 10 }, (_, at) => (at % 2 ? reconcile() : submitRefund(ctx, uuid))),
    );
    await assertRefunded(bought);
  });
});

suite("concurrency", () => {
  test("concurrent requests: one refund", async () => {
    const bought = await createOrder();
    book.asked = 0;
    const replies = await Promise.all(
      Array.from({ length: runs(50) }, () => requestRefund(bought.buyer, bought.orderId)),
    );
    const codes = Map.groupBy(replies, ({ status, body }) => `${status} ${body.error?.code ?? ""}`);
    assert.equal(codes.get("201 ")?.length, 1);
    for (const code of codes.keys()) assert.match(code, /^(201 |409 (CONFLICT|ALREADY_REFUNDED))$/);
    assert.equal(book.asked, 1);
    await assertRefunded(bought);
  });

  test("concurrent partial refunds by administrators: sum to the paid amount", async () => {
    const { buyer, orderId } = await createOrder();
    const [requests, amount, fitting] = isFullSize ? [50, 0.3, 33] : [10, 1.65, 6];
    const replies = await Promise.all(Array.from({ length: requests }, () => refundAsAdmin(orderId, amount)));
    const done = replies.filter(({ status }) => status === 201);
    assert.equal(done.length, fitting, "9.90 of 10.00");
    for (const { status, body } of replies)
      assert.match(`${status} ${body.error?.code ?? ""}`, /^(201 |422 VALIDATION_ERROR)$/);
    assert.equal(await refundedMinorOf(market, book, orderId), 990n);
    assert.equal((await orderOf(buyer, orderId)).status, "partially_refunded");
    assert.equal((await refundAsAdmin(orderId)).body.data.amount, 0.1);
    assert.equal(await refundedMinorOf(market, book, orderId), 1_000n);
    assert.deepEqual(await accountsOf(market, orderId), {});
  });

  test("refunds, purchases and reviews of one product: counters are correct, no deadlock", async () => {
    const productId = await createProduct(seller, { price: 10 });
    const people = () => Promise.all(Array.from({ length: runs(20) }, () => market.createUser()));
    const [leaving, staying, coming] = [await people(), await people(), await people()];
    const bought = await Promise.all(leaving.map((buyer) => buyProduct(buyer, productId)));
    await Promise.all(staying.map((buyer) => buyProduct(buyer, productId)));
    const review = (buyer: Client, rating: number) =>
      buyer.post(`/v1/products/${productId}/reviews`, { rating });
    await Promise.all(leaving.map((buyer) => review(buyer, 1)));
    const replies = await Promise.all([
      ...leaving.map((buyer, at) => requestRefund(buyer, bought[at]!)),
      ...staying.map((buyer) => review(buyer, 5)),
      ...coming.map((buyer) => buyer.post("/v1/purchases", { productId })),
    ]);
    for (const { status, text } of replies) assert.equal(status, 201, text);
    const { stats } = (await seller.get(`/v1/products/${productId}`)).body.data;
    assert.partialDeepStrictEqual(stats, {
      purchases: 2 * staying.length,
      rating: 5,
      reviews: staying.length,
    });
  });

  test("approval, rejection and cancellation of one request: one succeeds", async () => {
    for (let round = 0; round < runs(8); round++) {
      const bought = await createOrder();
      const { product } = await orderOf(bought.buyer, bought.orderId);
      await bought.buyer.get(`/v1/products/${product.id}`);
      const { id } = (await requestRefund(bought.buyer, bought.orderId)).body.data;
      const path = `/v1/refunds/${id}`;
      const replies = await Promise.all([
        seller.post(`${path}/approve`),
        seller.post(`${path}/reject`, { reason: "No" }),
        bought.buyer.post(`${path}/cancel`),
        admin.post(`${path}/approve`),
      ]);
      assert.equal(replies.filter(({ status }) => status === 200).length, 1);
      const { status } = (await bought.buyer.get(path)).body.data;
      assert.equal(await refundedMinorOf(market, book, bought.orderId), status === "succeeded" ? 1_000n : 0n);
    }
  });
});

test("any partial refunds: only the processor's fee remains on the accounts", async () => {
  const priced = fc.record({
    currency: fc.constantFrom("USD", "JPY", "KWD"),
    minor: fc.integer({ min: 100, max: 20_000 }),
    fee: fc.integer({ min: 0, max: 50 }),
    cuts: fc.array(fc.integer({ min: 1, max: 99 }), { maxLength: 6 }),
  });
  const exponents = { USD: 2, JPY: 0, KWD: 3 } as const;
  const property = fc.asyncProperty(priced, async ({ currency, minor, fee, cuts }) => {
    const decimal = (amount: number) => Number((amount / 10 ** exponents[currency as "USD"]).toFixed(3));
    book.feeMinor = BigInt(fee);
    const bought = await createOrder({ price: decimal(minor), currency });
    let left = minor;
    for (const cut of cuts) {
      const part = Math.floor((left * cut) / 100);
      if (part === 0) continue;
      assert.equal((await refundAsAdmin(bought.orderId, decimal(part))).status, 201);
      left -= part;
      const sums = Object.values(await accountsOf(market, bought.orderId));
      assert.equal(
        sums.reduce((sum, one) => sum + one, 0),
        0,
      );
    }
    assert.equal((await refundAsAdmin(bought.orderId)).status, 201);
    const all = await accountsOf(market, bought.orderId);
    assert.deepEqual(all, fee === 0 ? {} : { processor_fees: -fee, provider_clearing: fee });
    assert.equal(await refundedMinorOf(market, book, bought.orderId), BigInt(minor));
  });
  await fc.assert(property, { numRuns: runs(15), endOnFailure: true });
});

suite("a late payment of a canceled order whose buyer owns the product", () => {
  async function createLatePayment(): Promise<Bought & { owned: string; productId: string }> {
    const buyer = await market.createUser();
    const productId = await createProduct(seller, { price: 10, title: "Twice" });
    line.trouble = "answers get lost";
    const { orderId } = (await buyer.post("/v1/purchases", { productId })).body.data;
    line.trouble = "none";
    await market.query("update orders set status = 'canceled' where id = $1", [toUuid("ord", orderId)]);
    const owned = await buyProduct(buyer, productId);
    return { buyer, orderId, owned, productId };
  }
  const comes = async (orderId: string) => {
    const { ctx } = market.service;
    const paid = (await ctx.integrations.payments.findCharge(orderId))!;
    assert.equal(paid.state, "succeeded");
    if (paid.state === "succeeded") await settleOrder(ctx, toUuid("ord", orderId)!, paid);
  };

  test("posted and refunded automatically; the buyer keeps the product", async () => {
    book.feeMinor = 59n;
    const { buyer, orderId, owned, productId } = await createLatePayment();
    await buyer.post(`/v1/products/${productId}/reviews`, { rating: 5 });
    await comes(orderId);
    await comes(orderId);
    const order = await orderOf(buyer, orderId);
    assert.partialDeepStrictEqual(order, {
      status: "refunded",
      refundedAmount: 10,
      entitlement: null,
      downloadUrl: null,
      refunds: [{ requestedBy: "service", status: "succeeded", amount: 10, reason: "duplicate" }],
    });
    assert.equal(await refundedMinorOf(market, book, orderId), 1_000n);
    const fee = { processor_fees: -59, provider_clearing: 59 };
    assert.deepEqual(await accountsOf(market, orderId), fee, "what the provider keeps of it");
    assert.equal((await orderOf(buyer, owned)).entitlement.status, "active");
    const { stats } = (await seller.get(`/v1/products/${productId}`)).body.data;
    assert.partialDeepStrictEqual(stats, { purchases: 1, rating: 5, reviews: 1 });
    assert.equal(await refundedEvents(orderId), 0, "programs never heard of the sale");
    assert.equal((await emailsToUser(market, buyer.userId))[0]?.subject, "Refunded: Twice");
  });

  test("provider unavailable: the job refunds it", async () => {
    const { buyer, orderId } = await createLatePayment();
    book.trouble = "answers get lost";
    await comes(orderId);
    assert.deepEqual(statusesOf(await orderOf(buyer, orderId)), ["processing"]);
    book.trouble = "none";
    market.clock.forward(MINUTE_MS + 1);
    await reconcileCharges(market.service.ctx, orderTarget);
    await reconcile();
    assert.equal((await orderOf(buyer, orderId)).status, "refunded");
    assert.equal(await refundedMinorOf(market, book, orderId), 1_000n);
  });
});

test("all refunds above: ledger verification finds no problem", async () => {
  assert.deepEqual((await verifyLedger(market.service.ctx.db)).problems, []);
});
