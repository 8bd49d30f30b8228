import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { failPoint } from "../../core/fail-points.ts";
import { type IdPrefix, toId, toUuid } from "../../core/ids.ts";
import type { ChargeRequest, ChargeResult, SucceededCharge } from "../../integrations/payments/payments.ts";
import type { Queries } from "../../platform/db/database.ts";
import {
  type ChargedTable,
  deleteOpen,
  findStatus,
  isChargeFinal,
  isChargeOpen,
  listOpen,
  listPossiblyChargedLate,
  markAsked,
  markCheckedLate,
  type OpenCharge,
  recordMismatch,
} from "./charge-queries.ts";
import { ASKED_RECENTLY_MS, nullIfUnreachable } from "./provider-errors.ts";

/** The provider never received a charge that is still unknown after this time. */
const CANCEL_UNKNOWN_AFTER_MS = 10 * 60_000;
const CANCEL_UNCONFIRMED_AFTER_MS = 24 * 3_600_000;
/** Shorter for a row that reserves a redemption of a limited discount code, because other buyers want it. */
const CANCEL_UNCONFIRMED_REDEMPTION_AFTER_MS = 30 * 60_000;

export function isConfirmationOverdue(createdAt: Date, now: Date, reservesRedemption = false): boolean {
  const limitMs = reservesRedemption ? CANCEL_UNCONFIRMED_REDEMPTION_AFTER_MS : CANCEL_UNCONFIRMED_AFTER_MS;
  return now.getTime() - createdAt.getTime() > limitMs;
}

type KnownCharge = Exclude<ChargeResult, { state: "unknown_method" }>;

export type Paid = Omit<SucceededCharge, "amountMinor" | "currency" | "isRefunded">;
export type Unpaid = Exclude<KnownCharge, SucceededCharge>;
export type Settlement = Paid | Unpaid;

export function toUnpaidChange(unpaid: Unpaid) {
  const known = {
    paymentId: unpaid.paymentId,
    paymentMethod: JSON.stringify(unpaid.method),
    actionUrl: null,
  };
  switch (unpaid.state) {
    case "requires_action":
      return { ...known, status: "requires_action" as const, actionUrl: unpaid.url };
    case "processing":
      return { ...known, status: "pending" as const };
    case "declined":
      return { ...known, status: "failed" as const, declineCode: unpaid.declineCode };
    case "canceled":
      return { ...known, status: "canceled" as const };
  }
}

interface ChargedRow {
  id: string;
  status: string;
}

/** A row that one charge pays for, under the row's id: an order or a plan payment. */
export interface ChargeTarget<Row extends ChargedRow> {
  /** Used in log lines and fail points. */
  kind: "order" | "payment";
  table: ChargedTable;
  idPrefix: IdPrefix;
  toRequest(row: Row): ChargeRequest;
  find(db: Queries, id: string): Promise<Row | undefined>;
  /** Updates the row and all that depends on it in one transaction. A canceled row can still become paid; other rows do not change. */
  settle(ctx: Context, id: string, settlement: Settlement): Promise<Row>;
  /** Called for an open row without a charge, long after the request. */
  onNeverReceived(ctx: Context, id: string): Promise<void>;
}

/** The provider charges once for each id, so a repeat is safe. Without an answer the row stays open for the job. */
export async function charge<Row extends ChargedRow>(
  ctx: Context,
  target: ChargeTarget<Row>,
  row: Row,
): Promise<Row> {
  const isOpen = await markAsked(ctx.db, target.table, row.id, ctx.now());
  return isOpen ? chargeInserted(ctx, target, row) : reload(ctx, target, row);
}

/** Of a row that this request inserted: it has the time of the request already. */
export async function chargeInserted<Row extends ChargedRow>(
  ctx: Context,
  target: ChargeTarget<Row>,
  row: Row,
): Promise<Row> {
  const { kind, table } = target;
  failPoint(ctx, `${kind}: about to be charged`);
  const result = await nullIfUnreachable(ctx, { [kind]: row.id }, () =>
    ctx.integrations.payments.charge(target.toRequest(row)),
  );
  failPoint(ctx, `${kind}: charged, not settled`);
  if (result?.state === "unknown_method") {
    // Nothing was charged, and the buyer may try again with another method.
    await deleteOpen(ctx.db, table, row.id);
    await ctx.idempotencyKey?.unbind();
    throw new ApiError("PAYMENT_METHOD_NOT_FOUND");
  }
  // Without an answer, a webhook may have settled the row meanwhile.
  const settled = result ? await settle(ctx, target, row, result) : await reload(ctx, target, row);
  failPoint(ctx, `${kind}: settled, no response`);
  return settled;
}

/** The buyer may just have confirmed the charge. */
export async function refreshCharge<Row extends ChargedRow>(
  ctx: Context,
  target: ChargeTarget<Row>,
  row: Row,
): Promise<Row> {
  if (!isChargeOpen(row)) return row;
  const result = await nullIfUnreachable(ctx, { [target.kind]: row.id }, () =>
    ctx.integrations.payments.findCharge(toId(target.idPrefix, row.id)),
  );
  return isKnown(result) ? settle(ctx, target, row, result) : row;
}

/** Without an answer the row stays open, and it may turn out to be paid. */
export async function cancelCharge<Row extends ChargedRow>(
  ctx: Context,
  target: ChargeTarget<Row>,
  row: Row,
): Promise<Row> {
  const result = await nullIfUnreachable(ctx, { [target.kind]: row.id }, () =>
    ctx.integrations.payments.cancelCharge(toId(target.idPrefix, row.id)),
  );
  return isKnown(result) ? settle(ctx, target, row, result) : row;
}

/** Ignores ids of other kinds. Throws `PaymentUnknown` without an answer, so that the provider repeats its webhook. */
export async function syncCharge<Row extends ChargedRow>(
  ctx: Context,
  target: ChargeTarget<Row>,
  publicId: string,
): Promise<void> {
  const id = toUuid(target.idPrefix, publicId);
  if (id === null) return;
  // Most webhooks arrive after the response to the charge, whose settlement made the row final.
  const status = await findStatus(ctx.db, target.table, id);
  if (status === undefined || isChargeFinal({ status })) return;
  const result = await ctx.integrations.payments.findCharge(publicId);
  if (isKnown(result)) await settleById(ctx, target, id, result);
}

/** Settles rows that are open for over a minute, and finds late charges of canceled rows. */
export async function reconcileCharges<Row extends ChargedRow>(
  ctx: Context,
  target: ChargeTarget<Row>,
): Promise<void> {
  const before = new Date(ctx.now().getTime() - ASKED_RECENTLY_MS);
  for (const open of await listOpen(ctx.db, target.table, before)) await reconcileOpen(ctx, target, open);
  for (const { id } of await listPossiblyChargedLate(ctx.db, target.table, ctx.now()))
    await checkLateCharge(ctx, target, id);
}

async function reconcileOpen<Row extends ChargedRow>(
  ctx: Context,
  target: ChargeTarget<Row>,
  { id, createdAt, askedAt, reservesRedemption }: OpenCharge,
): Promise<void> {
  // Counts from creation, so that repeated requests do not extend the reservation of a discount code.
  const isOverdue = isConfirmationOverdue(createdAt, ctx.now(), reservesRedemption);
  try {
    const result = await findOrCancel(ctx, toId(target.idPrefix, id), isOverdue);
    if (isKnown(result)) await settleById(ctx, target, id, result);
    else if (ctx.now().getTime() - askedAt.getTime() > CANCEL_UNKNOWN_AFTER_MS)
      await target.onNeverReceived(ctx, id);
  } catch (error) {
    ctx.log.warn(
      { [target.kind]: id, err: error },
      "an open charge could not be reconciled; the next job run tries again",
    );
  }
}

/** Finds a late payment whose webhook was lost. Cancels a charge that the buyer could still confirm. */
async function checkLateCharge<Row extends ChargedRow>(
  ctx: Context,
  target: ChargeTarget<Row>,
  id: string,
): Promise<void> {
  try {
    const result = await findOrCancel(ctx, toId(target.idPrefix, id), true);
    if (isKnown(result)) await settleById(ctx, target, id, result);
    await markCheckedLate(ctx.db, target.table, id, ctx.now());
  } catch (error) {
    ctx.log.warn(
      { [target.kind]: id, err: error },
      "a canceled charge could not be checked; a later job run tries again",
    );
  }
}

/** `cancelUnconfirmed`: the time to confirm is over. */
async function findOrCancel(
  { integrations: { payments } }: Context,
  publicId: string,
  cancelUnconfirmed: boolean,
): Promise<ChargeResult | null> {
  const found = await payments.findCharge(publicId);
  return cancelUnconfirmed && found?.state === "requires_action" ? payments.cancelCharge(publicId) : found;
}

const isKnown = (result: ChargeResult | null): result is KnownCharge =>
  result !== null && result.state !== "unknown_method";

async function settleById<Row extends ChargedRow>(
  ctx: Context,
  target: ChargeTarget<Row>,
  id: string,
  known: KnownCharge,
): Promise<void> {
  const row = await target.find(ctx.db, id);
  if (row) await settle(ctx, target, row, known);
}

async function settle<Row extends ChargedRow>(
  ctx: Context,
  target: ChargeTarget<Row>,
  row: Row,
  known: KnownCharge,
): Promise<Row> {
  const isUsable =
    known.state !== "succeeded" || (matchesRequest(target.toRequest(row), known) && !known.isRefunded);
  return isUsable ? target.settle(ctx, row.id, known) : recordMismatchedCapture(ctx, target, row, known);
}

const matchesRequest = (request: ChargeRequest, captured: SucceededCharge): boolean =>
  captured.amountMinor === request.amountMinor && captured.currency === request.currency;

/**
 * The row stays open until the operator refunds a mismatch at the provider. A refunded capture pays for nothing, whatever its amount: it
 * cancels the row.
 */
async function recordMismatchedCapture<Row extends ChargedRow>(
  ctx: Context,
  target: ChargeTarget<Row>,
  row: Row,
  { paymentId, amountMinor, currency, isRefunded, method }: SucceededCharge,
): Promise<Row> {
  const captured = isRefunded ? null : `${amountMinor} ${currency}`;
  const isNew = await recordMismatch(ctx.db, target.table, row.id, { paymentId, captured });
  if (isRefunded) return target.settle(ctx, row.id, { state: "canceled", paymentId, method });
  if (isNew)
    ctx.log.error(
      { [target.kind]: row.id, paymentId, amountMinor, currency },
      "the payment provider captured another amount than requested: compare both, and refund it there",
    );
  return reload(ctx, target, row);
}

const reload = async <Row extends ChargedRow>(
  ctx: Context,
  target: ChargeTarget<Row>,
  row: Row,
): Promise<Row> => (await target.find(ctx.db, row.id)) ?? row;
