import { toId } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
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
  listWrongMonths,
  listWrongSums,
  type MisdatedTransaction,
  type WrongSum,
} from "./sums-verification-queries.ts";
import {
  countLedgerRows,
  type Difference,
  type Found,
  fallbackIfOutOfRange,
  liftTimeouts,
  listStrayEntries,
  listUnbalanced,
  listUnfoundedDisputes,
  listWrongDisputes,
  listWrongPayments,
  listWrongPayouts,
  listWrongPlanDisputes,
  listWrongRefunds,
  listWrongShares,
  listWrongTakings,
  type StrayEntry,
  type Unbalanced,
  type UnfoundedDispute,
} from "./verification-queries.ts";

export interface VerificationResult {
  ok: boolean;
  transactions: number;
  entries: number;
  /** A sentence each, with the ids that it is about. */
  problems: string[];
}

/** Finds what is wrong of one kind, and says it. */
type Check = (tx: Tx) => Promise<string[]>;

function check<Row>(find: (tx: Tx) => Promise<Found<Row>[]>, say: (row: Row) => string): Check {
  return async (tx) => {
    const found = await find(tx);
    const untold = (found[0]?.total ?? 0) - found.length;
    return [...found.map(say), ...(untold > 0 ? [`There are ${untold} more like the last one.`] : [])];
  };
}

const checks: Check[] = [
  check(listUnbalanced, describeUnbalanced),
  check(listWrongSales, describeDifference),
  check(listWrongRefunds, describeDifference),
  check(listWrongDisputes, describeDifference),
  check(listWrongShares, describeDifference),
  check(listWrongTakings, describeDifference),
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
  check(listWrongDays, describeWrongSum),
  check(listWrongMonths, describeWrongSum),
];

/**
 * Holds the ledger against itself and against every row that money moved for: orders, refunds, disputes, payouts, payments of plans,
 * receipts; and orders against what follows from them: use, counters, the sums of analytics. All of it in one snapshot, in which
 * sales that go on meanwhile are there whole or not at all.
 */
export const verifyLedger = (db: Database): Promise<VerificationResult> =>
  db.transaction().setIsolationLevel("repeatable read").setAccessMode("read only").execute(verifyLedgerIn);

/** In the caller's transaction. */
export async function verifyLedgerIn(tx: Tx): Promise<VerificationResult> {
  await liftTimeouts(tx);
  const problems = await findProblems(tx);
  return { ok: problems.length === 0, ...(await countLedgerRows(tx)), problems };
}

/**
 * One proof after the other, so that a large ledger takes one backend and no more. Where an amount is so wrong that one of them cannot
 * reckon with it, the others tell which it is.
 */
export async function findProblems(tx: Tx): Promise<string[]> {
  const problems: string[] = [];
  for (const prove of checks)
    problems.push(...(await fallbackIfOutOfRange(tx, () => prove(tx), [AMOUNT_TOO_LARGE])));
  return problems;
}
const AMOUNT_TOO_LARGE =
  "One of the proofs could not be made, because an amount is too large to be added up.";

function describeUnbalanced(wrong: Unbalanced): string {
  const { transactionId, kind, entries, entryCount, currencies, repeating } = wrong;
  if (kind === null) return `Ledger transaction ${transactionId} is not there, and has ${entries} entries.`;
  const faults = [
    ...(entries === entryCount ? [] : [`has ${entries} of its ${entryCount} entries`]),
    ...(currencies ? [`does not sum to zero in ${currencies.toSorted().join(" and ")}`] : []),
    ...(repeating ? [`names an account twice in ${repeating.toSorted().join(" and ")}`] : []),
  ];
  return `Ledger transaction ${transactionId} (${kind}) ${faults.join(" and ")}.`;
}

/** What a kind of booking is about, as the sentence begins. */
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
  const whose = ownerId ? ` of ${toId("usr", ownerId)}` : "";
  return `${required(subjects[kind], `the subject of ${kind}`)(sourceId)} ${booked} on ${account}${whose}, where ${due} is due, in minor units of ${currency}.`;
}

function describeUnfounded({ transactionId, kind, sourceId, status }: UnfoundedDispute): string {
  return `Ledger transaction ${transactionId} (${kind}) is about dispute ${sourceId}, which is ${status ?? "not there"}.`;
}

function describeStray(stray: StrayEntry): string {
  const entry = `Entry ${stray.position} of ledger transaction ${stray.transactionId} (${stray.kind})`;
  if (stray.orderId === stray.rightOrderId)
    return `${entry} is about ${describeOrder(stray.orderId)} and matures at ${describeTime(stray.maturesAt)}, where ${describeTime(stray.rightMaturesAt)} is due.`;
  return `${entry} names ${describeOrder(stray.orderId)}, and is about ${describeOrder(stray.rightOrderId)}.`;
}

function describeWrongOrder(wrong: WrongOrder): string {
  const faults = [
    ...(wrong.refunded === wrong.rightRefunded
      ? []
      : [
          `says that ${wrong.refunded} minor units are given back, its refunds and disputes ${wrong.rightRefunded}`,
        ]),
    ...(wrong.refunding === wrong.rightRefunding
      ? []
      : [
          `says that ${wrong.refunding} minor units are on their way back, its refunds ${wrong.rightRefunding}`,
        ]),
    ...(wrong.status === wrong.rightStatus ? [] : [`is ${wrong.status} and should be ${wrong.rightStatus}`]),
    ...(wrong.otherCurrency ? ["was refunded in another currency"] : []),
  ];
  return `Order ${toId("ord", wrong.orderId)} ${faults.join(", and ")}.`;
}

function describeWrongEntitlement({ orderId, status, rightStatus, isOthers }: WrongEntitlement): string {
  const use = (of: string | null) => (of ? `${of} use` : "no use");
  const faults = [
    ...(status === rightStatus ? [] : [`gives ${use(status)}, where ${use(rightStatus)} is due`]),
    ...(isOthers ? ["has an entitlement for another buyer, product or major version"] : []),
  ];
  return `Order ${toId("ord", orderId)} ${faults.join(", and ")}.`;
}

function describeMiscount({ counter, id, counted, found }: Miscount): string {
  if (counter === "product")
    return `Product ${toId("prod", id)} counts ${counted} purchases, and ${found} buyers have it.`;
  return `Discount code ${toId("disc", id)} counts ${counted} redemptions, and ${found} orders hold it.`;
}

function describeReceiptGap({ sellerId, year, receipts, lowest, highest, last }: ReceiptGap): string {
  const numbered = receipts === 0 ? "no receipts" : `${receipts} receipts numbered ${lowest} to ${highest}`;
  const whose = sellerId ? `Seller ${toId("usr", sellerId)} has` : "Plans have";
  return `${whose} ${numbered} in ${year}, and ${last ?? 0} numbers were given out.`;
}

function describeMisdatedReceipt({ kind, sourceId, year, completedAt }: MisdatedReceipt): string {
  const what =
    kind === "order" ? `Order ${toId("ord", sourceId)}` : `The payment ${toId("pay", sourceId)} of a plan`;
  return `${what} has a receipt of ${year}, and was completed at ${describeTime(completedAt)}.`;
}

function describeMisdated({ kind, transactionId, occurredAt, rightAt }: MisdatedTransaction): string {
  return `Ledger transaction ${transactionId} (${kind}) is of ${describeTime(occurredAt)}, and what it is about of ${describeTime(rightAt)}.`;
}

const grainLabels = { quarter: "in the quarter of an hour", day: "on the day", month: "in the month" };

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
