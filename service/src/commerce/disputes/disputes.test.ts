import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import fc from "fast-check";
import { emailsToUser, unwrapLines } from "../../../test/emails.ts";
import { buyProduct, createProduct, type ProductInput, sharedProducts } from "../../../test/factories.ts";
import { isFullSize, runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { titlesOf } from "../../../test/notifications.ts";
import { type PaymentConnection, withConnectionTrouble } from "../../../test/payments.ts";
import {
  accountsOf,
  createFakeRefunds,
  openDispute,
  refundedMinorOf,
  withRefunds,
} from "../../../test/refunds.ts";
import { runChecks } from "../../backoffice/operator/doctor.ts";
import { toUuid } from "../../core/ids.ts";
import { roundHalfUp } from "../../core/money/amount.ts";
import {
  createFakePayments,
  type FakeProvider,
  memoryStore,
  startFakeProvider,
} from "../../integrations/payments/fake-payments.ts";
import { disputeRooms } from "../../jobs.ts";
import { reconcileDisputes, syncDispute } from "../charges/disputes.ts";
import { verifyLedger } from "../ledger/verification.ts";
import { reconcileRefunds } from "../refunds/refund-submission.ts";

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
});
after(async () => {
  await market.close();
  await provider.close();
});

interface Bought {
  buyer: Client;
  productId: string;
  orderId: string;
}

const shareProduct = sharedProducts();

async function createOrder(input: ProductInput = {}): Promise<Bought> {
  const buyer = await market.createUser();
  const productId = await shareProduct(seller, { price: 10, title: "Haiku", ...input });
  return { buyer, productId, orderId: await buyProduct(buyer, productId) };
}

const sync = (disputeId: string) => syncDispute(market.service.ctx, disputeRooms, disputeId);
const readFindings = async () => {
  const { config, pool } = market.service.ctx;
  const target = String(pool.options.connectionString);
  const all = await runChecks({ config, target }, market.clock.now);
  return Object.fromEntries(all.map(({ check, ...finding }) => [check, finding]));
};
const refundAsAdmin = (orderId: string, amount?: number) =>
  admin.post(`/v1/admin/orders/${orderId}/refund`, { reason: "other", ...(amount && { amount }) });
const requestRefund = (buyer: Client, orderId: string) =>
  buyer.post(`/v1/purchases/${orderId}/refund`, { reason: "fraudulent" });
const orderOf = async (buyer: Client, id: string) => (await buyer.get(`/v1/purchases/${id}`)).body.data;
const lastSubjectTo = async ({ userId }: Client) => (await emailsToUser(market, userId))[0]?.subject ?? "";
const lastEmailTo = async ({ userId }: Client) =>
  unwrapLines((await emailsToUser(market, userId))[0]?.text ?? "");
const SALE = { platform_revenue: 100, provider_clearing: -1_000, seller: 900 };

async function createDispute(
  input: Parameters<typeof openDispute>[2] = {},
  product: ProductInput = {},
): Promise<Bought & { disputeId: string }> {
  const bought = await createOrder(product);
  const disputeId = openDispute(book, bought.orderId, input);
  await sync(disputeId);
  return { ...bought, disputeId };
}

async function decide({ orderId, disputeId }: { orderId: string; disputeId: string }, state: "won" | "lost") {
  openDispute(book, orderId, { disputeId, state });
  await sync(disputeId);
}

suite("a dispute", () => {
  test("open: holds the rest of the order; the buyer keeps the product until it is lost", async () => {
    const { buyer, orderId } = await createDispute();
    assert.deepEqual(await accountsOf(market, orderId), { dispute_hold: 1_000, provider_clearing: -1_000 });
    const order = await orderOf(buyer, orderId);
    assert.partialDeepStrictEqual(order, {
      status: "disputed",
      refundedAmount: 0,
      entitlement: { status: "active" },
      refundable: { amount: 0, reasonIfNot: "disputed" },
    });
    assert.deepEqual(order.events.at(-1), {
      type: "dispute.opened",
      at: market.clock.now.toISOString(),
      amount: 10,
    });
    assert.equal((await fetch(order.downloadUrl)).status, 200);
    assert.equal(await lastSubjectTo(buyer), "Payment disputed by your bank: Haiku");
    assert.equal(await lastSubjectTo(seller), "Payment disputed: Haiku");
  });

  test("open: stores the bank's deadline for the operator", async () => {
    const answerBy = new Date("2026-07-01T23:59:59Z");
    const { disputeId } = await createDispute({ evidenceDueBy: answerBy });
    const { rows } = await market.query("select answer_by from disputes where provider_dispute_id = $1", [
      disputeId,
    ]);
    assert.deepEqual(rows, [{ answer_by: answerBy }]);
  });

  test("won: restores everything", async () => {
    const bought = await createDispute({ feeMinor: 1_500n });
    await decide(bought, "won");
    assert.deepEqual(await accountsOf(market, bought.orderId), SALE);
    assert.partialDeepStrictEqual(await orderOf(bought.buyer, bought.orderId), {
      status: "completed",
      entitlement: { status: "active" },
      refundable: { reasonIfNot: null },
    });
    assert.equal(await lastSubjectTo(seller), "Dispute won: Haiku");
    assert.equal((await titlesOf(seller))[0], "You won the dispute about $10.00 for Haiku");
    assert.equal((await titlesOf(bought.buyer))[0], "Your payment of $10.00 for Haiku stands");
    assert.equal((await refundAsAdmin(bought.orderId)).body.data.status, "succeeded");
    assert.deepEqual(await accountsOf(market, bought.orderId), {});
  });

  test("lost: refunds the order; the seller pays the provider's fee", async () => {
    const bought = await createDispute({ feeMinor: 1_500n }, { description: "Bought once." });
    const { buyer, orderId, productId } = bought;
    const { downloadUrl } = await orderOf(buyer, orderId);
    await buyer.post(`/v1/products/${productId}/reviews`, { rating: 1 });
    await decide(bought, "lost");
    assert.deepEqual(await accountsOf(market, orderId), { provider_clearing: 1_500, seller: -1_500 });
    assert.partialDeepStrictEqual(await orderOf(buyer, orderId), {
      status: "refunded",
      refundedAmount: 10,
      entitlement: { status: "revoked" },
      downloadUrl: null,
    });
    assertError(await buyer.get(downloadUrl), 403, "UNAUTHORIZED");
    const { stats } = (await seller.get(`/v1/products/${productId}`)).body.data;
    assert.partialDeepStrictEqual(stats, { purchases: 0, rating: 0, reviews: 0 });
    assert.equal(await lastSubjectTo(buyer), "Dispute closed: Haiku");
    const toBuyer = [
      "Your bank returned $10.00 for Haiku to you",
      "Your bank disputes your payment of $10.00 for Haiku",
    ];
    assert.deepEqual(await titlesOf(buyer), toBuyer);
    assert.deepEqual((await titlesOf(seller)).slice(0, 3), [
      "You lost the dispute about $10.00 for Haiku",
      "Somebody gave Haiku 1 star",
      "A bank disputes a payment of $10.00 for Haiku",
    ]);
    assert.match(await lastEmailTo(buyer), /You can no longer use the product\./);
    assert.equal(await lastSubjectTo(seller), "Dispute lost: Haiku");
    for (const side of [buyer, seller]) {
      const { text } = await side.get("/v1/events?type=purchase.refunded");
      assert.ok(!text.includes(orderId), "it names a refund, and there is none");
    }
    assertError(await refundAsAdmin(orderId), 409, "ALREADY_REFUNDED");
  });

  test("of a part: the rest is unaffected", async () => {
    const bought = await createDispute({ amountMinor: 400n });
    assert.deepEqual(await accountsOf(market, bought.orderId), {
      dispute_hold: 400,
      platform_revenue: 60,
      provider_clearing: -1_000,
      seller: 540,
    });
    await decide(bought, "lost");
    assert.partialDeepStrictEqual(await orderOf(bought.buyer, bought.orderId), {
      status: "partially_refunded",
      refundedAmount: 4,
      entitlement: { status: "active" },
    });
    assert.match(
      await lastEmailTo(bought.buyer),
      /decided to return the 4\.00 USD for “Haiku” to you\. You keep the product\./,
    );
    assert.equal((await refundAsAdmin(bought.orderId)).body.data.amount, 6);
    assert.deepEqual(await accountsOf(market, bought.orderId), {});
  });

  test("of a partially refunded order: holds the rest; won restores it", async () => {
    const { buyer, orderId } = await createOrder();
    await refundAsAdmin(orderId, 3);
    const disputeId = openDispute(book, orderId);
    await sync(disputeId);
    assert.deepEqual(await accountsOf(market, orderId), { dispute_hold: 700, provider_clearing: -700 });
    await decide({ orderId, disputeId }, "won");
    assert.equal((await orderOf(buyer, orderId)).status, "partially_refunded");
    await refundAsAdmin(orderId);
    assert.deepEqual(await accountsOf(market, orderId), {});
  });

  test("lost, of the whole price after a refund: the excess is the marketplace's loss", async () => {
    const buyer = await market.createUser();
    const orderId = await buyProduct(buyer, await createProduct(seller, { price: 30 }));
    await refundAsAdmin(orderId, 10);
    const disputeId = openDispute(book, orderId, { amountMinor: 3_000n, feeMinor: 1_500n });
    await sync(disputeId);
    await decide({ orderId, disputeId }, "lost");
    // The provider had 30.00 and took 10.00, 30.00 and its fee of 15.00.
    assert.deepEqual(await accountsOf(market, orderId), {
      dispute_losses: -1_000,
      provider_clearing: 2_500,
      seller: -1_500,
    });
    assert.deepEqual((await verifyLedger(market.service.ctx.db)).problems, []);
    assert.equal((await orderOf(buyer, orderId)).status, "refunded");
    const all = await readFindings();
    assert.match(all["money"]!.note, new RegExp(`1 lost_in_excess as dispute, .*${orderId}`));
  });

  test("received before the payment's answer: syncs the payment first", async () => {
    const buyer = await market.createUser();
    const productId = await createProduct(seller, { price: 10 });
    line.trouble = "answers get lost";
    const { orderId } = (await buyer.post("/v1/purchases", { productId })).body.data;
    const disputeId = openDispute(book, orderId);
    await assert.rejects(sync(disputeId), /no answer/);
    line.trouble = "none";
    await sync(disputeId);
    assert.equal((await orderOf(buyer, orderId)).status, "disputed");
  });

  test("unknown or without an order: changes nothing", async () => {
    await sync("dp_nothing");
    await sync(openDispute(book, "ord_01kf5v8q3xe8hb1d6c1m2k3n4p"));
    await sync(openDispute(book, "nonsense"));
    assert.ok(market.logs.some((text) => text.includes("is about no order of ours")));
  });
});

suite("dispute webhooks", () => {
  const applyStates = async (states: ("open" | "won" | "lost")[]) => {
    const bought = await createOrder();
    const disputeId = openDispute(book, bought.orderId, { feeMinor: 1_500n });
    for (const state of states) {
      openDispute(book, bought.orderId, { disputeId, state });
      await sync(disputeId);
      await sync(disputeId);
    }
    const { status, events } = await orderOf(bought.buyer, bought.orderId);
    return {
      status,
      events: events.map(({ type }: { type: string }) => type),
      accounts: await accountsOf(market, bought.orderId),
      messages: (await emailsToUser(market, bought.buyer.userId)).map(({ subject }) => subject),
    };
  };

  for (const end of ["won", "lost"] as const) {
    test(`${end}, repeated, late or in reverse: same result`, async () => {
      const inOrder = await applyStates(["open", end]);
      assert.deepEqual(await applyStates([end]), inOrder, "the first webhook was lost");
      assert.deepEqual(await applyStates([end, "open"]), inOrder, "an old answer that comes late");
      assert.deepEqual(await applyStates([end, end, "open", "open"]), inOrder);
    });
  }

  test("concurrent webhooks: posted once", async () => {
    const { orderId, disputeId } = await createDispute();
    openDispute(book, orderId, { disputeId, state: "lost", feeMinor: 1_500n });
    await Promise.all(Array.from({ length: runs(20) }, () => sync(disputeId)));
    assert.deepEqual(await accountsOf(market, orderId), { provider_clearing: 1_500, seller: -1_500 });
  });

  test("lost webhook: the job applies the dispute", async () => {
    const { buyer, orderId, disputeId } = await createDispute();
    openDispute(book, orderId, { disputeId, state: "won" });
    await reconcileDisputes(market.service.ctx, disputeRooms);
    assert.equal((await orderOf(buyer, orderId)).status, "completed");
  });

  test("lost webhooks of an opened and a lost dispute: the job lists both", async () => {
    const [one, two] = [await createOrder(), await createOrder()];
    const createdAt = market.clock.now;
    openDispute(book, one.orderId, { createdAt });
    openDispute(book, two.orderId, { createdAt, state: "lost" });
    await reconcileDisputes(market.service.ctx, disputeRooms);
    assert.equal((await orderOf(one.buyer, one.orderId)).status, "disputed");
    assert.equal((await orderOf(two.buyer, two.orderId)).status, "refunded");
  });

  test("lost webhook before the payment settled: listed again until it can be applied", async () => {
    const buyer = await market.createUser();
    const productId = await createProduct(seller, { price: 10 });
    line.trouble = "answers get lost";
    const { orderId } = (await buyer.post("/v1/purchases", { productId })).body.data;
    openDispute(book, orderId, { createdAt: market.clock.now });
    for (let hours = 0; hours < 3; hours++) {
      await reconcileDisputes(market.service.ctx, disputeRooms);
      market.clock.forward(3_600_000);
    }
    assert.notEqual((await orderOf(buyer, orderId)).status, "disputed");
    line.trouble = "none";
    await reconcileDisputes(market.service.ctx, disputeRooms);
    assert.equal((await orderOf(buyer, orderId)).status, "disputed");
  });

  test("a dispute of a failed payment: reported to the operator; the list continues", async () => {
    const buyer = await market.createUser();
    const productId = await createProduct(seller, { price: 10 });
    const declined = { productId, paymentMethodId: "pm_test_declined" };
    const { orderId } = (await buyer.post("/v1/purchases", declined)).body.error.details;
    const disputeId = openDispute(book, orderId, { createdAt: market.clock.now });
    const readUntil = async () =>
      (await market.query("select read_until from provider_cursors where list = 'disputes'")).rows[0]
        .read_until;
    for (let round = 0; round < 2; round++) {
      market.clock.forward(86_400_000);
      await reconcileDisputes(market.service.ctx, disputeRooms);
      assert.deepEqual(await readUntil(), market.clock.now);
    }
    market.clock.forward(1);
    assert.match((await readFindings())["money"]!.note, new RegExp(`1 unapplied as dispute, .*${orderId}`));
    book.disputes.delete(disputeId);
    await reconcileDisputes(market.service.ctx, disputeRooms);
    assert.doesNotMatch((await readFindings())["money"]!.note, /unapplied/);
  });
});

suite("an inquiry", () => {
  test("open: holds no money and allows refunds, which end it", async () => {
    const { buyer, orderId, disputeId } = await createDispute({ state: "inquiry" });
    assert.deepEqual(await accountsOf(market, orderId), SALE);
    assert.partialDeepStrictEqual(await orderOf(buyer, orderId), {
      status: "completed",
      refundable: { reasonIfNot: null },
    });
    market.clock.forward(1);
    assert.match(
      (await readFindings())["money"]!.note,
      /inquiry as dispute, .*the buyer's bank inquires about it/,
    );
    assert.equal((await refundAsAdmin(orderId)).body.data.status, "succeeded");
    openDispute(book, orderId, { disputeId, state: "inquiry_closed" });
    await reconcileDisputes(market.service.ctx, disputeRooms);
    const { status, events } = await orderOf(buyer, orderId);
    assert.equal(status, "refunded");
    assert.ok(!JSON.stringify(events).includes("dispute"));
    assert.doesNotMatch((await readFindings())["money"]!.note, /inquiry as dispute/);
  });

  test("closed, then a dispute: holds the money", async () => {
    const { buyer, orderId, disputeId } = await createDispute({ state: "inquiry" });
    for (const state of ["inquiry_closed", "open"] as const)
      await sync(openDispute(book, orderId, { disputeId, state }));
    assert.equal((await orderOf(buyer, orderId)).status, "disputed");
    assert.equal((await accountsOf(market, orderId))["dispute_hold"], 1_000);
  });

  test("escalated without a webhook: the job applies it", async () => {
    const bought = await createDispute({ state: "inquiry" });
    openDispute(book, bought.orderId, { disputeId: bought.disputeId, state: "open" });
    await reconcileDisputes(market.service.ctx, disputeRooms);
    assert.deepEqual(await accountsOf(market, bought.orderId), {
      dispute_hold: 1_000,
      provider_clearing: -1_000,
    });
    await decide(bought, "lost");
    assert.equal((await orderOf(bought.buyer, bought.orderId)).status, "refunded");
  });
});

suite("refunds and disputes of one order", () => {
  test("an open dispute: refunds are refused", async () => {
    const { buyer, orderId } = await createDispute();
    for (const reply of [
      await requestRefund(buyer, orderId),
      await refundAsAdmin(orderId),
      await refundAsAdmin(orderId, 1),
    ])
      assert.equal(assertError(reply, 409, "INVALID_STATE").current, "disputed");
    assert.equal(await refundedMinorOf(market, book, orderId), 0n);
  });

  test("a pending request: canceled when the dispute opens", async () => {
    const { buyer, orderId, productId } = await createOrder();
    await buyer.get(`/v1/products/${productId}`);
    const { id } = (await requestRefund(buyer, orderId)).body.data;
    await sync(openDispute(book, orderId));
    const { data } = (await buyer.get(`/v1/refunds/${id}`)).body;
    assert.deepEqual([data.status, data.decisionNote], ["canceled", "The payment is disputed at the bank."]);
    assertError(await seller.post(`/v1/refunds/${id}/approve`), 409, "INVALID_STATE");
  });

  /** A refund without the provider's answer, and then a dispute. */
  async function createRefundAndDispute(amount?: number) {
    const { buyer, orderId } = await createOrder();
    book.trouble = "slow";
    const { id } = (await refundAsAdmin(orderId, amount)).body.data;
    const disputeId = openDispute(book, orderId, { feeMinor: 1_500n });
    await sync(disputeId);
    book.trouble = "none";
    const endRefund = async (state: "succeeded" | "failed") => {
      const outcome =
        state === "failed"
          ? { state, providerRefundId: "re_1", failureCode: "charge_disputed" }
          : { state, providerRefundId: "re_1" };
      book.refunds.set(id, { ...book.refunds.get(id)!, outcome });
      market.clock.forward(61_000);
      await reconcileRefunds(market.service.ctx);
    };
    return { buyer, orderId, disputeId, endRefund };
  }

  test("a refund that succeeds during a dispute: reduces the hold", async () => {
    const { buyer, orderId, disputeId, endRefund } = await createRefundAndDispute(4);
    await endRefund("succeeded");
    assert.deepEqual(await accountsOf(market, orderId), { dispute_hold: 600, provider_clearing: -600 });
    assert.partialDeepStrictEqual(await orderOf(buyer, orderId), { status: "disputed", refundedAmount: 4 });
    await decide({ orderId, disputeId }, "lost");
    assert.partialDeepStrictEqual(await orderOf(buyer, orderId), { status: "refunded", refundedAmount: 10 });
    const lost = { dispute_losses: -400, provider_clearing: 1_900, seller: -1_500 };
    assert.deepEqual(await accountsOf(market, orderId), lost, "the buyer got 4.00 twice");
  });

  test("a full refund, then a lost dispute: the marketplace bears the loss, the seller the fee", async () => {
    const { buyer, orderId, disputeId, endRefund } = await createRefundAndDispute();
    await endRefund("succeeded");
    assert.equal((await orderOf(buyer, orderId)).entitlement.status, "revoked");
    await decide({ orderId, disputeId }, "lost");
    assert.partialDeepStrictEqual(await orderOf(buyer, orderId), { status: "refunded", refundedAmount: 10 });
    const lost = { dispute_losses: -1_000, provider_clearing: 2_500, seller: -1_500 };
    assert.deepEqual(await accountsOf(market, orderId), lost);
  });

  test("a dispute lost during a refund: waits for its result", async () => {
    for (const end of ["succeeded", "failed"] as const) {
      const { buyer, orderId, disputeId, endRefund } = await createRefundAndDispute();
      await decide({ orderId, disputeId }, "lost");
      assert.equal((await orderOf(buyer, orderId)).status, "disputed");
      await endRefund(end);
      await reconcileDisputes(market.service.ctx, disputeRooms);
      assert.partialDeepStrictEqual(await orderOf(buyer, orderId), {
        status: "refunded",
        refundedAmount: 10,
      });
      const excess = end === "succeeded" ? { dispute_losses: -1_000, provider_clearing: 2_500 } : {};
      assert.deepEqual(await accountsOf(market, orderId), {
        ...{ provider_clearing: 1_500, seller: -1_500, ...excess },
      });
    }
  });

  type Step =
    | { do: "give"; percent: number; slow: boolean }
    | { do: "end"; state: "succeeded" | "failed" }
    | { do: "open"; percent: number }
    | { do: "decide"; state: "won" | "lost" }
    | { do: "ask" }
    | { do: "again" };

  const percent = fc.integer({ min: 1, max: 100 });
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 3, arbitrary: fc.record({ do: fc.constant("give" as const), percent, slow: fc.boolean() }) },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant("end" as const),
        state: fc.constantFrom("succeeded" as const, "failed" as const),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("open" as const), percent }) },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant("decide" as const),
        state: fc.constantFrom("won" as const, "lost" as const),
      }),
    },
    { weight: 1, arbitrary: fc.constant({ do: "ask" as const }) },
    { weight: 1, arbitrary: fc.constant({ do: "again" as const }) },
  );

  /** One order with its bank and provider. */
  class Scenario {
    readonly #bought: Bought;
    readonly #totalMinor: number;
    #disputes: string[] = [];
    constructor(bought: Bought, totalMinor: number) {
      this.#bought = bought;
      this.#totalMinor = totalMinor;
    }

    async run(now: Step): Promise<void> {
      const { buyer, orderId } = this.#bought;
      book.trouble = "none";
      if (now.do === "give") {
        book.trouble = now.slow ? "slow" : "none";
        const part = Math.max(1, Math.floor((this.#totalMinor * now.percent) / 100));
        const { status } = await refundAsAdmin(orderId, part / 100);
        assert.ok([201, 409, 422].includes(status), String(status));
      }
      if (now.do === "ask") await requestRefund(buyer, orderId);
      if (now.do === "end") await this.end(now.state);
      if (now.do === "open") await this.#open(now.percent);
      if (now.do === "decide" && this.#disputes[0]) {
        openDispute(book, orderId, { disputeId: this.#disputes.shift()!, state: now.state });
        await reconcileDisputes(market.service.ctx, disputeRooms);
      }
      if (now.do === "again") await this.#again();
    }

    async #open(percent: number): Promise<void> {
      const { orderId } = this.#bought;
      const disputeId = `dp_${orderId}_${Math.random()}`;
      const amountMinor = BigInt(Math.max(1, Math.floor((this.#totalMinor * percent) / 100)));
      await sync(openDispute(book, orderId, { disputeId, amountMinor, feeMinor: 0n }));
      this.#disputes.push(disputeId);
    }

    /** Syncs all disputes again in reverse. */
    async #again(): Promise<void> {
      const { orderId } = this.#bought;
      const all = [...book.disputes.values()].filter((one) => one.orderId === orderId);
      for (const { disputeId } of all.toReversed()) await sync(disputeId);
      await this.end(null);
    }

    /** Ends the refunds in progress; null: only reconciles. */
    async end(state: "succeeded" | "failed" | null): Promise<void> {
      for (const refund of book.refunds.values()) {
        if (refund.outcome.state !== "processing" || state === null) continue;
        refund.outcome =
          state === "failed"
            ? { state, providerRefundId: "re", failureCode: "charge_disputed" }
            : { state, providerRefundId: "re" };
      }
      market.clock.forward(61_000);
      await reconcileRefunds(market.service.ctx);
    }

    async finish(): Promise<void> {
      await this.end("succeeded");
      while (this.#disputes.length > 0) await this.run({ do: "decide", state: "lost" });
      await reconcileDisputes(market.service.ctx, disputeRooms);
    }

    /** The provider's amount equals the ledger. */
    async checkProvider(): Promise<void> {
      const { orderId } = this.#bought;
      const lost = [...book.disputes.values()].filter(
        (one) => one.orderId === orderId && one.state === "lost",
      );
      const taken = lost.reduce(
        (sum, { amountMinor }) => sum + amountMinor,
        await refundedMinorOf(market, book, orderId),
      );
      const { provider_clearing: clearing = 0 } = await accountsOf(market, orderId);
      assert.equal(clearing, Number(taken) - this.#totalMinor);
    }

    /** Each party has its share of the sale less its share of refunds and disputes. */
    async check(): Promise<{ refunded: number; refunding: number; open: number }> {
      const { rows } = await market.query(
        `select o.status, o.total_minor as total, o.refunded_minor as refunded, o.refunding_minor as refunding,
                o.fee_minor as fee, e.status as use,
                (select coalesce(sum(held_minor), 0)::int from disputes where order_id = o.id) as held,
                (select count(*) from disputes where order_id = o.id and status = 'open') as open,
                (select coalesce(sum(excess_minor), 0)::int from disputes where order_id = o.id) as excess
           from orders o join entitlements e on e.order_id = o.id where o.id = $1`,
        [toUuid("ord", this.#bought.orderId)],
      );
      const { status, total, refunded, refunding, fee, use, held, open, excess } = rows[0];
      const accounts = await accountsOf(market, this.#bought.orderId);
      const taken = BigInt(refunded + held);
      const feeLeft = fee - Number(roundHalfUp(BigInt(fee) * taken, BigInt(total)));
      assert.deepEqual(
        [accounts["dispute_hold"] ?? 0, accounts["platform_revenue"] ?? 0, accounts["seller"] ?? 0],
        [held, feeLeft, total - refunded - held - feeLeft],
      );
      assert.equal(accounts["provider_clearing"] ?? 0, refunded - total + excess);
      assert.equal(accounts["dispute_losses"] ?? 0, 0 - excess);
      assert.ok(refunded + refunding <= total && refunded + held <= total);
      assert.equal(status === "disputed", open > 0);
      assert.equal(use, refunded === total ? "revoked" : refunded + refunding === total ? "held" : "active");
      return { refunded, refunding, open };
    }
  }

  test("any history: no amount is refunded twice, and each party has its share", async () => {
    const results = new Set<string>();
    const history = fc.record({
      minor: fc.integer({ min: 50, max: 5_000 }),
      steps: fc.array(step, { minLength: 3, maxLength: 14 }),
    });
    const property = fc.asyncProperty(history, async ({ minor, steps }) => {
      const bought = await createOrder({ price: minor / 100 });
      const scenario = new Scenario(bought, minor);
      for (const one of steps) {
        await scenario.run(one);
        if (isFullSize) await scenario.check();
      }
      await scenario.finish();
      const { refunded, ...undone } = await scenario.check();
      await scenario.checkProvider();
      assert.deepEqual(undone, { refunding: 0, open: 0 }, "everything comes to an end");
      results.add(refunded === 0 ? "paid" : refunded === minor ? "refunded" : "in part");
    });
    await fc.assert(property, { numRuns: runs(25), endOnFailure: true });
    assert.ok(results.has("refunded") && results.has("in part"), "the histories went different ways");
  });
});

suite("GET /admin/disputes", () => {
  const list = async (query = "") => (await admin.get(`/v1/admin/disputes?${query}`)).body;

  test("newest first, with amounts, order and people; by status and order", async () => {
    const answerBy = new Date("2026-07-01T23:59:59Z");
    const lost = await createDispute({ feeMinor: 1_500n });
    await decide(lost, "lost");
    const open = await createDispute({ evidenceDueBy: answerBy });
    const [dispute] = (await list(`orderId=${open.orderId}`)).data;
    assert.partialDeepStrictEqual(dispute, {
      id: open.disputeId,
      ...{ orderId: open.orderId, status: "open", amount: 10, heldAmount: 10, lostAmount: null },
      ...{ excessAmount: 0, currency: "USD", answerBy: answerBy.toISOString(), closedAt: null },
      ...{ product: { title: "Haiku" }, seller: { name: "Seller" } },
    });
    const [decided] = (await list(`orderId=${lost.orderId}&status=lost`)).data;
    assert.deepEqual([decided.lostAmount, decided.heldAmount], [10, 0]);
    const { data, meta } = await list("status=open&limit=1");
    assert.deepEqual([data.length, data[0].status], [1, "open"]);
    assert.ok(meta.total >= 1);
    assert.deepEqual((await list("orderId=ord_nothing")).data, []);
  });
});

test("all disputes above: ledger verification finds no problem", async () => {
  assert.deepEqual((await verifyLedger(market.service.ctx.db)).problems, []);
});
