import assert from "node:assert/strict";
import type { Client, Market } from "./market.ts";

export const haiku = {
  title: "Haiku about anything",
  description: "Three lines on the topic that you name.",
  type: "PROMPT",
  category: "writing",
  price: 4.99,
  content: "Write a haiku about {{topic}} in {{language=English}}.",
  tags: ["poetry"],
  compatibility: ["openai", "anthropic"],
};

export const workflow = {
  format: "workflow/1",
  input: {
    type: "object",
    required: ["topic"],
    properties: {
      topic: { type: "string", maxLength: 500 },
      parts: { type: "integer", title: "How many", default: 3 },
    },
  },
  steps: [
    {
      id: "outline",
      type: "prompt",
      provider: "openai",
      messages: [{ role: "user", content: "Outline {{topic}} in {{parts}} parts" }],
      vars: { topic: "input.topic", parts: "string(input.parts)" },
      output: { type: "array", items: { type: "string" } },
    },
    {
      id: "drafts",
      type: "map",
      needs: ["outline"],
      items: "steps.outline.output",
      do: {
        type: "prompt",
        provider: "anthropic",
        messages: [{ role: "user", content: "Write {{part}}" }],
        vars: { part: "item" },
      },
    },
  ],
  result: "steps.drafts.output.join('\\n')",
};

export type ProductInput = Partial<Record<keyof typeof haiku, unknown>> & Record<string, unknown>;

/** Returns the id of a new draft. */
export async function createDraft(seller: Client, fields: ProductInput = {}): Promise<string> {
  const reply = await seller.post("/v1/products", { ...haiku, ...fields });
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data.id;
}

/** Returns the id of a new published product. */
export async function createProduct(seller: Client, fields: ProductInput = {}): Promise<string> {
  const id = await createDraft(seller, fields);
  const reply = await seller.post(`/v1/products/${id}/publish`);
  assert.equal(reply.status, 200, reply.text);
  return id;
}

/** Like createProduct, but equal inputs share a product: for tests that only buy it. */
export function sharedProducts(): typeof createProduct {
  const ids = new Map<string, Promise<string>>();
  return (seller, fields = {}) => {
    const key = `${seller.userId} ${JSON.stringify(fields)}`;
    const id = ids.get(key) ?? createProduct(seller, fields);
    ids.set(key, id);
    return id;
  };
}

/** Returns the order's id. */
export async function buyProduct(buyer: Client, productId: string): Promise<string> {
  const reply = await buyer.post("/v1/purchases", { productId });
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data.orderId;
}

/** An administrator refunds all purchases of the buyer, which revokes their entitlements. */
export async function refundEverything(market: Market, buyer: Client): Promise<void> {
  const { userId } = await market.createUser({ role: "admin" });
  const admin = await market.createSession(userId, { secondFactor: true });
  for (const { orderId } of (await buyer.get("/v1/purchases")).body.data) {
    const reply = await admin.post(`/v1/admin/orders/${orderId}/refund`, { reason: "other" });
    assert.equal(reply.body.data.status, "succeeded", reply.text);
  }
}
