import { z } from "zod";
import { type Call, type Endpoint, jsonReply, type Reply, refusal } from "./http.ts";
import { chargeFee } from "./methods.ts";
import type { Charge, Dispute, Listed, Payout, Refund } from "./store.ts";

/** Objects since a time, in pages; `after` is the last id of the previous page. */
export const listEndpoints: Endpoint[] = [
  ["GET", /^\/v1\/lists\/charges$/, (call) => list(call, "charges", toCharge)],
  ["GET", /^\/v1\/lists\/refunds$/, (call) => list(call, "refunds", (refund) => toRefund(call, refund))],
  ["GET", /^\/v1\/lists\/disputes$/, (call) => list(call, "disputes", toDispute)],
  ["GET", /^\/v1\/lists\/payouts$/, (call) => list(call, "payouts", toPayout)],
];

const Since = z.iso.datetime().transform((text) => new Date(text));

async function list<Kind extends keyof Listed>(
  { provider, url }: Call,
  kind: Kind,
  render: (row: Listed[Kind]) => unknown,
): Promise<Reply> {
  const since = Since.safeParse(url.searchParams.get("since"));
  if (!since.success) return refusal(400, "invalid_request");
  const rows = await provider.store.list(kind, since.data, url.searchParams.get("after"));
  return jsonReply(200, { items: await Promise.all(rows.map(render)) });
}

const toCharge = ({ id, orderId, state, amountMinor, currency, createdAt }: Charge) => ({
  ...{ id, orderId, state, currency, createdAt },
  ...{ amountMinor: Number(amountMinor), feeMinor: Number(chargeFee(amountMinor)) },
});

async function toRefund({ provider }: Call, { amountMinor, failureCode: _, ...refund }: Refund) {
  const { orderId } = (await provider.store.find(refund.chargeId))!;
  return { ...refund, orderId, amountMinor: Number(amountMinor) };
}

export const toDispute = ({ id, orderId, state, amountMinor, feeMinor, reason, createdAt }: Dispute) => ({
  ...{ id, orderId, state, reason, createdAt },
  ...{ amountMinor: Number(amountMinor), feeMinor: Number(feeMinor) },
});

const toPayout = ({ id, payoutId, state, amountMinor, currency, createdAt }: Payout) => ({
  ...{ id, payoutId, state, currency, createdAt, amountMinor: Number(amountMinor) },
});
