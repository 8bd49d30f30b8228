import assert from "node:assert/strict";
import { GUEST_COOKIE } from "../src/platform/http/authenticate.ts";
import type { Client, Market, Reply } from "./market.ts";

export interface Tryable {
  productId: string;
  apiKeyId: string;
}

/** Turns tries on, with limits that no test reaches by accident. */
export async function allowTries(
  seller: Client,
  { productId, ...input }: Tryable & Record<string, unknown>,
): Promise<void> {
  const reply = await seller.put(`/v1/products/${productId}/try-out`, {
    ...{ maxPerDay: 1_000, maxPerVisitorPerDay: 100, monthlyBudget: 100 },
    ...input,
  });
  assert.equal(reply.status, 200, reply.text);
}

export const tryProduct = (
  visitor: Pick<Client, "post">,
  productId: string,
  { variables = { topic: "rain" }, ...more }: Record<string, unknown> = {},
): Promise<Reply> => visitor.post(`/v1/products/${productId}/try`, { variables, ...more });

/** A guest of the storefront with a cookie of its own. */
export function createGuest(market: Market, origin = market.origin): Pick<Client, "get" | "post"> {
  const headers = { cookie: `${GUEST_COOKIE}=${market.service.ctx.guests.cookie().value}` };
  const guest = market.as(null);
  const at = (path: string) => origin + path;
  return {
    get: (path, more) => guest.get(at(path), { ...headers, ...more }),
    post: (path, json, more) => guest.post(at(path), json, { ...headers, ...more }),
  };
}
