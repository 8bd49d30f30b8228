import { randomUUID } from "node:crypto";
import { z } from "zod";
import {
  type Call,
  type Endpoint,
  isWhatWasAsked,
  jsonReply,
  type Provider,
  type Reply,
  readJson,
  readKeyed,
  refusal,
} from "./http.ts";
import { toDispute } from "./lists.ts";
import { methodOfCharge, payoutAccounts } from "./methods.ts";
import type { Charge, Dispute, Payout, Refund } from "./store.ts";

const amount = { amountMinor: z.int().positive().transform(BigInt), currency: z.string().length(3) };
const RefundRequest = z.strictObject({ chargeId: z.string(), ...amount });
const PayoutRequest = z.strictObject({ destination: z.string(), ...amount });
const Outcome = z.strictObject({ outcome: z.enum(["won", "lost"]) });
const failed = z.strictObject({ state: z.literal("failed"), failureCode: z.string() });
const RefundMove = z.union([failed, z.strictObject({ state: z.literal("succeeded") })]);
const PayoutMove = z.union([failed, z.strictObject({ state: z.enum(["completed", "returned"]) })]);

/** Refunds and payouts. `end` and `close` replace a bank's decision. */
export const transferEndpoints: Endpoint[] = [
  ["POST", /^\/v1\/refunds$/, makeRefund],
  ["GET", /^\/v1\/refunds$/, findRefund],
  ["POST", /^\/v1\/refunds\/([^/]+)\/end$/, endRefund],
  ["POST", /^\/v1\/payouts$/, makePayout],
  ["GET", /^\/v1\/payouts$/, findPayout],
  ["POST", /^\/v1\/payouts\/([^/]+)\/end$/, endPayout],
  ["GET", /^\/v1\/disputes$/, findDispute],
  ["POST", /^\/v1\/disputes\/([^/]+)\/close$/, closeDispute],
];

/** One refund per idempotency key, at most the charged amount. */
async function makeRefund({ provider, request }: Call): Promise<Reply> {
  const read = await readKeyed(request, RefundRequest);
  if (!read) return refusal(400, "invalid_request");
  const { key: refundId, asked } = read;
  const charge = await provider.store.find(asked.chargeId);
  if (charge?.state !== "succeeded" || charge.currency !== asked.currency)
    return refusal(404, "charge_not_found");
  const wished: Refund = {
    id: `re_${randomUUID()}`,
    refundId,
    ...asked,
    ...(await refundOutcome(provider, charge)),
    createdAt: provider.now(),
  };
  const stored = await provider.store.insertRefund(wished);
  if (!stored) return refusal(409, "amount_too_large");
  if (!isWhatWasAsked(stored, asked)) return refusal(409, "idempotency_key_reused");
  if (stored.id === wished.id) provider.webhooks.sendLater({ about: "refund", refundId });
  return refundReply(stored);
}

/** A disputed amount cannot be refunded too. */
async function refundOutcome(
  { store }: Provider,
  charge: Charge,
): Promise<Pick<Refund, "state" | "failureCode">> {
  const dispute = await store.findDisputeOf(charge.id);
  if (dispute && dispute.state !== "won") return { state: "failed", failureCode: "charge_disputed" };
  const { refunds } = methodOfCharge(charge);
  if (refunds === "fail") return { state: "failed", failureCode: "expired_or_canceled_card" };
  return { state: refunds === "wait" ? "processing" : "succeeded", failureCode: null };
}

async function findRefund({ provider, url }: Call): Promise<Reply> {
  return refundReply(await provider.store.findRefund(url.searchParams.get("refund") ?? ""));
}

async function endRefund({ provider, request, id }: Call): Promise<Reply> {
  const move = await readJson(request, RefundMove);
  return move ? refundReply(await moveRefund(provider, id, move)) : refusal(400, "invalid_request");
}

/** Ends a pending refund, as a bank does days later. */
export async function moveRefund(
  { store, webhooks }: Provider,
  id: string,
  move: z.infer<typeof RefundMove>,
) {
  const refund = await store.moveRefund(id, "processing", move);
  if (refund) webhooks.sendLater({ about: "refund", refundId: refund.refundId });
  return refund;
}

function refundReply(refund: Refund | null): Reply {
  if (!refund) return refusal(404, "refund_not_found");
  const { id, state, failureCode } = refund;
  return jsonReply(200, { id, state, failureCode });
}

/** One payout per idempotency key. */
async function makePayout({ provider, request }: Call): Promise<Reply> {
  const read = await readKeyed(request, PayoutRequest);
  if (!read) return refusal(400, "invalid_request");
  const { key: payoutId, asked } = read;
  const account = await payoutOutcome(provider, asked.destination);
  if (!account) return refusal(404, "unknown_account");
  const wished: Payout = {
    id: `po_${randomUUID()}`,
    payoutId,
    ...asked,
    failureCode: null,
    ...account,
    createdAt: provider.now(),
  };
  const stored = await provider.store.insertPayout(wished);
  if (!isWhatWasAsked(stored, asked)) return refusal(409, "idempotency_key_reused");
  if (stored.id !== wished.id) return payoutReply(stored);
  provider.webhooks.sendLater({ about: "payout", payoutId });
  return payoutReply(stored.state === "returned" ? { ...stored, state: "completed" } : stored);
}

/** The result of a payout to an account; null: unknown account. */
async function payoutOutcome({ store }: Provider, destination: string) {
  const named = payoutAccounts.get(destination);
  if (named) return named;
  const own = await store.findAccount(destination);
  if (own?.state === "restricted") return { state: "failed", failureCode: "account_not_set_up" } as const;
  return own && ({ state: "completed" } as const);
}

async function findPayout({ provider, url }: Call): Promise<Reply> {
  return payoutReply(await provider.store.findPayout(url.searchParams.get("payout") ?? ""));
}

async function endPayout({ provider, request, id }: Call): Promise<Reply> {
  const move = await readJson(request, PayoutMove);
  return move ? payoutReply(await movePayout(provider, id, move)) : refusal(400, "invalid_request");
}

/** Ends a pending payout, or returns a completed one. */
export async function movePayout(
  { store, webhooks }: Provider,
  id: string,
  move: z.infer<typeof PayoutMove>,
) {
  const from = move.state === "returned" ? "completed" : "in_transit";
  const payout = await store.movePayout(id, from, move);
  if (payout) webhooks.sendLater({ about: "payout", payoutId: payout.payoutId });
  return payout;
}

function payoutReply(payout: Payout | null): Reply {
  if (!payout) return refusal(404, "payout_not_found");
  const { id, state, failureCode } = payout;
  return jsonReply(200, { id, state, failureCode });
}

async function findDispute({ provider, url }: Call): Promise<Reply> {
  return disputeReply(await provider.store.findDispute(url.searchParams.get("dispute") ?? ""));
}

async function closeDispute({ provider, request, id }: Call): Promise<Reply> {
  const asked = await readJson(request, Outcome);
  return asked
    ? disputeReply(await endDispute(provider, id, asked.outcome))
    : refusal(400, "invalid_request");
}

export async function endDispute({ store, webhooks }: Provider, id: string, outcome: "won" | "lost") {
  const dispute = await store.closeDispute(id, outcome);
  if (dispute) webhooks.sendLater({ about: "dispute", disputeId: dispute.id });
  return dispute;
}

function disputeReply(dispute: Dispute | null): Reply {
  return dispute ? jsonReply(200, toDispute(dispute)) : refusal(404, "dispute_not_found");
}
