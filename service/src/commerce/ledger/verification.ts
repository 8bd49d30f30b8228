import { toId } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import { runCancelable } from "../../platform/db/cancel-statement.ts";
import type { Database, Tx } from "../../platform/db/database.ts";
import {
  listMiscounts,
  listMisdatedReceipts,
  listReceiptGaps,
  listWrongEntitlements,
  listWrongOrders,
  listWrongParts,
  listWrongTaxes,
  type Miscount,
  type MisdatedReceipt,
  type ReceiptGap,
  type WrongEntitlement,
  type WrongOrder,
} from "./order-verification-queries.ts";
import { listWrongSales } from "./sale-verification-queries.ts";
import { saleSums } from "./sales-sums.ts";
import {
  listMisdatedTransactions,
  listWrongDays,
  listWrongHours,
  listWrongMonths,
  listWrongSums,
  listWrongYears,
  type MisdatedTransaction,
  type WrongSum,
} from "./sums-verification-queries.ts";
import {
  countLedgerRows,
  type Difference,
  type Found,
  fallbackIfOutOfRange,
  listStrayEntries,
  listUnbalanced,
  listUnfoundedDisputes,
  listWrongDebits,
  listWrongDisputes,
  listWrongPayments,
  listWrongPayouts,
  listWrongPlanDisputes,
  listWrongRefunds,
  listWrongShares,
  raiseTransactionLimits,
  type StrayEntry,
  type Unbalanced,
  type UnfoundedDispute,
} from "./verification-queries.ts";

export interface VerificationResult {
  ok: boolean;
  transactions: number;
  entries: number;
  /** Sentences with the ids of the affected rows. */
  problems: string[];
}

type Check = (tx: Tx) => Promise<string[]>;

/** Called after each check; what it throws ends the verification. */
export type OnChecked = (done: number, total: number) => void;

function check<Row>(find: (tx: Tx) => Promise<Found<Row>[]>, describe: (row: Row) => string): Check {
  return async (tx) => {
    const found = await find(tx);
    const unlisted = (found[0]?.total ?? 0) - found.length;
    return [
      ...found.map(describe),
      ...(unlisted > 0 ? [`There are ${unlisted} more like the last one.`] : []),
    ];
  };
}

const checks: Check[] = [
  check(listUnbalanced, describeUnbalanced),
  check(listWrongSales, describeDifference),
  check(listWrongRefunds, describeDifference),
  check(listWrongDisputes, describeDifference),
  check(listWrongShares, describeDifference),
  check(listWrongDebits, describeDifference),
  check(listWrongPayments, describeDifference),
  check(listWrongPlanDisputes, describeDifference),
  check(listWrongPayouts, describeDifference),
  check(listUnfoundedDisputes, describeUnfounded),
  check(listStrayEntries, describeStray),
  check(listWrongOrders, describeWrongOrder),
  check(
    listWrongParts,
    ({ orderId, part, currency, due, found }) =>
      `Order ${toId("ord", orderId)} has a ${part} of ${found}, where ${due} is due by its rates, in minor units of ${currency}.`,
  ),
  check(
    listWrongTaxes,
    ({ paymentId, currency, due, found }) =>
      `The payment ${toId("pay", paymentId)} of a plan has a tax of ${found}, where ${due} is due by its rate, in minor units of ${currency}.`,
  ),
  check(listWrongEntitlements, describeWrongEntitlement),
  check(listMiscounts, describeMiscount),
  check(listReceiptGaps, describeReceiptGap),
  check(listMisdatedReceipts, describeMisdatedReceipt),
  check(listMisdatedTransactions, describeMisdated),
  check(listWrongSums, describeWrongSum),
  check(listWrongHours, describeWrongSum),
  check(listWrongDays, describeWrongSum),
  check(listWrongMonths, describeWrongSum),
  check(listWrongYears, describeWrongSum),
];

/**
 * Compares the ledger with the rows of orders, refunds, disputes, payouts, plan payments, receipts, counters and sums. One snapshot
 * contains each concurrent sale completely or not at all. A check of a large ledger takes minutes: `signal` cancels its statement.
 */
export const verifyLedger = (
  db: Database,
  onChecked?: OnChecked,
  signal?: AbortSignal,
): Promise<VerificationResult> =>
  db
    .transaction()
    .setIsolationLevel("repeatable read")
    .setAccessMode("read only")
    .execute((tx) => {
      const verify = () => verifyLedgerIn(tx, onChecked);
      return signal ? runCancelable(db, tx, signal, verify) : verify();
    });

export async function verifyLedgerIn(tx: Tx, onChecked?: OnChecked): Promise<VerificationResult> {
  await raiseTransactionLimits(tx);
  const problems = await findProblems(tx, onChecked);
  return { ok: problems.length === 0, ...(await countLedgerRows(tx)), problems };
}

/**
 * Runs one check after the other, so that a large ledger occupies one connection. If an amount overflows one check, the other checks
 * identify it.
 */
export async function findProblems(tx: Tx, onChecked?: OnChecked): Promise<string[]> {
  const problems: string[] = [];
  for (const [at, runCheck] of checks.entries()) {
    problems.push(...(await fallbackIfOutOfRange(tx, () => runCheck(tx), [AMOUNT_TOO_LARGE])));
    onChecked?.(at + 1, checks.length);
  }
  return problems;
}
const AMOUNT_TOO_LARGE = "A check failed because a sum of amounts is out of range.";

function describeUnbalanced(wrong: Unbalanced): string {
  const { transactionId, kind, entries, entryCount, currencies, repeating } = wrong;
  if (kind === null) return `Ledger transaction ${transactionId} does not exist, but has ${entries} entries.`;
  const faults = [
    ...(entries === entryCount ? [] : [`has ${entries} of its ${entryCount} entries`]),
    ...(currencies ? [`does not sum to zero in ${currencies.toSorted().join(" and ")}`] : []),
    ...(repeating ? [`names an account twice in ${repeating.toSorted().join(" and ")}`] : []),
  ];
  return `Ledger transaction ${transactionId} (${kind}) ${faults.join(" and ")}.`;
}

const subjects: Record<string, (sourceId: string) => string> = {
  sale: (id) => `The sale of order ${toId("ord", id)} books`,
  refund: (id) => `Refund ${toId("refund", id)} books`,
  refund_returned: (id) => `The return of refund ${toId("refund", id)} books`,
  refund_settled: (id) => `The settlement of refund ${toId("refund", id)} books`,
  subscription_dispute_lost: (id) => `Dispute ${id} of a payment for a plan, when lost, books`,
  plan_taken_back: (id) => `The disputes of the payment ${toId("pay", id)} of a plan book`,
  taken_back: (id) => `The refunds and disputes of order ${toId("ord", id)} book`,
  held: (id) => `The disputes of order ${toId("ord", id)} book`,
  dispute_opened: (id) => `Dispute ${id}, when opened, books`,
  dispute_won: (id) => `Dispute ${id}, when won, books`,
  dispute_lost: (id) => `Dispute ${id}, when lost, books`,
  subscription: (id) => `The payment ${toId("pay", id)} of a plan books`,
  payout: (id) => `Payout ${toId("payout", id)} books`,
  payout_completed: (id) => `The completion of payout ${toId("payout", id)} books`,
  payout_failed: (id) => `The failure of payout ${toId("payout", id)} books`,
  payout_returned: (id) => `The return of payout ${toId("payout", id)} books`,
};

function describeDifference({ kind, sourceId, account, ownerId, currency, due, booked }: Difference): string {
  const owner = ownerId ? ` of ${toId("usr", ownerId)}` : "";
  return `${required(subjects[kind], `the subject of ${kind}`)(sourceId)} ${booked} on ${account}${owner}, where ${due} is due, in minor units of ${currency}.`;
}

function describeUnfounded({ transactionId, kind, sourceId, status }: UnfoundedDispute): string {
  return `Ledger transaction ${transactionId} (${kind}) belongs to dispute ${sourceId}, which ${status ? `is ${status}` : "does not exist"}.`;
}

function describeStray(stray: StrayEntry): string {
  const entry = `Entry ${stray.position} of ledger transaction ${stray.transactionId} (${stray.kind})`;
  if (stray.orderId === stray.rightOrderId)
    return `${entry} belongs to ${describeOrder(stray.orderId)} and matures at ${describeTime(stray.maturesAt)}, where ${describeTime(stray.rightMaturesAt)} is due.`;
  return `${entry} names ${describeOrder(stray.orderId)}, but belongs to ${describeOrder(stray.rightOrderId)}.`;
}

function describeWrongOrder(wrong: WrongOrder): string {
  const faults = [
    ...(wrong.refunded === wrong.rightRefunded
      ? []
      : [
          `has ${wrong.refunded} minor units refunded, where its refunds and disputes sum to ${wrong.rightRefunded}`,
        ]),
    ...(wrong.refunding === wrong.rightRefunding
      ? []
      : [
          `has ${wrong.refunding} minor units reserved for refunds, where its refunds in progress sum to ${wrong.rightRefunding}`,
        ]),
    ...(wrong.status === wrong.rightStatus ? [] : [`is ${wrong.status} and should be ${wrong.rightStatus}`]),
    ...(wrong.otherCurrency ? ["was refunded in another currency"] : []),
  ];
  return `Order ${toId("ord", wrong.orderId)} ${faults.join(", and ")}.`;
}

function describeWrongEntitlement({ orderId, status, rightStatus, isOthers }: WrongEntitlement): string {
  const describe = (value: string | null) => (value ? `the entitlement ${value}` : "no entitlement");
  const faults = [
    ...(status === rightStatus ? [] : [`has ${describe(status)}, where ${describe(rightStatus)} is due`]),
    ...(isOthers ? ["has an entitlement for another buyer, product or major version"] : []),
  ];
  return `Order ${toId("ord", orderId)} ${faults.join(", and ")}.`;
}

function describeMiscount({ counter, id, counted, found }: Miscount): string {
  if (counter === "product")
    return `Product ${toId("prod", id)} counts ${counted} purchases, and ${found} buyers have it.`;
  return `Discount code ${toId("disc", id)} counts ${counted} redemptions, and ${found} orders have it.`;
}

function describeReceiptGap({ sellerId, year, receipts, lowest, highest, last }: ReceiptGap): string {
  const numbered = receipts === 0 ? "no receipts" : `${receipts} receipts numbered ${lowest} to ${highest}`;
  const subject = sellerId ? `Seller ${toId("usr", sellerId)} has` : "Plans have";
  return `${subject} ${numbered} in ${year}, and ${last ?? 0} numbers were assigned.`;
}

function describeMisdatedReceipt({ kind, sourceId, year, completedAt }: MisdatedReceipt): string {
  const subject =
    kind === "order" ? `Order ${toId("ord", sourceId)}` : `The payment ${toId("pay", sourceId)} of a plan`;
  return `${subject} has a receipt of ${year}, and was completed at ${describeTime(completedAt)}.`;
}

function describeMisdated({ kind, transactionId, occurredAt, rightAt }: MisdatedTransaction): string {
  return `Ledger transaction ${transactionId} (${kind}) is dated ${describeTime(occurredAt)}, where its source is dated ${describeTime(rightAt)}.`;
}

const grainLabels = {
  quarter: "in the quarter of an hour",
  hour: "in the hour",
  day: "on the day",
  month: "in the month",
  year: "in the year",
};

function describeWrongSum({
  sellerId,
  scope,
  ofId,
  grain,
  startsAt,
  currency,
  found,
  lacks,
}: WrongSum): string {
  const part = { all: "", product: `, of ${toId("prod", ofId)}`, referrer: `, by ${toId("usr", ofId)}` }[
    scope
  ];
  const due = (name: keyof typeof found, lacking: string) => BigInt(found[name]) + BigInt(lacking);
  const faults = [
    ...saleSums
      .filter((name) => lacks[name] !== "0")
      .map((name) => `${name} of ${found[name]} and not ${due(name, lacks[name])}`),
    ...(lacks.received === "0"
      ? []
      : [`gross of ${found.gross} and not the ${due("gross", lacks.received)} of receipts`]),
  ];
  return `Analytics of ${toId("usr", sellerId)}${part} have ${grainLabels[grain]} from ${describeTime(startsAt)} ${faults.join(", ")}, in minor units of ${currency}.`;
}

const describeOrder = (id: string | null) => (id ? toId("ord", id) : "no order");
const describeTime = (time: Date | null) => time?.toISOString() ?? "no time";
