import { Readable } from "node:stream";
import { toVisibleLine } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { toLongDate } from "../../core/dates.ts";
import { toId } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { FileResponse } from "../../platform/http/route.ts";
import { type Cell, csvLines } from "../analytics/csv.ts";
import { formatAmount, ISSUER_NAME, type ReceiptText, textPdf } from "../receipts/receipt.ts";
import {
  type ItemSumRow,
  listItemsAfter,
  type StatementRow,
  type StatementSums,
  sumItemsByProduct,
  sumStatement,
} from "./payout-item-queries.ts";
import { toItem } from "./payout-items.ts";
import { requirePayout } from "./payouts.ts";
import type { PayoutRow } from "./queries.ts";

export async function readStatement(
  ctx: Context,
  caller: Member,
  payoutId: string,
  format: "pdf" | "csv",
): Promise<FileResponse> {
  const payout = await requirePayout(ctx, caller, payoutId);
  const sums = await sumStatement(ctx.db, payout);
  const name = `payout-${payout.periodEnd}-${toId("payout", payout.id).slice(-6)}`;
  if (format === "csv")
    return new FileResponse({
      name: `${name}.csv`,
      type: "text/csv; charset=utf-8",
      bytes: Readable.from(csvLines(COLUMNS, statementRows(ctx, payout, sums)), { objectMode: false }),
    });
  const pdf = await textPdf(statementText(ctx, payout, sums, await sumItemsByProduct(ctx.db, payout)));
  return new FileResponse({ name: `${name}.pdf`, type: "application/pdf", bytes: Readable.from([pdf]) });
}

const COLUMNS = [
  "entry",
  "share",
  "order",
  "product",
  "booked",
  "available",
  "amount",
  "currency",
  "balance",
];
const BATCH_SIZE = 20_000;
/** Drawing a line takes about as long as reading a hundred; the CSV has every entry. */
const MAX_PDF_LINES = 500;

/** Reads a batch at a time, so that a slow reader occupies no database connection. The last column is the balance after the line. */
async function* statementRows(
  ctx: Context,
  payout: PayoutRow,
  { openingMinor }: StatementSums,
): AsyncGenerator<Cell[]> {
  const { currency } = payout;
  const amount = (minor: bigint) => toDecimal(minor, currency);
  const summary = (entry: string, minor: bigint | null, balance: bigint): Cell[] => [
    ...[entry, "", "", "", "", ""],
    minor === null ? null : amount(minor),
    currency,
    amount(balance),
  ];
  let balance = openingMinor;
  yield summary("opening_balance", null, balance);
  let rows: StatementRow[] = [];
  do {
    rows = await listItemsAfter(ctx.db, payout, rows.at(-1)?.place ?? null, BATCH_SIZE);
    for (const row of rows) {
      balance += row.amountMinor;
      const item = toItem(row, currency);
      const title = item.product && toVisibleLine(item.product.title);
      yield [
        ...[item.kind, item.share, item.orderId, title, item.occurredAt, item.at],
        ...[item.amount, currency, amount(balance)],
      ];
    }
  } while (rows.length === BATCH_SIZE);
  balance -= payout.amountMinor;
  yield summary("payout", -payout.amountMinor, balance);
  yield summary("closing_balance", null, balance);
}

function statementText(
  ctx: Context,
  payout: PayoutRow,
  { openingMinor, addedMinor }: StatementSums,
  items: ItemSumRow[],
): ReceiptText {
  const { currency, amountMinor } = payout;
  const amount = (minor: bigint) => formatAmount(minor, currency);
  const id = toId("payout", payout.id);
  return {
    title: `Payout statement ${id}`,
    heading: "Payout statement",
    lineLabel: "Entry",
    issuedAt: payout.createdAt,
    service: { name: ISSUER_NAME, origin: ctx.links.origin() },
    facts: [
      { label: "Payout", value: id },
      { label: "Created", value: toLongDate(payout.createdAt) },
      { label: "Period", value: `${toDay(payout.periodStart)} to ${toDay(payout.periodEnd)}` },
      { label: "Status", value: STATUS_NAMES[payout.status] },
    ],
    parties: [
      { role: "Paid to", name: toVisibleLine(payout.sellerName) },
      { role: "Account", name: payout.destination },
    ],
    lines: statementLines(items, amount),
    sums: [
      { label: "Opening balance", amount: amount(openingMinor) },
      { label: "Added", amount: amount(addedMinor) },
      { label: "Paid out", amount: amount(-amountMinor), isMain: true },
      { label: "Closing balance", amount: amount(openingMinor + addedMinor - amountMinor) },
    ],
  };
}

function statementLines(items: ItemSumRow[], amount: (minor: bigint) => string): ReceiptText["lines"] {
  const [shown, others] = [items.slice(0, MAX_PDF_LINES), items.slice(MAX_PDF_LINES)];
  const lines = shown.map((item) => ({
    title: item.productTitle === null ? KIND_NAMES[item.kind] : toVisibleLine(item.productTitle),
    detail: describeItem(item),
    amount: amount(item.amountMinor),
  }));
  if (others.length === 0) return lines;
  const sum = others.reduce((total, { amountMinor }) => total + amountMinor, 0n);
  const detail = "The statement as CSV has every entry";
  return [...lines, { title: `${others.length} other lines`, detail, amount: amount(sum) }];
}

const toDay = (day: string) => toLongDate(new Date(day));

const describeItem = ({ kind, account, entries, productTitle }: ItemSumRow): string =>
  [
    ...(productTitle === null ? [] : [KIND_NAMES[kind]]),
    ...(account === "referrer" ? ["commission"] : []),
    `${entries} ${entries === 1 ? "entry" : "entries"}`,
  ].join(" · ");

const STATUS_NAMES: Record<PayoutRow["status"], string> = {
  pending: "Pending",
  in_transit: "On its way",
  completed: "Paid",
  failed: "Failed",
  returned: "Returned by the bank",
};

const KIND_NAMES: Record<ItemSumRow["kind"], string> = {
  sale: "Sales",
  refund: "Refunds",
  dispute_opened: "Disputes opened",
  dispute_won: "Disputes won",
  dispute_lost: "Disputes lost",
  payout_failed: "Payout that failed",
  payout_returned: "Payout that the bank returned",
};
