import { fetch, type RequestInit } from "undici";
import { z } from "zod";
import { type PaymentOutcome, type PaymentRequest, type Payments, PaymentUnknown } from "./payments.ts";

const ANSWER_DEADLINE_MS = 10_000;

interface FakePaymentsOptions {
  /** Where the fake provider listens. */
  origin: string;
  /** When a request is given up; tests bring their own, so that they need not wait. */
  deadline?: () => AbortSignal;
}

/** Payments by the fake provider, over HTTP like any provider's. */
export function fakePayments({ origin, deadline = inTenSeconds }: FakePaymentsOptions): Payments {
  const ask = (
    method: string,
    path: string,
    init: { headers?: Record<string, string>; body?: string } = {},
  ) => askProvider(new URL(path, origin), { ...init, method, signal: deadline() });
  const findCharge = (orderId: string) => ask("GET", `/v1/charges?order=${encodeURIComponent(orderId)}`);
  return {
    name: "fake",
    async charge({ orderId, amountMinor, currency, methodId, description }: PaymentRequest) {
      const headers = { "content-type": "application/json", "idempotency-key": orderId };
      const charge = { amountMinor: Number(amountMinor), currency, methodId, description };
      const reply = await ask("POST", "/v1/charges", { headers, body: JSON.stringify(charge) });
      if (isRefusal(reply, "unknown_method")) return { state: "unknown_method" };
      return outcomeOf(reply);
    },
    async find(orderId) {
      return outcomeOrNull(await findCharge(orderId));
    },
    async cancel(orderId) {
      const found = await findCharge(orderId);
      if ("error" in found) return outcomeOrNull(found);
      return outcomeOf(await ask("POST", `/v1/charges/${found.id}/cancel`));
    },
    ...unfinished,
  };
}

const unanswered = async () => {
  throw new PaymentUnknown("not made yet");
};
const unfinished = {
  refund: unanswered,
  findRefund: async () => null,
  payOut: unanswered,
  findPayout: async () => null,
  findDispute: async () => null,
  findMethod: async () => null,
  sharedMethods: [{ id: "pm_test_ok", brand: "visa", last4: "4242" }],
  sharedPayoutAccount: "acct_test",
  readNotice: async () => null,
};

const inTenSeconds = () => AbortSignal.timeout(ANSWER_DEADLINE_MS);

const method = z.object({ brand: z.string(), last4: z.string() });
const made = { id: z.string(), method };
const ProviderReply = z.union([
  z.object({ error: z.string() }),
  z.object({ ...made, state: z.enum(["succeeded", "canceled"]) }),
  z.object({ ...made, state: z.literal("declined"), declineCode: z.string() }),
  z.object({ ...made, state: z.literal("requires_action"), authorizeUrl: z.url() }),
]);
type ProviderReply = z.infer<typeof ProviderReply>;

/** The provider's answer; whatever keeps us from reading one leaves the payment unknown. */
async function askProvider(url: URL, init: RequestInit): Promise<ProviderReply> {
  try {
    const response = await fetch(url, init);
    if (response.status >= 500) throw new Error(`The provider answered ${response.status}`);
    return ProviderReply.parse(await response.json());
  } catch (cause) {
    throw new PaymentUnknown(`No answer to ${init.method} ${url.pathname} of the payment provider`, {
      cause,
    });
  }
}

function isRefusal(reply: ProviderReply, code: string): boolean {
  return "error" in reply && reply.error === code;
}

function outcomeOrNull(reply: ProviderReply): PaymentOutcome | null {
  return isRefusal(reply, "charge_not_found") ? null : outcomeOf(reply);
}

function outcomeOf(reply: ProviderReply): PaymentOutcome {
  // An understood refusal is our own mistake, such as one order charged with two amounts: nobody can reconcile it.
  if ("error" in reply) throw new Error(`The payment provider refused: ${reply.error}`);
  const { id: paymentId, method } = reply;
  switch (reply.state) {
    case "declined":
      return { state: "declined", paymentId, declineCode: reply.declineCode, method };
    case "requires_action":
      return { state: "requires_action", paymentId, url: reply.authorizeUrl, method };
    case "succeeded":
      return { state: "succeeded", paymentId, method, feeMinor: null };
    default:
      return { state: reply.state, paymentId, method };
  }
}
