import type Stripe from "stripe";
import { required } from "../../core/required.ts";
import type { PaymentMethod, Payments } from "./payments.ts";
import { idempotencyOptions, nullIfRefused, type StripeAccess, withUnknownResult } from "./stripe-client.ts";

const TEST_METHOD_REFUSED =
  "is a name of the built-in test provider, and this service is paid through Stripe: name a method of Stripe's, with a test key one such as pm_card_visa";

/** Other characters could change the path of the request. */
const IS_ID = /^\w+$/;

/** Of a session of Stripe's page for cards. Stripe fills it in: docs.stripe.com/payments/checkout/custom-success-page. */
const SESSION_PREFIX = "cs_";
const SESSION_PLACEHOLDER = "{CHECKOUT_SESSION_ID}";

type Methods = Pick<
  Payments,
  "startCardSetup" | "findMethod" | "detachMethod" | "findTokenProblem" | "sharedMethods"
>;

export const createMethods = (access: StripeAccess): Methods => ({
  startCardSetup: (userId, returnTo) => withUnknownResult(() => startCardSetup(access, userId, returnTo)),
  findMethod: (userId, token) =>
    withUnknownResult(() =>
      token.startsWith(SESSION_PREFIX)
        ? findEnteredMethod(access, userId, token)
        : attachMethod(access, userId, token),
    ),
  async detachMethod(methodId) {
    // A method that is unknown or not attached cannot be detached.
    await withUnknownResult(() => nullIfRefused(() => access.stripe.paymentMethods.detach(methodId)));
  },
  findTokenProblem: (token) => (token.startsWith("pm_test_") ? TEST_METHOD_REFUSED : null),
  sharedMethods: [],
});

/** The card is set up for payments without the buyer, too, such as those of a plan. */
async function startCardSetup(access: StripeAccess, userId: string, returnTo: string): Promise<string> {
  const back = access.returnUrl() + returnTo;
  const { url } = await access.stripe.checkout.sessions.create({
    mode: "setup",
    customer: await findOrCreateCustomer(access, userId),
    allowed_payment_method_types: ["card"],
    success_url: `${back}${returnTo.includes("?") ? "&" : "?"}card=${SESSION_PLACEHOLDER}`,
    cancel_url: back,
  });
  return required(url, "the address of Stripe's page for cards");
}

/** The card that the user entered on Stripe's page; null: none, or another user did. */
async function findEnteredMethod(
  access: StripeAccess,
  userId: string,
  sessionId: string,
): Promise<PaymentMethod | null> {
  if (!IS_ID.test(sessionId)) return null;
  const customer = await findOrCreateCustomer(access, userId);
  const expand = ["setup_intent.payment_method"];
  const session = await nullIfRefused(() => access.stripe.checkout.sessions.retrieve(sessionId, { expand }));
  const intent = session?.customer === customer ? session.setup_intent : null;
  const method = intent && typeof intent === "object" ? intent.payment_method : null;
  if (!method || typeof method !== "object" || method.customer !== customer) return null;
  return { id: method.id, ...cardOf(method) };
}

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
