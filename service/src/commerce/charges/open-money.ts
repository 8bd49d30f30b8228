import { DAY_MS, HOUR_MS } from "../../core/dates.ts";
import { type IdPrefix, toId } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";
import { countOpen } from "./open-money-queries.ts";

export interface OpenMoney {
  kind: Kind;
  state: string;
  count: number;
  oldest: { id: string; since: Date } | null;
  /** The nearest deadline for an answer; null: none is known. */
  dueAt: Date | null;
}

type Kind = "order" | "plan payment" | "refund" | "payout" | "dispute" | "plan dispute" | "balance";

/** Alerts the operator about rows older than `ms`. */
interface AlertRule {
  ms: number;
  remedy: string;
}

/** The job asks the provider every minute. */
const pendingAtProvider: AlertRule = {
  ms: HOUR_MS,
  remedy: "does a worker run, and does the payment provider answer?",
};
/** Buyers have a day to confirm; the job cancels the charge in the hour after that. */
const awaitingConfirmation: AlertRule = { ...pendingAtProvider, ms: 25 * HOUR_MS };

/** Only the operator can resolve it. */
const mismatched: AlertRule = {
  ms: 0,
  remedy:
    "the payment provider captured another amount than requested: refund all of it there, and it is canceled here",
};

const unusable: AlertRule = {
  ms: 0,
  remedy: "the payment came too late to buy its plan: refund it at the payment provider",
};

const openDispute: AlertRule = {
  ms: 0,
  remedy: "answer it at the payment provider before the bank's date",
};

const openInquiry: AlertRule = {
  ms: 0,
  remedy:
    "the buyer's bank inquires about it: refund it, or answer at the payment provider before the bank's date",
};

const unapplied: AlertRule = {
  ms: 0,
  remedy:
    "the payment provider has a dispute of a payment that is not posted here: run stoa-server payments reconcile and compare both",
};

/** -1: alerts from the first moment, for 30 days. */
const lostInExcess: AlertRule = {
  ms: -1,
  remedy:
    "the bank took an amount that was refunded before: the marketplace bears it, unless the buyer returns it",
};

const lostPlan: AlertRule = {
  ms: -1,
  remedy: "the marketplace bears it, and the plan has ended or ends with its period",
};

const owedByClosedAccount: AlertRule = {
  ms: 0,
  remedy: "the account is closed, and a refund or dispute took more than its balance: collect it, or bear it",
};

const alertRules: Record<Kind, Record<string, AlertRule>> = {
  order: { pending: pendingAtProvider, requires_action: awaitingConfirmation, mismatched },
  "plan payment": { pending: pendingAtProvider, requires_action: awaitingConfirmation, mismatched, unusable },
  refund: {
    // Sellers have 7 days; then the job approves it.
    pending: {
      ms: 8 * DAY_MS,
      remedy: "does a worker run? It approves refunds that no seller decided in 7 days",
    },
    approved: pendingAtProvider,
    // Cards are refunded at once; some banks need a night.
    processing: {
      ms: DAY_MS,
      remedy: "does the payment provider answer? If so, its dashboard shows why the bank waits",
    },
    returned: {
      ms: 0,
      remedy: "the bank returned it: pay the buyer in another way, then run stoa-server refunds settle",
    },
  },
  payout: {
    pending: pendingAtProvider,
    waits_for_balance: {
      ms: HOUR_MS,
      remedy:
        "add to the marketplace's balance at the payment provider, or wait until sales have settled there",
    },
    // Banks need several working days.
    in_transit: { ms: 7 * DAY_MS, remedy: "ask the payment provider where it is; the job keeps checking" },
    reversed: {
      ms: 0,
      remedy: "the payment provider reversed a part of it: reverse the rest there, and it is paid out again",
    },
  },
  // Alerts at once, because the bank sets a deadline.
  dispute: { inquiry: openInquiry, open: openDispute, unapplied, lost_in_excess: lostInExcess },
  "plan dispute": { inquiry: openInquiry, open: openDispute, unapplied, lost: lostPlan },
  balance: { owed_by_closed_account: owedByClosedAccount },
};

/** Includes kinds and states without a row. */
export async function listOpenMoney(db: Queries, now: Date): Promise<OpenMoney[]> {
  const found = await countOpen(db, now);
  return (Object.keys(alertRules) as Kind[]).flatMap((kind) =>
    Object.keys(alertRules[kind]).map((state) => {
      const row = found.find((one) => one.kind === kind && one.state === state);
      const oldest = row ? { id: toId(prefixes[kind], row.oldestId), since: row.oldestAt } : null;
      return { kind, state, count: row?.count ?? 0, oldest, dueAt: row?.dueAt ?? null };
    }),
  );
}

/** A dispute is identified by its order or payment. */
const prefixes: Record<Kind, IdPrefix> = {
  order: "ord",
  "plan payment": "pay",
  refund: "refund",
  payout: "payout",
  dispute: "ord",
  "plan dispute": "pay",
  balance: "usr",
};

export const isOverdue = ({ kind, state, oldest }: OpenMoney, now: Date): boolean =>
  oldest !== null &&
  now.getTime() - oldest.since.getTime() > required(alertRules[kind][state], `the alert rule of ${kind}`).ms;

export function remedyOf({ kind, state, dueAt }: OpenMoney): string {
  const { remedy } = required(alertRules[kind][state], `the alert rule of ${kind}`);
  return dueAt ? `${remedy}, ${dueAt.toISOString()}` : remedy;
}
