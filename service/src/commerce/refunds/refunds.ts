import type { AdminRefund, CreateRefund, Refund, RefundOrder, RefundStatus } from "@stoa/contract";
import { refundReasons } from "@stoa/contract";
import { lockAccount } from "../../accounts/people/accounts.ts";
import { toUserId } from "../../accounts/people/users.ts";
import { lockEntitlement } from "../../catalog/entitlements/entitlements.ts";
import type { Context, Member, RequestSource, SessionCaller } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { ApiError, invalidRequest, ruleViolation } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { formatMoney, toDecimal, toMinor } from "../../core/money/amount.ts";
import { findStepAmountProblem } from "../../core/money/chargeable.ts";
import { required } from "../../core/required.ts";
import type { Tx } from "../../platform/db/database.ts";
import { mapPage, type Paging } from "../../platform/db/paging.ts";
import { isAdmin } from "../../platform/http/authenticate.ts";
import { lockOrder, type OrderRow } from "../orders/queries.ts";
import { notifyOfRefund } from "./refund-emails.ts";
import { type RefundMoveName, refundMoves } from "./refund-lifecycle.ts";
import {
  alreadyRefundingError,
  approveRefund,
  createRefund,
  type LockedRefund,
  lockRefund,
  moveRefund,
  type RefundActor,
  SERVICE_ACTOR,
} from "./refund-moves.ts";
import { findRefundRow, listRefundRows, type RefundRow } from "./refund-queries.ts";
import {
  type Approval,
  decideApproval,
  isInstant,
  mustBeRefundable,
  mustBeRefundableByAdmin,
} from "./refund-rules.ts";
import { type PaidOrder, remainingAmount } from "./refund-settlement.ts";
import { continueRefund, submitRefund } from "./refund-submission.ts";
import { toRefundRuns } from "./run-failures.ts";

const DECISION_DAYS = 7;

/** Locks the account first, so that only one of two concurrent requests counts as the first instant refund. */
export async function requestRefund(
  ctx: Context,
  caller: Member,
  orderId: string,
  input: CreateRefund,
  source: RequestSource,
): Promise<Refund> {
  const { refund, approved } = await ctx.db.transaction().execute(async (tx) => {
    await lockAccount(tx, caller.userId);
    const order = await mustBeRefundable(ctx, tx, await lockOwnOrder(tx, caller.userId, orderId));
    await lockEntitlement(tx, order.id);
    const approval = await decideApproval(ctx, tx, order);
    const automatic = isInstant(approval.reason);
    const by = { actorId: caller.userId, source };
    const started = await createRefund(ctx, tx, order, toRefundInput(ctx, order, input, approval), by);
    await bindToRefund(ctx, tx, started.refund.id);
    if (!automatic) await notifyOfRefund(ctx, tx, started.refund, "requested");
    return { ...started, approved: automatic && (await approveRefund(ctx, tx, started, SERVICE_ACTOR)) };
  });
  if (approved) await submitRefund(ctx, refund.id);
  return readRefundById(ctx, refund.id);
}

const bindToRefund = async (ctx: Context, tx: Tx, refundId: string) =>
  ctx.idempotencyKey?.bind(tx, toId("refund", refundId));

/** Handles a repeated Idempotency-Key. */
export async function resumeRefund(ctx: Context, caller: Member, refundId: string): Promise<Refund> {
  const { id } = await findVisibleRefund(ctx, caller, refundId);
  await continueRefund(ctx, id);
  return readRefundById(ctx, id);
}

async function lockOwnOrder(tx: Tx, buyerId: string, orderId: string): Promise<OrderRow> {
  const id = toUuid("ord", orderId);
  const order = id ? await lockOrder(tx, id) : undefined;
  if (order?.buyerId !== buyerId) throw new ApiError("ORDER_NOT_FOUND");
  return order;
}

const toRefundInput = (ctx: Context, order: PaidOrder, input: CreateRefund, { reason, runs }: Approval) => ({
  origin: "buyer" as const,
  amountMinor: remainingAmount(order),
  reason: input.reason,
  details: input.details ?? null,
  approvalReason: reason,
  runs: runs && JSON.stringify(runs),
  decideBy: isInstant(reason) ? null : daysAfter(ctx.now(), DECISION_DAYS),
});

export async function approveRequest(ctx: Context, caller: Member, refundId: string, source: RequestSource) {
  const { refund } = await decide(ctx, caller, refundId, "approve", (tx, locked) => {
    mustBeRefundableByAdmin(locked.order);
    return approveRefund(ctx, tx, locked, { actorId: caller.userId, source });
  });
  await submitRefund(ctx, refund.id);
  return readRefundById(ctx, refund.id);
}

export async function rejectRequest(
  ctx: Context,
  caller: Member,
  refundId: string,
  reason: string,
  source: RequestSource,
): Promise<Refund> {
  const { refund } = await decide(ctx, caller, refundId, "reject", async (tx, locked) => {
    mustBeBeforeDeadline(ctx, locked.refund);
    const by = { actorId: caller.userId, source };
    const moved = await moveRefund(ctx, tx, locked, "reject", by, { decisionNote: reason });
    if (moved) await notifyOfRefund(ctx, tx, moved.refund, "rejected");
    return moved;
  });
  return toRefund(refund);
}

/** After the deadline the refund counts as approved, even before the job runs. */
function mustBeBeforeDeadline(ctx: Context, { status, decideBy }: RefundRow): void {
  if (status !== "pending" || !decideBy || ctx.now() < decideBy) return;
  throw new ApiError(
    "INVALID_STATE",
    `The deadline was ${decideBy.toISOString()}: the refund is being approved.`,
    {
      current: "overdue",
      allowed: ["pending"],
    },
  );
}

export async function cancelRequest(ctx: Context, caller: Member, refundId: string, source: RequestSource) {
  const { refund } = await decide(ctx, caller, refundId, "cancel", async (tx, locked) => {
    const moved = await moveRefund(ctx, tx, locked, "cancel", { actorId: caller.userId, source });
    if (moved) await notifyOfRefund(ctx, tx, moved.refund, "canceled");
    return moved;
  });
  return toRefund(refund);
}

/** Locks the order and the refund. */
async function decide(
  ctx: Context,
  caller: Member,
  refundId: string,
  name: RefundMoveName,
  move: (tx: Tx, locked: LockedRefund) => Promise<LockedRefund | null>,
): Promise<LockedRefund> {
  const { id } = await findVisibleRefund(ctx, caller, refundId);
  return ctx.db.transaction().execute(async (tx) => {
    const locked = required(await lockRefund(tx, id), "the refund");
    mustBeParty(locked.refund, caller, refundMoves[name].by);
    mustHaveStatus(locked.refund, name);
    const moved = await move(tx, locked);
    if (!moved) throw new ApiError("INVALID_STATE");
    await bindToRefund(ctx, tx, id);
    return moved;
  });
}

function mustBeParty(refund: RefundRow, caller: Member, side: "buyer" | "seller" | undefined): void {
  const isTheirs = side === "buyer" ? refund.buyerId === caller.userId : refund.sellerId === caller.userId;
  if (isTheirs || (side === "seller" && isAdmin(caller))) return;
  throw new ApiError("UNAUTHORIZED", `Only its ${side} may do this.`, { required: side });
}

function mustHaveStatus({ status }: RefundRow, name: RefundMoveName): void {
  const { from } = refundMoves[name];
  if (from.includes(status)) return;
  const message = `The refund is ${status}; this needs ${from.join(" or ")}.`;
  throw new ApiError("INVALID_STATE", message, { current: status, allowed: from });
}

/** Has no deadline. */
export async function refundOrder(
  ctx: Context,
  caller: SessionCaller,
  orderId: string,
  { amount, reason }: RefundOrder,
  source: RequestSource,
): Promise<Refund> {
  const id = toUuid("ord", orderId);
  const by = { actorId: caller.userId, source };
  const refundId = await ctx.db.transaction().execute(async (tx) => {
    const found = id ? await lockOrder(tx, id) : undefined;
    if (!found) throw new ApiError("ORDER_NOT_FOUND");
    const order = mustBeRefundableByAdmin(found);
    const amountMinor = amount === undefined ? remainingAmount(order) : parseAmount(ctx, order, amount);
    const newRefundId = await createAdminRefund(ctx, tx, order, { amountMinor, reason, details: null }, by);
    await bindToRefund(ctx, tx, newRefundId);
    return newRefundId;
  });
  await trySubmitRefund(ctx, refundId);
  return readRefundById(ctx, refundId);
}

/** An error would make the administrator repeat a partial refund; a job submits this one again. */
async function trySubmitRefund(ctx: Context, refundId: string): Promise<void> {
  try {
    await submitRefund(ctx, refundId);
  } catch (error) {
    ctx.log.error(
      { refund: refundId, err: error },
      "a refund could not be submitted; the next job run tries again",
    );
  }
}

function parseAmount(ctx: Context, order: PaidOrder, amount: number): bigint {
  const minor = toMinor(amount, order.currency);
  if (minor === null) throw invalidRequest("amount", `is not a valid amount in ${order.currency}`);
  const { stepMinor } = ctx.integrations.payments.limitsOf(order.currency);
  const why = findStepAmountProblem(stepMinor, minor, order.currency);
  if (why) throw invalidRequest("amount", why);
  const remaining = remainingAmount(order);
  if (minor <= remaining) return minor;
  throw ruleViolation("amount", `is more than the ${formatMoney(remaining, order.currency)} that remain`);
}

/** The order is locked and refundable; the caller submits the returned refund after the commit. */
export async function createAdminRefund(
  ctx: Context,
  tx: Tx,
  order: PaidOrder,
  { amountMinor, reason, details }: { amountMinor: bigint; reason: string; details: string | null },
  by: RefundActor,
): Promise<string> {
  const input = { origin: "admin" as const, amountMinor, reason, details, decideBy: null };
  if (amountMinor === 0n) throw alreadyRefundingError();
  const started = await createRefund(ctx, tx, order, input, by);
  await approveRefund(ctx, tx, started, by);
  return started.refund.id;
}

export interface RefundQuery extends Paging {
  role?: "buyer" | "seller" | undefined;
  status?: RefundStatus | undefined;
  orderId?: string | undefined;
  productId?: string | undefined;
}

const toFilter = ({ orderId, productId, ...query }: Omit<RefundQuery, "role">) => ({
  ...query,
  orderId: orderId === undefined ? undefined : toUuid("ord", orderId),
  productId: productId === undefined ? undefined : toUuid("prod", productId),
});

export async function listRefunds(ctx: Context, caller: Member, { role, ...query }: RefundQuery) {
  const page = await listRefundRows(ctx.db, {
    ...toFilter(query),
    buyerId: role === "seller" ? undefined : caller.userId,
    sellerId: role === "buyer" ? undefined : caller.userId,
  });
  return mapPage(page, toRefund);
}

export const listAllRefunds = async (ctx: Context, query: Omit<RefundQuery, "role">) =>
  mapPage(await listRefundRows(ctx.db, toFilter(query)), toAdminRefund);

export const readRefund = async (ctx: Context, caller: Member, refundId: string): Promise<Refund> =>
  toRefund(await findVisibleRefund(ctx, caller, refundId));

async function findVisibleRefund(ctx: Context, caller: Member, refundId: string): Promise<RefundRow> {
  const id = toUuid("refund", refundId);
  const refund = id ? await findRefundRow(ctx.db, id) : undefined;
  const isTheirs = refund?.buyerId === caller.userId || refund?.sellerId === caller.userId;
  if (!refund || !(isTheirs || isAdmin(caller))) throw new ApiError("REFUND_NOT_FOUND");
  return refund;
}

const readRefundById = async (ctx: Context, id: string): Promise<Refund> =>
  toRefund(required(await findRefundRow(ctx.db, id), "the refund"));

export function toRefund(refund: RefundRow): Refund {
  const time = (moment: Date | null) => moment?.toISOString() ?? null;
  return {
    id: toId("refund", refund.id),
    orderId: toId("ord", refund.orderId),
    product: { id: toId("prod", refund.productId), title: refund.productTitle },
    status: refund.status,
    amount: toDecimal(refund.amountMinor, refund.currency),
    currency: refund.currency,
    reason: refund.reason,
    reasonCode: refundReasons.find((code) => code === refund.reason) ?? "other",
    details: refund.details,
    requestedBy: refund.origin,
    decideBy: time(refund.decideBy),
    decidedBy: toDecider(refund),
    approvalReason: refund.approvalReason,
    runs: refund.runs && toRefundRuns(refund.runs),
    decisionNote: refund.decisionNote,
    failureCode: refund.failureCode,
    returnedAt: time(refund.returnedAt),
    settledAt: time(refund.settledAt),
    createdAt: refund.createdAt.toISOString(),
    decidedAt: time(refund.decidedAt),
    completedAt: time(refund.completedAt),
  };
}

function toDecider({ decidedAt, decidedBy, sellerId }: RefundRow): Refund["decidedBy"] {
  if (!decidedAt) return null;
  if (!decidedBy) return "rules";
  return decidedBy === sellerId ? "seller" : "admin";
}

const toAdminRefund = (refund: RefundRow): AdminRefund => ({
  ...toRefund(refund),
  buyer: { id: toUserId(refund.buyerId), name: refund.buyerName },
  seller: { id: toUserId(refund.sellerId), name: refund.sellerName },
});
