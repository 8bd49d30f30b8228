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
  listItemRows,
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
const BATCH_SIZE = 1_000;

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
  for (let page = 1; ; page++) {
    const { items } = await listItemRows(ctx.db, payout, { page, limit: BATCH_SIZE });
    for (const row of items) {
      balance += row.amountMinor;
      const item = toItem(row, currency);
      const title = item.product && toVisibleLine(item.product.title);
      yield [
        ...[item.kind, item.share, item.orderId, title, item.occurredAt, item.at],
        ...[item.amount, currency, amount(balance)],
      ];
    }
    if (items.length < BATCH_SIZE) break;
  }
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
    lines: items.map((item) => ({
      title: item.productTitle === null ? KIND_NAMES[item.kind] : toVisibleLine(item.productTitle),
      detail: describeItem(item),
      amount: amount(item.amountMinor),
    })),
    sums: [
      { label: "Opening balance", amount: amount(openingMinor) },
      { label: "Added", amount: amount(addedMinor) },
      { label: "Paid out", amount: amount(-amountMinor), isMain: true },
      { label: "Closing balance", amount: amount(openingMinor + addedMinor - amountMinor) },
    ],
  };
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
