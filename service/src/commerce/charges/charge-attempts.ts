import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { failPoint } from "../../core/fail-points.ts";
import type { ChargeRequest, ChargeResult, SucceededCharge } from "../../integrations/payments/payments.ts";
import type { Queries } from "../../platform/db/database.ts";
import { ASKED_RECENTLY_MS, nullIfUnreachable } from "./provider-errors.ts";

/** After this time an unknown charge was never received by the provider. */
const CANCEL_UNKNOWN_AFTER_MS = 10 * 60_000;
const CANCEL_UNCONFIRMED_AFTER_MS = 24 * 3_600_000;
/** The same, where others want what the row holds: a redemption of a discount code that has few. */
const CANCEL_SCARCE_AFTER_MS = 30 * 60_000;

export const isConfirmationOverdue = (createdAt: Date, now: Date, holdsScarce = false): boolean =>
  now.getTime() - createdAt.getTime() > (holdsScarce ? CANCEL_SCARCE_AFTER_MS : CANCEL_UNCONFIRMED_AFTER_MS);

/** What the provider said of a charge that it knows. */
type KnownOutcome = Exclude<ChargeResult, { state: "unknown_method" }>;

/** It took what was asked for: no more, no less, in no other currency. */
export type Paid = Omit<SucceededCharge, "amountMinor" | "currency" | "isRefunded">;
export type Unpaid = Exclude<KnownOutcome, SucceededCharge>;
/** What a row is moved by. */
export type Settlement = Paid | Unpaid;

/** The columns for an unpaid charge. */
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

interface OpenCharge {
  id: string;
  createdAt: Date;
  askedAt: Date;
  /** It holds what others want, such as the last redemption of a discount code. */
  holdsScarce?: boolean;
}

/** Rows that are paid for by one charge each: what a room that takes money tells of its own. */
export interface ChargeTarget<Row extends { id: string }> {
  /** In log lines: "order". */
  noun: string;
  /** What the provider knows the row by. */
  providerReference(id: string): string;
  requestOf(row: Row): ChargeRequest;
  isOpen(row: Row): boolean;
  /** Whatever the provider says, the row stays as it is. */
  isFinal(row: Row): boolean;
  find(db: Queries, id: string): Promise<Row | undefined>;
  /** Open rows of which the provider was last asked before a moment, the oldest first. */
  listOpen(db: Queries, before: Date): Promise<OpenCharge[]>;
  /** Returns false when the row is no longer open, so that it must not be charged. */
  markAsked(db: Queries, id: string, now: Date): Promise<boolean>;
  /** The provider does not know the method: nothing happened, so nothing stays. */
  deleteOpen(db: Queries, id: string): Promise<unknown>;
  /**
   * Moves an open row to what the provider says, and all that hangs on it, in a transaction, and one that was given up to paid; a settled
   * one stays as it is.
   */
  settle(ctx: Context, id: string, settlement: Settlement): Promise<Row>;
  /** The provider does not know the charge, and its time is over. */
  abandon(ctx: Context, id: string): Promise<void>;
  /** Keeps what was taken in the place of what was asked for; false when it was kept before. */
  recordMismatch(db: Queries, id: string, note: Mismatch): Promise<boolean>;
  /** Rows that were given up, of which the provider is to be asked again: money may come late. */
  listPossiblyChargedLate(db: Queries, now: Date): Promise<{ id: string }[]>;
  /** Notes that the provider has answered of such a row. */
  markCheckedLate(db: Queries, id: string, now: Date): Promise<unknown>;
}

export interface Mismatch {
  paymentId: string;
  /** "1899 USD", in minor units; null: it was given back. */
  captured: string | null;
}

export interface ChargeAttempts<Row> {
  /** Asks under our row's id, so that asking twice charges once. No answer leaves the row open for the job. */
  charge(ctx: Context, row: Row): Promise<Row>;
  /** Reads the charge of an open row: the buyer may just have confirmed it. */
  refresh(ctx: Context, row: Row): Promise<Row>;
  /** The provider says that something changed: asks what. Its silence is a `PaymentUnknown`, so that it says so again. */
  syncFromProvider(ctx: Context, id: string): Promise<void>;
  /** Gives up a row that waits; it stays open when the provider cannot tell, and may turn out to be paid. */
  cancel(ctx: Context, row: Row): Promise<Row>;
  /**
   * Settles what is open for over a minute: the provider's word counts, silence for long enough ends it. What was given up is asked
   * about for some days more.
   */
  reconcile(ctx: Context): Promise<void>;
}

/** Brings a row and its charge to the same state, after any crash. */
export function createChargeAttempts<Row extends { id: string }>(
  rows: ChargeTarget<Row>,
): ChargeAttempts<Row> {
  const reload = async (ctx: Context, row: Row) => (await rows.find(ctx.db, row.id)) ?? row;

  const settleBy = async (ctx: Context, row: Row, ask: () => Promise<ChargeResult | null>) => {
    const outcome = await nullIfUnreachable(ctx, { [rows.noun]: row.id }, ask);
    return outcome && outcome.state !== "unknown_method" ? settle(ctx, row, outcome) : row;
  };

  const settle = (ctx: Context, row: Row, known: KnownOutcome): Promise<Row> =>
    known.state !== "succeeded" || (matchesRequest(rows.requestOf(row), known) && !known.isRefunded)
      ? rows.settle(ctx, row.id, known)
      : holdUp(ctx, row, known);

  /**
   * It took something else than was asked for: the row stays until somebody has seen to it and has given it back. What went back pays
   * for nothing, whatever it was.
   */
  async function holdUp(ctx: Context, row: Row, captured: SucceededCharge): Promise<Row> {
    const { paymentId, amountMinor, currency, isRefunded, method } = captured;
    const note = { paymentId, captured: isRefunded ? null : `${amountMinor} ${currency}` };
    const isNew = await rows.recordMismatch(ctx.db, row.id, note);
    if (isRefunded) return rows.settle(ctx, row.id, { state: "canceled", paymentId, method });
    if (isNew)
      ctx.log.error(
        { [rows.noun]: row.id, paymentId, amountMinor, currency },
        "the payment provider took something else than was asked for: compare both, and give it back there",
      );
    return reload(ctx, row);
  }

  async function settleById(ctx: Context, id: string, known: KnownOutcome): Promise<void> {
    const row = await rows.find(ctx.db, id);
    if (row) await settle(ctx, row, known);
  }

  async function reconcileOne(
    ctx: Context,
    { id, createdAt, askedAt, holdsScarce }: OpenCharge,
  ): Promise<void> {
    const { payments } = ctx.integrations;
    const sinceMs = (moment: Date) => ctx.now().getTime() - moment.getTime();
    try {
      const found = await payments.findCharge(rows.providerReference(id));
      // Counts from creation, so that repeated requests do not extend the hold on a discount code.
      const outdated =
        found?.state === "requires_action" && isConfirmationOverdue(createdAt, ctx.now(), holdsScarce);
      const outcome = outdated ? await payments.cancelCharge(rows.providerReference(id)) : found;
      if (outcome && outcome.state !== "unknown_method") await settleById(ctx, id, outcome);
      else if (sinceMs(askedAt) > CANCEL_UNKNOWN_AFTER_MS) await rows.abandon(ctx, id);
    } catch (error) {
      ctx.log.warn(
        { [rows.noun]: id, err: error },
        "an open payment could not be reconciled; the next round tries again",
      );
    }
  }

  /** Money may have come late, and the notice of it may be lost. What the buyer could still confirm is called off. */
  async function askAfter(ctx: Context, id: string): Promise<void> {
    const { payments } = ctx.integrations;
    try {
      const found = await payments.findCharge(rows.providerReference(id));
      const outcome =
        found?.state === "requires_action" ? await payments.cancelCharge(rows.providerReference(id)) : found;
      if (outcome && outcome.state !== "unknown_method") await settleById(ctx, id, outcome);
      await rows.markCheckedLate(ctx.db, id, ctx.now());
    } catch (error) {
      ctx.log.warn(
        { [rows.noun]: id, err: error },
        "what was given up could not be asked about; it is again",
      );
    }
  }

  return {
    async charge(ctx, row) {
      if (!(await rows.markAsked(ctx.db, row.id, ctx.now()))) return reload(ctx, row);
      failPoint(ctx, `${rows.noun}: about to be charged`);
      const outcome = await nullIfUnreachable(ctx, { [rows.noun]: row.id }, () =>
        ctx.integrations.payments.charge(rows.requestOf(row)),
      );
      failPoint(ctx, `${rows.noun}: charged, not settled`);
      if (outcome?.state === "unknown_method") {
        await rows.deleteOpen(ctx.db, row.id);
        await ctx.idempotencyKey?.unbind();
        throw new ApiError("PAYMENT_METHOD_NOT_FOUND");
      }
      // Without an answer, a notice may have come all the same.
      const settled = outcome ? await settle(ctx, row, outcome) : await reload(ctx, row);
      failPoint(ctx, `${rows.noun}: settled, not answered`);
      return settled;
    },
    refresh: async (ctx, row) =>
      rows.isOpen(row)
        ? settleBy(ctx, row, () => ctx.integrations.payments.findCharge(rows.providerReference(row.id)))
        : row,
    async syncFromProvider(ctx, id) {
      const row = await rows.find(ctx.db, id);
      if (!row || rows.isFinal(row)) return;
      const outcome = await ctx.integrations.payments.findCharge(rows.providerReference(id));
      if (outcome && outcome.state !== "unknown_method") await settle(ctx, row, outcome);
    },
    cancel: (ctx, row) =>
      settleBy(ctx, row, () => ctx.integrations.payments.cancelCharge(rows.providerReference(row.id))),
    async reconcile(ctx) {
      const before = new Date(ctx.now().getTime() - ASKED_RECENTLY_MS);
      for (const open of await rows.listOpen(ctx.db, before)) await reconcileOne(ctx, open);
      for (const { id } of await rows.listPossiblyChargedLate(ctx.db, ctx.now())) await askAfter(ctx, id);
    },
  };
}

const matchesRequest = (request: ChargeRequest, captured: SucceededCharge): boolean =>
  captured.amountMinor === request.amountMinor && captured.currency === request.currency;
