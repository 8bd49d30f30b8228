import type Stripe from "stripe";
import type { PaymentMethod, Payments } from "./payments.ts";
import { idempotencyOptions, nullIfRefused, type StripeAccess, withUnknownResult } from "./stripe-client.ts";

const TEST_METHOD_REFUSED =
  "is a name of the built-in test provider, and this service is paid through Stripe: name a method of Stripe's, with a test key one such as pm_card_visa";

/** Other characters could change the path of the request. */
const IS_ID = /^\w+$/;

type Methods = Pick<Payments, "findMethod" | "detachMethod" | "findTokenProblem" | "sharedMethods">;

export const createMethods = (access: StripeAccess): Methods => ({
  findMethod: (userId, token) => withUnknownResult(() => attachMethod(access, userId, token)),
  async detachMethod(methodId) {
    // A method that is unknown or not attached cannot be detached.
    await withUnknownResult(() => nullIfRefused(() => access.stripe.paymentMethods.detach(methodId)));
  },
  findTokenProblem: (token) => (token.startsWith("pm_test_") ? TEST_METHOD_REFUSED : null),
  sharedMethods: [],
});

async function attachMethod(
  access: StripeAccess,
  userId: string,
  token: string,
): Promise<PaymentMethod | null> {
  if (!IS_ID.test(token)) return null;
  const { paymentMethods } = access.stripe;
  const customer = await findOrCreateCustomer(access, userId);
  const method =
    (await nullIfRefused(() => paymentMethods.attach(token, { customer }))) ??
    (await nullIfRefused(() => paymentMethods.retrieve(token)));
  return method?.customer === customer ? { id: method.id, ...cardOf(method) } : null;
}

export async function findOrCreateCustomer(
  { stripe, references }: StripeAccess,
  userId: string,
): Promise<string> {
  const existing = await references.find(userId);
  if (existing) return existing;
  const customer = await stripe.customers.create(
    { metadata: { user_id: userId } },
    idempotencyOptions(userId, "customer"),
  );
  return references.store(userId, customer.id);
}

export const UNKNOWN_CARD = { brand: "unknown", last4: "????" };

export const cardOf = (method: Stripe.PaymentMethod | string | null) =>
  method && typeof method === "object" && method.card
    ? { brand: method.card.brand, last4: method.card.last4 }
    : UNKNOWN_CARD;
