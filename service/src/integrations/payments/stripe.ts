import type { Payments } from "./payments.ts";
import { stripeLimits } from "./stripe-amounts.ts";
import { createCharges } from "./stripe-charges.ts";
import { createStripeClient, type StripeAccess } from "./stripe-client.ts";
import { createDisputes } from "./stripe-disputes.ts";
import { createMethods } from "./stripe-methods.ts";
import { createPayouts } from "./stripe-payouts.ts";
import { createRefunds } from "./stripe-refunds.ts";
import { createWebhooks } from "./stripe-webhooks.ts";

export interface StripeOptions extends Omit<StripeAccess, "stripe"> {
  secretKey: string;
  webhookSecret: string;
  /** Another address than Stripe's, for tests. */
  apiUrl: string | null;
}

/** Payments through Stripe; each file implements one kind of object. */
export function createStripePayments({
  secretKey,
  webhookSecret,
  apiUrl,
  ...others
}: StripeOptions): Payments {
  const access = { stripe: createStripeClient(secretKey, apiUrl), ...others };
  return {
    name: "stripe",
    limitsOf: stripeLimits,
    ...createCharges(access),
    ...createRefunds(access),
    ...createPayouts(access),
    ...createDisputes(access),
    ...createMethods(access),
    ...createWebhooks(access, webhookSecret),
  };
}
