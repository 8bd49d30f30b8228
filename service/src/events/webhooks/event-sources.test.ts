import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import { type EventType, eventData, eventTypes } from "@stoa/contract";
import { startEvaluation, storeTestSet, untilEvaluated } from "../../../test/evaluations.ts";
import { buyProduct, createDraft, createProduct, type ProductInput } from "../../../test/factories.ts";
import { inFullRun, sampleOf } from "../../../test/full-size.ts";
import { type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { type PaymentConnection, withConnectionTrouble } from "../../../test/payments.ts";
import { bookEarnings, installFakeBank, requestPayout } from "../../../test/payouts.ts";
import { picture, sendFile, sendImage, uploadFile } from "../../../test/uploads.ts";
import { startWebhookReceiver, type WebhookReceiver } from "../../../test/webhook-receiver.ts";
import { webhookHelpers } from "../../../test/webhooks.ts";
import { startWorker } from "../../../test/workflows.ts";
import { reconcileCharges } from "../../commerce/charges/charges.ts";
import { orderTarget } from "../../commerce/checkout/order-payment.ts";
import { applyDueDowngrades } from "../../commerce/plans/subscription.ts";
import { DAY_MS } from "../../core/dates.ts";
import { toId, toUuid } from "../../core/ids.ts";
import {
  createFakePayments,
  type FakeProvider,
  memoryStore,
  startFakeProvider,
} from "../../integrations/payments/fake-payments.ts";

const line: PaymentConnection = { trouble: "none" };
let provider: FakeProvider;
let market: Market;
let receiver: WebhookReceiver;
let seller: Client;
let buyer: Client;
let admin: Client;
const { deliver, forgetAll, hasEndpoint } = webhookHelpers(
  () => market,
  () => receiver,
);
before(async () => {
  // The provider sends no webhooks: a repeated one would settle the payment of another test.
  provider = await startFakeProvider({ store: memoryStore(), now: () => market.clock.now });
  market = await openMarket({
    payments: withConnectionTrouble(line, createFakePayments({ origin: provider.origin })),
  });
  receiver = await startWebhookReceiver();
  installFakeBank(market).begins = "completed";
});
beforeEach(async () => {
  await forgetAll();
  admin = await market.createSession((await market.createUser({ role: "admin" })).userId, {
    secondFactor: true,
  });
  seller = await market.createUser({ role: "seller" });
  buyer = await market.createUser();
  await hasEndpoint(seller, { url: `${receiver.url}/seller` });
  await hasEndpoint(buyer, { url: `${receiver.url}/buyer` });
});
after(async () => {
  await market.close();
  await provider.close();
  await receiver.close();
});

/** Prepares an operation and returns it. */
type Scenario = () => Promise<() => Promise<Reply | undefined>>;
type EventsOf = Partial<Record<"seller" | "buyer", EventType>>;

const asPerson = ({ userId }: Client) => market.createSession(userId);
const withProduct =
  (operation: (productId: string) => Promise<Reply>, input?: ProductInput): Scenario =>
  async () => {
    const productId = await createProduct(seller, input);
    return () => operation(productId);
  };
const withOrder =
  (operation: (orderId: string) => Promise<Reply>): Scenario =>
  async () => {
    const orderId = await buyProduct(buyer, await createProduct(seller));
    return () => operation(orderId);
  };
const requestRefund = (orderId: string) => buyer.post(`/v1/purchases/${orderId}/refund`, { reason: "other" });
/** A refund that the seller must decide, because the buyer has seen the content. */
async function createPendingRefund(): Promise<string> {
  const productId = await createProduct(seller);
  const orderId = await buyProduct(buyer, productId);
  assert.ok((await buyer.get(`/v1/products/${productId}`)).body.data.content);
  const reply = await requestRefund(orderId);
  assert.equal(reply.body.data.status, "pending", reply.text);
  return reply.body.data.id;
}

const both = (type: EventType): EventsOf => ({ seller: type, buyer: type });

/** The two evaluations, which run for a second each, are in neither sample. */
const eventCauses: [name: string, prepare: Scenario, expected: EventsOf][] = [
  [
    "a draft is published",
    async () => {
      const productId = await createDraft(seller);
      return () => seller.post(`/v1/products/${productId}/publish`);
    },
    { seller: "product.published" },
  ],
  [
    "a product is changed",
    withProduct((id) =>
      seller.patch(`/v1/products/${id}`, {
        title: "Changed",
        content: "Now {{topic}} in {{language=English}}",
        price: 7,
      }),
    ),
    { seller: "product.updated" },
  ],
  [
    "a draft is changed",
    async () => {
      const productId = await createDraft(seller);
      return () => seller.patch(`/v1/products/${productId}`, { title: "Changed" });
    },
    { seller: "product.updated" },
  ],
  [
    "an administrator changes a product",
    withProduct((id) => admin.patch(`/v1/products/${id}`, { title: "Mended" })),
    { seller: "product.updated" },
  ],
  [
    "a file is added",
    withProduct((id) => sendFile(seller, id, { bytes: "# A guide" })),
    { seller: "product.updated" },
  ],
  [
    "a file is removed",
    async () => {
      const productId = await createProduct(seller);
      const file = await uploadFile(seller, productId);
      return () => seller.delete(`/v1/products/${productId}/files/${file.id}`);
    },
    { seller: "product.updated" },
  ],
  [
    "a picture is added",
    withProduct(async (id) => sendImage(seller, id, { bytes: await picture() })),
    { seller: "product.updated" },
  ],
  [
    "a picture is removed",
    async () => {
      const productId = await createProduct(seller);
      const { body } = await sendImage(seller, productId, { bytes: await picture() });
      return () => seller.delete(`/v1/products/${productId}/images/${body.data.id}`);
    },
    { seller: "product.updated" },
  ],
  [
    "a product is unpublished",
    withProduct((id) => seller.post(`/v1/products/${id}/unpublish`)),
    { seller: "product.unpublished" },
  ],
  [
    "a product is deleted",
    withProduct((id) => seller.delete(`/v1/products/${id}`)),
    { seller: "product.unpublished" },
  ],
  [
    "a formerly published product is deleted",
    async () => {
      const productId = await createProduct(seller);
      await seller.post(`/v1/products/${productId}/unpublish`);
      return () => seller.delete(`/v1/products/${productId}`);
    },
    { seller: "product.unpublished" },
  ],
  [
    "a product is suspended",
    withProduct((id) =>
      admin.post(`/v1/admin/products/${id}/suspend`, { reasonCode: "infringing", reason: "Copied" }),
    ),
    { seller: "product.unpublished" },
  ],
  [
    "a product is bought",
    withProduct((productId) => buyer.post("/v1/purchases", { productId })),
    both("purchase.completed"),
  ],
  [
    "a free product is bought",
    async () => {
      const productId = await createProduct(seller);
      await seller.post("/v1/discount-codes", { code: "GIFT", percentOff: 100 });
      return () => buyer.post("/v1/purchases", { productId, discountCode: "GIFT" });
    },
    both("purchase.completed"),
  ],
  [
    "a charge is found by reconciliation",
    async () => {
      const productId = await createProduct(seller);
      line.trouble = "answers get lost";
      const reply = await buyer.post("/v1/purchases", { productId });
      line.trouble = "none";
      assert.equal(reply.status, 202, reply.text);
      return async () => {
        market.clock.forward(5 * 60_000);
        await reconcileCharges(market.service.ctx, orderTarget);
        return undefined;
      };
    },
    both("purchase.completed"),
  ],
  ["a refund needs no decision", withOrder(requestRefund), both("purchase.refunded")],
  [
    "the seller approves a refund",
    async () => {
      const refundId = await createPendingRefund();
      return () => seller.post(`/v1/refunds/${refundId}/approve`);
    },
    both("purchase.refunded"),
  ],
  [
    "an administrator refunds a part",
    withOrder((id) => admin.post(`/v1/admin/orders/${id}/refund`, { amount: 1, reason: "other" })),
    both("purchase.refunded"),
  ],
  [
    "a payout is completed",
    async () => {
      await bookEarnings(market, seller, { amountMinor: 5000n });
      return () => requestPayout(market, seller);
    },
    { seller: "payout.completed" },
  ],
  [
    "a review is posted",
    async () => {
      const productId = await createProduct(seller);
      await buyProduct(buyer, productId);
      return () =>
        buyer.post(`/v1/products/${productId}/reviews`, {
          rating: 5,
          comment: "Schön — “wirklich” \u2028 ✓ 🎉",
        });
    },
    { seller: "review.created" },
  ],
  [
    "an evaluation completes",
    async () => {
      const productId = await createProduct(seller);
      await storeTestSet(seller, productId);
      const worker = startWorker(market);
      return async () => {
        await untilEvaluated(market, seller, await startEvaluation(seller, productId));
        await worker.stop();
        return undefined;
      };
    },
    { seller: "evaluation.completed" },
  ],
  [
    "a user upgrades the plan",
    async () => {
      const session = await asPerson(buyer);
      return () => session.put("/v1/account/subscription", { plan: "pro" });
    },
    { buyer: "user.subscription.updated" },
  ],
  [
    "a downgrade becomes due",
    async () => {
      const session = await asPerson(buyer);
      await session.put("/v1/account/subscription", { plan: "pro" });
      await session.put("/v1/account/subscription", { plan: "free" });
      return async () => {
        market.clock.forward(32 * DAY_MS);
        await applyDueDowngrades(market.service.ctx);
        return undefined;
      };
    },
    { buyer: "user.subscription.updated" },
  ],
  [
    "an evaluation is worse than that of the version before",
    async () => {
      // It completes, too: another event.
      await forgetAll();
      await hasEndpoint(seller, { url: `${receiver.url}/seller`, eventTypes: ["evaluation.regressed"] });
      const productId = await createProduct(seller);
      const cases = ["rain", "snow", "sun"].map((topic) => ({
        ...{ title: topic, input: { topic } },
        assert: [{ type: "contains", value: "haiku" }],
      }));
      await storeTestSet(seller, productId, cases);
      const worker = startWorker(market);
      await untilEvaluated(market, seller, await startEvaluation(seller, productId));
      const content = "Write a song about {{topic}} in {{language=English}}.";
      await seller.patch(`/v1/products/${productId}`, { content });
      return async () => {
        await untilEvaluated(market, seller, await startEvaluation(seller, productId));
        await worker.stop();
        return undefined;
      };
    },
    { seller: "evaluation.regressed" },
  ],
  [
    "an administrator changes a plan",
    async () => () =>
      admin.patch(`/v1/admin/users/${toId("usr", buyer.userId)}`, { plan: "enterprise", reason: "Agreed" }),
    { buyer: "user.subscription.updated" },
  ],
  [
    "a seller closes the account",
    async () => {
      await createProduct(seller);
      const session = await asPerson(seller);
      const { email } = (await session.get("/v1/account")).body.data;
      return () => session.request("DELETE", "/v1/account", { json: { confirm: email } });
    },
    // The event of their products has no receiver any more.
    {},
  ],
];

suite("operation with an event: its receivers get the stored bytes when", () => {
  for (const [name, prepare, expected] of sampleOf(eventCauses, 1))
    test(name, async () => {
      const operation = await prepare();
      await deliver();
      receiver.received.length = 0;
      const reply = await operation();
      if (reply) assert.ok(reply.status < 300, reply.text);
      await deliver();
      const came: EventsOf = {};
      for (const { path, body, headers } of receiver.received) {
        const { id, type, created, data, ...others } = JSON.parse(body);
        const who = path.slice(1) as "seller" | "buyer";
        assert.equal(came[who], undefined, "once");
        came[who] = type;
        const { rows } = await market.query("select body from events where id = $1", [toUuid("evt", id)]);
        assert.equal(body, rows[0].body);
        assert.deepEqual([headers["webhook-id"], others], [id, {}]);
        assert.equal(created, market.clock.now.toISOString());
        assert.deepEqual(eventData[type as EventType].parse(data), data, "only fields of the schema");
        const list = await (who === "seller" ? seller : buyer).get(`/v1/events/${id}`);
        assert.deepEqual(list.body.data, JSON.parse(body));
      }
      assert.deepEqual(came, expected);
    });

  test("every event type: has a cause", () => {
    const types = new Set(eventCauses.flatMap(([, , expected]) => Object.values(expected)));
    assert.deepEqual([...types, "test"].sort(), [...eventTypes].sort());
  });
});

const withoutEvents: [name: string, prepare: Scenario][] = [
  [
    "a draft is created",
    async () => () => seller.post("/v1/products", { title: "A", type: "PROMPT", price: 1, content: "x" }),
  ],
  [
    "a change changes nothing",
    withProduct((id) => seller.patch(`/v1/products/${id}`, { title: "Haiku about anything" })),
  ],
  [
    "a draft is deleted",
    async () => {
      const productId = await createDraft(seller);
      return () => seller.delete(`/v1/products/${productId}`);
    },
  ],
  [
    "a purchase is declined",
    withProduct((productId) =>
      buyer.post("/v1/purchases", { productId, paymentMethodId: "pm_test_declined" }),
    ),
  ],
  [
    "the bank requires an action first",
    withProduct((productId) =>
      buyer.post("/v1/purchases", { productId, paymentMethodId: "pm_test_requires_action" }),
    ),
  ],
  [
    "a refund waits for its seller",
    async () => {
      const productId = await createProduct(seller);
      const orderId = await buyProduct(buyer, productId);
      await buyer.get(`/v1/products/${productId}`);
      return () => requestRefund(orderId);
    },
  ],
  [
    "a refund is rejected",
    async () => {
      const refundId = await createPendingRefund();
      return () => seller.post(`/v1/refunds/${refundId}/reject`, { reason: "It was used" });
    },
  ],
  [
    "a downgrade is chosen",
    async () => {
      const session = await asPerson(buyer);
      await session.put("/v1/account/subscription", { plan: "pro" });
      return () => session.put("/v1/account/subscription", { plan: "free" });
    },
  ],
  [
    "a review is changed",
    async () => {
      const productId = await createProduct(seller);
      await buyProduct(buyer, productId);
      const { body } = await buyer.post(`/v1/products/${productId}/reviews`, { rating: 5 });
      return () => buyer.patch(`/v1/products/${productId}/reviews/${body.data.id}`, { rating: 4 });
    },
  ],
  [
    "a suspension ends",
    async () => {
      const productId = await createProduct(seller);
      await admin.post(`/v1/admin/products/${productId}/suspend`, {
        reasonCode: "infringing",
        reason: "Copied",
      });
      return () => admin.post(`/v1/admin/products/${productId}/reinstate`);
    },
  ],
];

suite("operation without an event: nothing is delivered when", () => {
  for (const [name, prepare] of sampleOf(withoutEvents))
    test(name, async () => {
      const operation = await prepare();
      await deliver();
      receiver.received.length = 0;
      const reply = await operation();
      assert.ok(reply!.status < 300 || reply!.status === 402, reply!.text);
      await deliver();
      assert.deepEqual(receiver.received, []);
    });
});

/** The state that the operations change. */
const state = async () =>
  (
    await market.query(`
      select (select string_agg(concat_ws(' ', id, status, title, updated_at), ',' order by id) from products) as products,
             (select string_agg(concat_ws(' ', id, images, version), ',' order by id) from products) as parts,
             (select count(*) from orders where status in ('completed')) as sold,
             (select count(*) from orders where status in ('refunded', 'partially_refunded')) as refunded,
             (select count(*) from payouts where status = 'completed') as paid_out,
             (select count(*) from reviews) as reviews,
             (select string_agg(concat_ws(' ', id, plan, closed_at), ',' order by id) from users) as people,
             (select count(*) from events) as events`)
  ).rows[0];

suite("event that cannot be inserted: the change is rolled back when", () => {
  for (const [name, prepare] of sampleOf(eventCauses))
    test(name, async () => {
      const operation = await prepare();
      const before = await state();
      await market.query("alter table event_recipients add constraint no_events check (false) not valid");
      try {
        const reply = await operation().catch(() => undefined);
        // Purchases, refunds and payouts are settled later, after their request was accepted.
        assert.ok(!reply || [201, 202, 500].includes(reply.status), reply?.text);
      } finally {
        await market.query("alter table event_recipients drop constraint no_events");
      }
      assert.deepEqual(await state(), before);
    });
});

test("largest change of a product: its event is smaller than 256 KiB", inFullRun, async () => {
  const long = (length: number, letter: string) => letter.repeat(length);
  const largest = (letter: string) => ({
    title: long(120, letter),
    description: long(7_990, letter),
    price: 1,
    content: `{{a}}${long(190_000, letter)}`,
    preview: long(2_000, letter),
    requirements: Array.from({ length: 15 }, () => long(500, letter)),
    features: Array.from({ length: 15 }, () => long(500, letter)),
    tags: Array.from({ length: 20 }, (_, n) => `${long(38, letter)}${n}`),
    models: Object.fromEntries(
      ["openai", "anthropic", "google", "mistral", "groq"].map((one) => [one, long(200, letter)]),
    ),
    variables: [{ name: "a", description: long(500, letter), default: long(7_300, letter) }],
    changelog: long(5_000, letter),
  });
  const productId = await createProduct(seller, largest("漢"));
  await deliver();
  receiver.received.length = 0;
  const reply = await seller.patch(`/v1/products/${productId}`, largest("語"));
  assert.equal(reply.status, 200, reply.text);
  await deliver();
  const [{ body }] = receiver.received as [WebhookReceiver["received"][number]];
  const { changes } = JSON.parse(body).data.product;
  assert.match(changes.content.new, /^sha256:[0-9a-f]{64}$/);
  assert.equal(changes.description.new, "語".repeat(7_990));
  assert.ok(Buffer.byteLength(body) <= 256 * 1024, `${Buffer.byteLength(body)} bytes`);
  assert.ok(Buffer.byteLength(body) > 100 * 1024, "the event is large");
});
