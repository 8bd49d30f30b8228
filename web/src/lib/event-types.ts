import type { AccountEvent } from "@stoa/sdk";

type EventOf<T extends AccountEvent["type"]> = Extract<AccountEvent, { type: T }>;

interface EventType {
  type: AccountEvent["type"];
  /** When it happens, and who gets it. */
  description: string;
  sample: AccountEvent;
}

const at = "2026-11-22T10:02:38.114Z";
const productId = "prod_01kf5v8q3xe8hb1d6c1m2k3n4p";
const sellerId = "usr_01kf5v7m0be6rt4p8z5c3d9w2q";
const buyerId = "usr_01kf5v7zq4f1na7x9s6k0h8j3y";
const orderId = "ord_01kf5vc2t9e3wa5m7n1b8q4r6s";

const define = <T extends AccountEvent["type"]>(
  type: T,
  description: string,
  data: EventOf<T>["data"],
): EventType => ({
  type,
  description,
  sample: { id: "evt_01kf5vd6h2e7xb9k3j0t5w8z1v", type, created: at, data } as EventOf<T>,
});

/** What a webhook can subscribe to, with a sample of each. A test event always comes. */
export const EVENT_TYPES: readonly EventType[] = [
  define("purchase.completed", "A product was bought. Sent to seller and buyer.", {
    order: { id: orderId, productId, buyerId, amount: 10.99, currency: "USD" },
  }),
  define("purchase.refunded", "A refund was paid. Sent to seller and buyer.", {
    refund: { id: "ref_01kf5vf1m8e5kb2c6x9d0a7n4t", orderId, amount: 10.99, reason: "It does not fit." },
  }),
  define("product.published", "A product is on sale. Sent to its author.", {
    product: { id: productId, title: "Smart Rewriter", type: "PROMPT", price: 10.99, authorId: sellerId },
  }),
  define("product.updated", "A product, its files or its images changed. Sent to its author.", {
    product: { id: productId, changes: { price: { old: 9.99, new: 10.99 } } },
  }),
  define("product.unpublished", "A product is no longer on sale. Sent to its author.", {
    product: {
      ...{ id: productId, title: "Smart Rewriter", type: "PROMPT", authorId: sellerId },
      ...{ reason: "unpublished" as const, unpublishedAt: at },
    },
  }),
  define("review.created", "A product was reviewed. Sent to its author.", {
    review: {
      ...{ id: "rev_01kf5vg8w3e9zb5q1m4k7t2c6h", productId, rating: 5 },
      ...{ comment: "It never changed a number.", authorId: buyerId },
    },
  }),
  define("payout.completed", "A payout reached its seller. Sent to the seller.", {
    payout: {
      ...{ id: "pay_01kf5vh5r7e2nb8d3x6w9a1j0k", sellerId, amount: 412.1, currency: "USD" },
      period: { start: "2026-11-01", end: "2026-11-15" },
    },
  }),
  define("evaluation.completed", "An evaluation of a product completed. Sent to its author.", {
    evaluation: {
      ...{ id: "eval_01kf5vj2m8e5tb7c4y9r1q6s3d", productId, version: "1.2.0", completedAt: at },
      models: [{ provider: "openai", model: "gpt-5-mini", passed: 57, n: 60 }],
    },
  }),
  define(
    "evaluation.regressed",
    "An evaluation found models that pass fewer tests than before. Sent to the author.",
    {
      evaluation: {
        ...{ id: "eval_01kf5vj4x6w3rh9m2k8p5z7t1f", productId, version: "1.2.0", completedAt: at },
        regressions: [
          {
            ...{ provider: "openai", model: "gpt-5-mini", cause: "model" as const },
            before: {
              ...{ evaluationId: "eval_01kf5vj2m8e5tb7c4y9r1q6s3d", version: "1.2.0", passed: 57, n: 60 },
            },
            after: { passed: 31, n: 60 },
          },
        ],
      },
    },
  ),
  define("user.subscription.updated", "The plan of an account changed. Sent to the account.", {
    subscription: { userId: sellerId, oldPlan: "FREE", newPlan: "PRO", effectiveDate: at },
  }),
  define("test", "Someone asked for a test of one endpoint. Sent to that endpoint.", {
    message: "Hello from Stoa",
  }),
];
