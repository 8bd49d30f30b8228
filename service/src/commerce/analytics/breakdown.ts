import type { RevenueGroup } from "@stoa/contract";
import { toId } from "../../core/ids.ts";
import { firstOf, required } from "../../core/required.ts";
import type { Tx } from "../../platform/db/database.ts";
import { type DateRange, rangeBounds } from "./date-range.ts";
import { listLabels, listReferralCodes, sumReferralsOfProduct } from "./queries.ts";
import { grainOfTotals, rankRange, type SumRow, type Sums, sumRange } from "./range-sums-queries.ts";
import { hasMoved, type SalesScope, ZERO_SUMS } from "./sales.ts";

const NAMES = ["sales", "gross", "refunds", "disputes", "net"] as const;
type Name = (typeof NAMES)[number];
type PartSums = Pick<Sums, Name>;

export interface Breakdown extends PartSums {
  key: string;
  label: string;
  currency: string;
}

interface BreakdownQuery extends SalesScope {
  currency: string;
  span: DateRange;
}

/** By currency. */
type PendingTotals = Promise<Map<string, Sums>>;

const MAX_ROWS = 1_000;

export const breakdownsBy: Record<
  RevenueGroup,
  (tx: Tx, query: BreakdownQuery, totals: PendingTotals) => Promise<Breakdown[]>
> = {
  product: (tx, query) => breakDownByProduct(tx, query),
  category: breakDownByCategory,
  referral: breakDownByReferral,
  currency: async (_tx, _query, totals) =>
    [...(await totals)].map(([currency, sums]) => ({ ...sums, key: currency, label: currency, currency })),
};

function toSumQuery({ sellerId, productId, currency, span }: BreakdownQuery) {
  const edges = rangeBounds(span);
  return { sellerId, ofId: productId, currency, edges, by: grainOfTotals(edges) };
}

function sumSales(tx: Tx, scope: "product" | "referrer", query: BreakdownQuery): Promise<SumRow<Name>[]> {
  const { currency, ...range } = toSumQuery(query);
  return sumRange(tx, { ...range, scope, currencies: [currency] }, NAMES);
}

/** Returns at most `limit` products that moved money, the highest revenue first. */
export async function breakDownByProduct(
  tx: Tx,
  query: BreakdownQuery,
  limit = MAX_ROWS,
): Promise<Breakdown[]> {
  // PostgreSQL ranks them: a seller may have sold tens of thousands.
  const rows = await rankRange(tx, { ...toSumQuery(query), scope: "product", limit }, NAMES);
  const labels = await listLabels(
    tx,
    rows.map(({ ofId }) => ofId),
  );
  return rows.map((row) => ({
    ...row,
    key: toId("prod", row.ofId),
    label: required(labels.get(row.ofId), "the label of a product").title,
    currency: query.currency,
  }));
}

const rankRows = <Row extends PartSums & { key: string }>(rows: Row[]): Row[] =>
  rows
    .filter(hasMoved)
    .toSorted(
      (a, b) => descending(a.gross, b.gross) || descending(a.sales, b.sales) || (a.key < b.key ? -1 : 1),
    );

const descending = (a: bigint, b: bigint) => (a === b ? 0 : a > b ? -1 : 1);

const topRows = (rows: Breakdown[]): Breakdown[] => rankRows(rows).slice(0, MAX_ROWS);

/** A sale counts to the present category of its product. */
async function breakDownByCategory(tx: Tx, query: BreakdownQuery): Promise<Breakdown[]> {
  const rows = await sumSales(tx, "product", query);
  const labels = await listLabels(
    tx,
    rows.map(({ ofId }) => ofId),
  );
  const groups = Map.groupBy(
    rows,
    ({ ofId }) => required(labels.get(ofId), "the label of a product").category ?? NO_CATEGORY,
  );
  const parts = [...groups].map(([key, of]) => ({
    ...addSums(of),
    key,
    label: required(labels.get(firstOf(of).ofId), "the label of a product").categoryName ?? NO_CATEGORY,
    currency: query.currency,
  }));
  return topRows(parts);
}
const NO_CATEGORY = "none";

async function breakDownByReferral(
  tx: Tx,
  query: BreakdownQuery,
  totals: PendingTotals,
): Promise<Breakdown[]> {
  const { currency } = query;
  const rows = await sumReferrals(tx, query);
  const codes = await listReferralCodes(
    tx,
    rows.map(({ ofId }) => ofId),
  );
  const referred = rows.map((row) => {
    const code = required(codes.get(row.ofId), "the code of a referral");
    return { ...row, key: code, label: code };
  });
  const direct = subtractSums((await totals).get(currency) ?? ZERO_SUMS, addSums(rows));
  return topRows([...referred, { ...direct, key: DIRECT, label: DIRECT, currency }]);
}
const DIRECT = "direct";

/** The stored sums of a referrer are of all products, so those of one product come from the ledger. */
function sumReferrals(
  tx: Tx,
  query: BreakdownQuery,
): Promise<(PartSums & { ofId: string; currency: string })[]> {
  const { sellerId, productId, currency, span } = query;
  if (productId === undefined) return sumSales(tx, "referrer", query);
  const [from, until] = rangeBounds(span);
  return sumReferralsOfProduct(tx, { sellerId, productId, currency, from, until }, NAMES);
}

const subtractSums = (whole: PartSums, part: PartSums) => mapSums((name) => whole[name] - part[name]);

const addSums = (rows: PartSums[]) => mapSums((name) => rows.reduce((sum, row) => sum + row[name], 0n));

const mapSums = (compute: (name: Name) => bigint) =>
  Object.fromEntries(NAMES.map((name) => [name, compute(name)])) as PartSums;
