import { randomUUID } from "node:crypto";
import { z } from "zod";
import { authorizePage, notFoundPage } from "./html-pages.ts";
import {
  type Call,
  type Endpoint,
  isWhatWasAsked,
  jsonReply,
  page,
  type Reply,
  readKeyed,
  readText,
  redirect,
  refusal,
} from "./http.ts";
import {
  chargeFee,
  DISPUTE_FEE_MINOR,
  type FakeMethod,
  findFakeMethod,
  methodOfCharge,
  ownMethodId,
} from "./methods.ts";
import type { Charge, Ending } from "./store.ts";

const ChargeRequest = z.strictObject({
  amountMinor: z.int().positive().transform(BigInt),
  currency: z.string().length(3),
  customerId: z.string(),
  methodId: z.string(),
  description: z.string(),
});

export const chargeEndpoints: Endpoint[] = [
  ["POST", /^\/v1\/charges$/, makeCharge],
  ["GET", /^\/v1\/charges$/, findCharge],
  ["POST", /^\/v1\/charges\/([^/]+)\/confirm$/, (call) => endCharge(call, { state: "succeeded" })],
  ["POST", /^\/v1\/charges\/([^/]+)\/cancel$/, (call) => endCharge(call, { state: "canceled" })],
  ["GET", /^\/v1\/methods$/, findMethod],
  ["GET", /^\/authorize\/([^/]+)$/, showAuthorizePage],
  ["POST", /^\/authorize\/([^/]+)$/, decide],
];

/** Creates the charge of an idempotency key or returns the existing one. */
async function makeCharge(call: Call): Promise<Reply> {
  const { provider, request } = call;
  const read = await readKeyed(request, ChargeRequest);
  if (!read) return refusal(400, "invalid_request");
  const { key: orderId, asked } = read;
  const method = findFakeMethod(asked.methodId, asked.customerId);
  if (!method) return refusal(404, "unknown_method");
  const wished: Charge = {
    id: `ch_${randomUUID()}`,
    orderId,
    ...asked,
    declineCode: null,
    ...method.outcome,
    createdAt: provider.now(),
  };
  const stored = await provider.store.insertOrGet(wished);
  if (!isWhatWasAsked(stored, asked)) return refusal(409, "idempotency_key_reused");
  const reply = chargeReply(call, stored);
  return stored.id === wished.id ? afterNewCharge(call, stored, method, reply) : reply;
}

/** The method's further effects after a new charge. */
async function afterNewCharge({ provider }: Call, charge: Charge, method: FakeMethod, reply: Reply) {
  const { webhooks, store } = provider;
  if (method.answers === "never") return new Promise<never>(() => {});
  const event = { about: "payment", orderId: charge.orderId } as const;
  if (method.answers === "after its webhook") {
    await webhooks.send(event);
    return reply;
  }
  for (let times = method.webhooks === "twice" ? 2 : 1; times > 0; times--) webhooks.sendLater(event);
  if (!method.disputed) return reply;
  const dispute = disputeOf(charge, provider.now());
  await store.insertDispute(dispute);
  webhooks.sendLater({ about: "dispute", disputeId: dispute.id });
  return reply;
}

const disputeOf = ({ id, orderId, amountMinor, currency }: Charge, createdAt: Date) => ({
  id: `dp_${randomUUID()}`,
  chargeId: id,
  orderId,
  amountMinor,
  feeMinor: DISPUTE_FEE_MINOR,
  currency,
  reason: "fraudulent",
  state: "open" as const,
  createdAt,
});

async function findCharge(call: Call): Promise<Reply> {
  const orderId = call.url.searchParams.get("order") ?? "";
  return chargeReply(call, await call.provider.store.findByOrder(orderId));
}

/** Returns 200 with the charge, also when it had ended before: the caller reads its state. */
async function endCharge(call: Call, ending: Ending): Promise<Reply> {
  return chargeReply(call, await end(call, ending));
}

async function end({ provider, id }: Call, ending: Ending): Promise<Charge | null> {
  const charge = await provider.store.setState(id, ending);
  if (charge) provider.webhooks.sendLater({ about: "payment", orderId: charge.orderId });
  return charge;
}

/** By name, or by the id of a customer's own method. */
async function findMethod({ url }: Call): Promise<Reply> {
  const customerId = url.searchParams.get("customer") ?? "";
  const method = findFakeMethod(url.searchParams.get("token") ?? "", customerId);
  if (!method) return refusal(404, "unknown_method");
  const { name, brand, last4 } = method;
  return jsonReply(200, { id: ownMethodId(name, customerId), brand, last4 });
}

async function showAuthorizePage({ provider, id }: Call): Promise<Reply> {
  const charge = await provider.store.find(id);
  return charge ? page(200, authorizePage(charge)) : page(404, notFoundPage());
}

/** Ends the charge and redirects to the page. */
async function decide(call: Call): Promise<Reply> {
  const ending = endingByButton.get(new URLSearchParams(await readText(call.request)).get("decision"));
  if (!ending) return page(400, notFoundPage());
  if (!(await end(call, ending))) return page(404, notFoundPage());
  return redirect(call.provider.pageUrl(`/authorize/${call.id}`).pathname);
}

const endingByButton = new Map<string | null, Ending>([
  ["approve", { state: "succeeded" }],
  ["decline", { state: "declined", declineCode: "authentication_failed" }],
]);

function chargeReply({ provider }: Call, charge: Charge | null): Reply {
  if (!charge) return refusal(404, "charge_not_found");
  const { id, state, declineCode, amountMinor, currency } = charge;
  const { brand, last4 } = methodOfCharge(charge);
  const authorizeUrl = provider.pageUrl(`/authorize/${id}`).href;
  const amounts = { amountMinor: Number(amountMinor), currency, feeMinor: Number(chargeFee(amountMinor)) };
  return jsonReply(200, { id, state, declineCode, ...amounts, method: { brand, last4 }, authorizeUrl });
}
