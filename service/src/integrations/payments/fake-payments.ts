import { text } from "node:stream/consumers";
// biome-ignore lint/correctness/noUndeclaredDependencies: The root has it as a development dependency. npm would link it in production, too, if it stood in our manifest.
import { payoutAccounts, sharedMethods, signatureProblem } from "@stoa/fake-payments";
import { z } from "zod";
import { Agent, request } from "../../core/node-http.ts";
import { lastOf } from "../../core/required.ts";
import {
  type ChargeResult,
  type Dispute,
  noAmountLimits,
  type PaymentEvent,
  type PaymentMethod,
  type Payments,
  PaymentUnknown,
  type PayoutResult,
  type RefundResult,
  WebhookSignatureError,
} from "./payments.ts";

// biome-ignore lint/correctness/noUndeclaredDependencies: See above. The service and its tests reach the package by this file alone.
export * from "@stoa/fake-payments";

// A started service asks for disputes at once. The package `undici` would take 28 MB.
const agent = new Agent({ keepAlive: true });

const ANSWER_DEADLINE_MS = 10_000;

interface FakePaymentsOptions {
  /** The address of the fake provider. */
  origin: string;
  /** Verifies its webhooks; without it all are refused. */
  secret?: Buffer;
  now?: () => Date;
  /** Creates the deadline of a request; tests use a shorter one. */
  deadline?: () => AbortSignal;
}

/** Payments through the fake provider, over HTTP like a real one. */
export function createFakePayments({
  origin,
  secret,
  now = () => new Date(),
  deadline = inTenSeconds,
}: FakePaymentsOptions): Payments {
  const api = createFakeApi(origin, deadline);
  return {
    name: "fake",
    limitsOf: noAmountLimits,
    ...createCharges(api),
    ...createRefunds(api),
    ...createPayouts(api),
    ...createDisputes(api),
    ...createMethods(api),
    async parseWebhook(body, headers) {
      if (!secret) throw new WebhookSignatureError("no secret was agreed on");
      const problem = signatureProblem(secret, body, headers["fake-signature"], now());
      if (problem !== null) throw new WebhookSignatureError(problem);
      return parseEvent(body);
    },
  };
}

type FakeApi = ReturnType<typeof createFakeApi>;

function createFakeApi(origin: string, deadline: () => AbortSignal) {
  const ask = <T>(answer: z.ZodType<T>, method: "GET" | "POST", path: string, order?: IdempotentRequest) =>
    askProvider(answer, new URL(path, origin), { method, signal: deadline(), order });
  const find = <T>(answer: z.ZodType<T>, path: string, by: Record<string, string>) =>
    ask(answer, "GET", `${path}?${new URLSearchParams(by)}`);
  /** All items, page by page. */
  async function* list<T extends { id: string }>(item: z.ZodType<T>, kind: string, since: Date) {
    const answer = z.object({ items: z.array(item) });
    for (let after: string | undefined; ; ) {
      const by = { since: since.toISOString(), ...(after !== undefined && { after }) };
      const { items } = answered(await find(answer, `/v1/lists/${kind}`, by));
      yield* items;
      if (items.length === 0) return;
      after = lastOf(items).id;
    }
  }
  return { ask, find, list };
}

const createCharges = ({
  ask,
  find,
  list,
}: FakeApi): Pick<Payments, "charge" | "findCharge" | "cancelCharge" | "listCharges"> => ({
  async charge({ orderId, amountMinor, currency, methodId, userId, description }) {
    const body = { amountMinor: Number(amountMinor), currency, customerId: userId, methodId, description };
    const reply = await ask(ChargeReply, "POST", "/v1/charges", { key: orderId, body });
    if (isRefusal(reply, "unknown_method")) return { state: "unknown_method" };
    const refused = isRefusal(reply, "invalid_request");
    return refused ? toDeclinedCharge(orderId, refused) : toChargeResult(reply);
  },
  async findCharge(orderId) {
    return chargeOrNull(await find(ChargeReply, "/v1/charges", { order: orderId }));
  },
  async cancelCharge(orderId) {
    const found = await find(ChargeReply, "/v1/charges", { order: orderId });
    if ("error" in found) return chargeOrNull(found);
    return toChargeResult(await ask(ChargeReply, "POST", `/v1/charges/${found.id}/cancel`));
  },
  async *listCharges(since) {
    for await (const { id: paymentId, ...charge } of list(ListedCharge, "charges", since))
      yield { paymentId, ...charge, isRefunded: false };
  },
});

const createRefunds = ({
  ask,
  find,
  list,
}: FakeApi): Pick<Payments, "refund" | "findRefund" | "listRefundsOf" | "listRefunds"> => ({
  async refund({ refundId, paymentId, amountMinor, currency }) {
    const body = { chargeId: paymentId, amountMinor: Number(amountMinor), currency };
    const reply = await ask(RefundReply, "POST", "/v1/refunds", { key: refundId, body });
    const refused = isRefusal(reply, "charge_not_found", "amount_too_large");
    return refused ? { state: "failed", providerRefundId: null, failureCode: refused } : refundOf(reply);
  },
  async findRefund(refundId) {
    const reply = await find(RefundReply, "/v1/refunds", { refund: refundId });
    return isRefusal(reply, "refund_not_found") ? null : refundOf(reply);
  },
  // The fake provider has no dashboard, so all its refunds are ours.
  listRefundsOf: async () => [],
  async *listRefunds(since) {
    for await (const { id, refundId, chargeId, ...refund } of list(ListedRefund, "refunds", since))
      yield {
        ...refund,
        providerRefundId: id,
        refundId: refundId.startsWith("refund_") ? refundId : null,
        paymentId: chargeId,
        failureCode: null,
      };
  },
});

const createPayouts = ({
  ask,
  find,
  list,
}: FakeApi): Pick<
  Payments,
  "payOut" | "findPayout" | "findPayoutAccount" | "onboard" | "listPayouts" | "sharedPayoutAccount"
> => ({
  async payOut({ payoutId, destination, amountMinor, currency }) {
    const body = { destination, amountMinor: Number(amountMinor), currency };
    const reply = await ask(PayoutReply, "POST", "/v1/payouts", { key: payoutId, body });
    const refused = isRefusal(reply, "unknown_account");
    return refused ? { state: "failed", providerPayoutId: null, failureCode: refused } : payoutOf(reply);
  },
  async findPayout(payoutId) {
    const reply = await find(PayoutReply, "/v1/payouts", { payout: payoutId });
    return isRefusal(reply, "payout_not_found") ? null : payoutOf(reply);
  },
  async findPayoutAccount(accountId) {
    const reply = await find(AccountReply, "/v1/accounts", { account: accountId });
    if (isRefusal(reply, "unknown_account")) return null;
    const { id: _, onboardingUrl: _url, ...account } = answered(reply);
    return { ...account, dueBy: null };
  },
  async onboard(userId) {
    const body = { ownerId: userId };
    const reply = answered(await ask(AccountReply, "POST", "/v1/accounts", { key: userId, body }));
    return { accountId: reply.id, url: reply.onboardingUrl };
  },
  async *listPayouts(since) {
    for await (const { id, ...payout } of list(ListedPayout, "payouts", since))
      yield { ...payout, providerPayoutId: id, reversedMinor: 0n };
  },
  sharedPayoutAccount: payoutAccounts.keys().next().value ?? null,
});

const createDisputes = ({ find, list }: FakeApi): Pick<Payments, "findDispute" | "listDisputes"> => ({
  async findDispute(disputeId) {
    const reply = await find(DisputeReply, "/v1/disputes", { dispute: disputeId });
    return isRefusal(reply, "dispute_not_found") ? null : disputeOf(answered(reply));
  },
  async *listDisputes(since) {
    for await (const dispute of list(DisputeReply, "disputes", since)) yield disputeOf(dispute);
  },
});

const createMethods = ({
  ask,
  find,
}: FakeApi): Pick<
  Payments,
  "startCardSetup" | "findMethod" | "detachMethod" | "findTokenProblem" | "sharedMethods"
> => ({
  async startCardSetup(userId, returnTo) {
    const asked = { key: `${userId}:card`, body: { returnTo } };
    return answered(await ask(CardPageReply, "POST", "/v1/card-pages", asked)).url;
  },
  async findMethod(userId, token) {
    const reply = await find(MethodReply, "/v1/methods", { token, customer: userId });
    return isRefusal(reply, "unknown_method") ? null : methodOf(reply);
  },
  // The id of an own method contains its owner, and the provider stores nothing.
  detachMethod: async () => {},
  findTokenProblem: () => null,
  sharedMethods,
});

const inTenSeconds = () => AbortSignal.timeout(ANSWER_DEADLINE_MS);

const method = z.object({ brand: z.string(), last4: z.string() });
const made = { id: z.string(), method };
const ChargeReply = z.union([
  z.object({
    ...{ ...made, state: z.literal("succeeded"), currency: z.string() },
    ...{ amountMinor: z.int().transform(BigInt), feeMinor: z.int().transform(BigInt) },
  }),
  z.object({ ...made, state: z.literal("canceled") }),
  z.object({ ...made, state: z.literal("declined"), declineCode: z.string() }),
  z.object({ ...made, state: z.literal("requires_action"), authorizeUrl: z.url() }),
]);
const failed = z.object({ id: z.string(), state: z.literal("failed"), failureCode: z.string() });
const RefundReply = z.union([
  failed,
  z.object({ id: z.string(), state: z.enum(["succeeded", "processing"]) }),
]);
const PayoutReply = z.union([
  failed,
  z.object({ id: z.string(), state: z.enum(["completed", "in_transit", "returned"]) }),
]);
const AccountReply = z.object({
  id: z.string(),
  payoutsEnabled: z.boolean(),
  disabledReason: z.string().nullable(),
  requirements: z.array(
    z.object({
      name: z.string(),
      status: z.enum(["due", "past_due", "in_review"]),
      problem: z.string().nullable(),
    }),
  ),
  onboardingUrl: z.url(),
});
const CardPageReply = z.object({ url: z.url() });
const minor = z.int().transform(BigInt);
const createdAt = z.iso.datetime().transform((text) => new Date(text));
const DisputeReply = z.object({
  id: z.string(),
  orderId: z.string(),
  state: z.enum(["open", "won", "lost"]),
  amountMinor: minor,
  feeMinor: minor,
  reason: z.string(),
  createdAt,
});
const moved = { id: z.string(), amountMinor: minor, currency: z.string(), createdAt };
const ListedCharge = z.object({
  ...moved,
  orderId: z.string(),
  state: z.enum(["succeeded", "declined", "requires_action", "canceled"]),
  feeMinor: minor,
});
const ListedRefund = z.object({
  ...moved,
  refundId: z.string(),
  chargeId: z.string(),
  orderId: z.string(),
  state: z.enum(["processing", "succeeded", "failed"]),
});
const ListedPayout = z.object({
  ...moved,
  payoutId: z.string(),
  state: z.enum(["in_transit", "completed", "returned", "failed"]),
});
const MethodReply = method.extend({ id: z.string() });
const Refusal = z.object({ error: z.string() });
type Refusal = z.infer<typeof Refusal>;

const WebhookBody = z.discriminatedUnion("about", [
  z.object({ about: z.literal("payment"), orderId: z.string() }),
  z.object({ about: z.literal("refund"), refundId: z.string() }),
  z.object({ about: z.literal("payout"), payoutId: z.string() }),
  z.object({ about: z.literal("dispute"), disputeId: z.string() }),
]);

/** null: the webhook is about an object that this service does not use. */
function parseEvent(body: Buffer): PaymentEvent | null {
  try {
    return WebhookBody.parse(JSON.parse(body.toString("utf8")));
  } catch {
    return null;
  }
}

/** A request with its idempotency key. */
interface IdempotentRequest {
  key: string;
  body: object;
}

interface RequestOptions {
  method: "GET" | "POST";
  signal: AbortSignal;
  order: IdempotentRequest | undefined;
}

/** Any failure to read an answer leaves the result unknown. */
async function askProvider<T>(answer: z.ZodType<T>, url: URL, options: RequestOptions): Promise<T | Refusal> {
  try {
    const { status, body } = await send(url, options);
    if (status >= 500) throw new Error(`The provider answered ${status}`);
    return z.union([Refusal, answer]).parse(JSON.parse(body));
  } catch (cause) {
    throw new PaymentUnknown(`No answer to ${options.method} ${url.pathname} of the payment provider`, {
      cause,
    });
  }
}

function send(
  url: URL,
  { method, signal, order }: RequestOptions,
): Promise<{ status: number; body: string }> {
  const headers = order && { "content-type": "application/json", "idempotency-key": order.key };
  return new Promise((resolve, reject) => {
    const call = request(url, { method, signal, agent, ...(headers && { headers }) }, (response) => {
      text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
    });
    call.on("error", reject);
    call.end(order && JSON.stringify(order.body));
  });
}

const isRefused = (reply: object): reply is Refusal => "error" in reply;

/** Returns the refusal if it is one of these codes. */
function isRefusal(reply: object, ...codes: string[]): string | false {
  return isRefused(reply) && codes.includes(reply.error) && reply.error;
}

/** A refusal here is our own mistake, such as one order charged with two amounts. No reconciliation can fix it. */
function answered<T extends object>(reply: T | Refusal): T {
  if (isRefused(reply)) throw new Error(`The payment provider refused: ${reply.error}`);
  return reply;
}

/** The provider created nothing: the same as a decline, without a card. */
const toDeclinedCharge = (orderId: string, declineCode: string): ChargeResult => ({
  ...{ state: "declined", declineCode },
  ...{ paymentId: orderId, method: { brand: "unknown", last4: "????" } },
});

function chargeOrNull(reply: z.infer<typeof ChargeReply> | Refusal): ChargeResult | null {
  return isRefusal(reply, "charge_not_found") ? null : toChargeResult(reply);
}

function toChargeResult(reply: z.infer<typeof ChargeReply> | Refusal): ChargeResult {
  const charge = answered(reply);
  const { id: paymentId, method } = charge;
  switch (charge.state) {
    case "declined":
      return { state: "declined", paymentId, declineCode: charge.declineCode, method };
    case "requires_action":
      return { state: "requires_action", paymentId, url: charge.authorizeUrl, method };
    case "succeeded": {
      const { amountMinor, currency, feeMinor } = charge;
      return { state: "succeeded", paymentId, method, amountMinor, currency, isRefunded: false, feeMinor };
    }
    case "canceled":
      return { state: "canceled", paymentId, method };
  }
}

function refundOf(reply: z.infer<typeof RefundReply> | Refusal): RefundResult {
  const { id: providerRefundId, ...refund } = answered(reply);
  return { ...refund, providerRefundId };
}

function payoutOf(reply: z.infer<typeof PayoutReply> | Refusal): PayoutResult {
  const { id: providerPayoutId, ...payout } = answered(reply);
  return { ...payout, providerPayoutId };
}

const disputeOf = ({ id: disputeId, ...dispute }: z.infer<typeof DisputeReply>): Dispute => ({
  ...{ disputeId, ...dispute, evidenceDueBy: null },
});

const methodOf = (reply: z.infer<typeof MethodReply> | Refusal): PaymentMethod => answered(reply);
