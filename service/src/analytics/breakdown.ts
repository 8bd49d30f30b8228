import type { RevenueGroup } from "@stoa/contract";
import type { Tx } from "../db/database.ts";
import { toId } from "../ids.ts";
import { saleSums } from "../ledger/sold.ts";
import { listLabels, listReferralCodes, type SumRow, type Sums, sumSpan } from "./queries.ts";
import { endsOf, ranked, type Subject, sumOf } from "./sales.ts";
import type { Span } from "./span.ts";

/** Of what is broken down, a part, with its amounts in a currency. */
export interface Breakdown extends Sums {
  key: string;
  label: string;
  currency: string;
}

interface Question extends Subject {
  currency: string;
  span: Span;
}

/** Of the whole, by currency. */
type Totals = Map<string, Sums>;

const MOST = 1_000;

/** The parts by what is asked for. In the order of revenue, of which those by currency have none that could be compared. */
export const breakdownsBy: Record<
  RevenueGroup,
  (tx: Tx, question: Question, totals: Totals) => Promise<Breakdown[]>
> = {
  product: (tx, question) => byProduct(tx, question),
  category: byCategory,
  referral: byReferral,
  currency: async (_tx, _question, totals) =>
    [...totals].map(([currency, sums]) => ({ ...sums, key: currency, label: currency, currency })),
};

const soldBy = (
  tx: Tx,
  scope: "product" | "referrer",
  { sellerId, productId, currency, span }: Question,
): Promise<SumRow[]> =>
  sumSpan(tx, { sellerId, scope, ofId: productId, currencies: [currency], edges: endsOf(span), by: "month" });

/** Products that sold, or of which something was given back; so many at most. */
export async function byProduct(tx: Tx, question: Question, limit = MOST): Promise<Breakdown[]> {
  const sold = await soldBy(tx, "product", question);
  const rows = ranked(sold.map((row) => ({ ...row, key: toId("prod", row.ofId) }))).slice(0, limit);
  const labels = await listLabels(
    tx,
    rows.map(({ ofId }) => ofId),
  );
  return rows.map((row) => ({ ...row, label: labels.get(row.ofId)!.title }));
}

const most = (rows: Breakdown[]): Breakdown[] => ranked(rows).slice(0, MOST);

/** A product counts to the category in which it is now. */
async function byCategory(tx: Tx, question: Question): Promise<Breakdown[]> {
  const rows = await soldBy(tx, "product", question);
  const labels = await listLabels(
    tx,
    rows.map(({ ofId }) => ofId),
  );
  const groups = Map.groupBy(rows, ({ ofId }) => labels.get(ofId)!.category ?? NONE);
  const parts = [...groups].map(([key, of]) => ({
    ...sumOf(of),
    key,
    label: labels.get(of[0]!.ofId)!.categoryName ?? NONE,
    currency: question.currency,
  }));
  return most(parts);
}
const NONE = "none";

/** What nobody referred is what is left of the whole. */
async function byReferral(tx: Tx, question: Question, totals: Totals): Promise<Breakdown[]> {
  const { currency } = question;
  const rows = await soldBy(tx, "referrer", question);
  const codes = await listReferralCodes(
    tx,
    rows.map(({ ofId }) => ofId),
  );
  const referred = rows.map((row) => ({ ...row, key: codes.get(row.ofId)!, label: codes.get(row.ofId)! }));
  const direct = lessOf(totals.get(currency) ?? sumOf([]), sumOf(rows));
  return most([...referred, { ...direct, key: DIRECT, label: DIRECT, currency }]);
}
const DIRECT = "direct";

const lessOf = (whole: Sums, part: Sums): Sums =>
  Object.fromEntries(saleSums.map((name) => [name, whole[name] - part[name]])) as Sums;
