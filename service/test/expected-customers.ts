import { roundHalfUp, toDecimal } from "../src/core/money/amount.ts";
import {
  type AnalyticsQuery,
  add,
  dateIn,
  isIn,
  type MoneyMovement,
  rowOf,
  rowsOf,
} from "./expected-analytics.ts";

type Asked = AnalyticsQuery & { currency: string };

const TOP = 10;

/** The expected GET /analytics/customers, counted from the orders. */
export function recountCustomers(moves: MoneyMovement[], question: Asked) {
  const others = [...new Set(moves.map(({ currency }) => currency))].filter(
    (one) => one !== question.currency,
  );
  const summaries = others.map((currency) => ({ currency, ...summaryOf(moves, { ...question, currency }) }));
  const customers = customersOf(moves, question);
  return {
    currency: question.currency,
    summary: summaryOf(moves, question),
    timeline: comingIn(customers, question),
    topCustomers: topOf(customers, question),
    cohorts: cohortsOf(customers, { ...question, interval: "month" }),
    otherCurrencies: summaries
      .filter(({ totalCustomers }) => totalCustomers > 0)
      .toSorted((one, other) => (one.currency < other.currency ? -1 : 1)),
  };
}

interface Customer {
  id: string;
  name: string;
  /** Purchases up to the end of the range, in order. */
  sales: MoneyMovement[];
}

function customersOf(moves: MoneyMovement[], { currency, endDate, timezone }: Asked): Customer[] {
  const sales = moves
    .filter((move) => move.isSale && move.currency === currency && dateIn(timezone, move.at) <= endDate)
    .toSorted((one, other) => one.at.getTime() - other.at.getTime());
  const byBuyer = Map.groupBy(sales, ({ buyer }) => buyer.id);
  return [...byBuyer].map(([id, theirs]) => ({ id, name: theirs[0]!.buyer.name, sales: theirs }));
}

const boughtInRange = (question: AnalyticsQuery) => (customer: Customer) =>
  customer.sales.some((move) => isIn(question, move));
const isNewIn =
  (question: AnalyticsQuery) =>
  ({ sales }: Customer) =>
    isIn(question, sales[0]!);

function summaryOf(moves: MoneyMovement[], question: Asked) {
  const { currency, endDate, timezone } = question;
  const ever = customersOf(moves, question);
  const active = ever.filter(boughtInRange(question));
  const fresh = active.filter(isNewIn(question));
  const ofCurrency = moves.filter((move) => move.currency === currency);
  const { gross } = add(ofCurrency.filter((move) => isIn(question, move)));
  const all = add(ofCurrency.filter((move) => dateIn(timezone, move.at) <= endDate));
  return {
    totalCustomers: active.length,
    newCustomers: fresh.length,
    returningCustomers: active.length - fresh.length,
    repeatPurchaseRate: rate(active.filter(({ sales }) => sales.length > 1).length, active.length),
    avgRevenuePerCustomer: each(gross, active.length, currency),
    lifetimeValue: each(all.gross - all.refunds - all.disputes, ever.length, currency),
  };
}

const rate = (part: number, whole: number) =>
  whole === 0 ? 0 : Math.floor((part * 10_000) / whole + 0.5) / 10_000;
const each = (minor: bigint, count: number, currency: string) =>
  toDecimal(count === 0 ? 0n : roundHalfUp(minor, BigInt(count)), currency);

/** New customers by timeline row. */
function comingIn(customers: Customer[], question: AnalyticsQuery) {
  const rowIn = ({ at }: MoneyMovement) => rowOf(question, dateIn(question.timezone, at));
  const visits = customers.flatMap(({ sales }) => {
    const rows = new Set(sales.filter((move) => isIn(question, move)).map(rowIn));
    const first = isIn(question, sales[0]!) ? rowIn(sales[0]!) : null;
    return [...rows].map((row) => ({ row, isNew: row === first }));
  });
  const byRow = Map.groupBy(visits, ({ row }) => row);
  return rowsOf(question).map((date) => {
    const active = byRow.get(date) ?? [];
    const newCustomers = active.filter(({ isNew }) => isNew).length;
    return { date, newCustomers, returningCustomers: active.length - newCustomers };
  });
}

function topOf(customers: Customer[], question: Asked) {
  const spent = ({ sales }: Customer) => add(sales.filter((move) => isIn(question, move))).gross;
  return customers
    .filter(boughtInRange(question))
    .toSorted((one, other) => Number(spent(other) - spent(one)) || (one.id < other.id ? -1 : 1))
    .slice(0, TOP)
    .map((customer) => ({
      id: customer.id,
      name: customer.name,
      purchases: customer.sales.filter((move) => isIn(question, move)).length,
      totalSpent: toDecimal(spent(customer), question.currency),
      firstPurchaseAt: customer.sales[0]!.at.toISOString(),
      lastPurchaseAt: customer.sales.at(-1)!.at.toISOString(),
    }));
}

function cohortsOf(customers: Customer[], months: AnalyticsQuery) {
  const starts = rowsOf(months);
  const monthOf = (move: MoneyMovement) => rowOf(months, dateIn(months.timezone, move.at));
  return starts.map((start, at) => {
    const cohort = customers.filter(isNewIn(months)).filter(({ sales }) => monthOf(sales[0]!) === start);
    const boughtIn = (month: string) =>
      cohort.filter(({ sales }) => sales.some((move) => monthOf(move) === month)).length;
    return { month: start.slice(0, 7), size: cohort.length, retained: starts.slice(at).map(boughtIn) };
  });
}
