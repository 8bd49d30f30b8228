import { DAY_MS } from "../src/core/dates.ts";
import { roundHalfUp, toMinor } from "../src/core/money/amount.ts";
import { DISPUTE_FEE, type History, type Order, type Shop } from "./histories.ts";

/** An event's effect in minor units. */
export interface MoneyMovement {
  at: Date;
  isSale: boolean;
  currency: string;
  productId: string;
  /** The buyer's referral code. */
  referralCode: string | null;
  buyer: { id: string; name: string };
  sums: Sums;
}

export interface Sums {
  sales: bigint;
  gross: bigint;
  discounts: bigint;
  refunds: bigint;
  disputes: bigint;
  tax: bigint;
  fees: bigint;
  commissions: bigint;
  net: bigint;
}

export const NOTHING: Sums = {
  ...{ sales: 0n, gross: 0n, discounts: 0n, refunds: 0n, disputes: 0n },
  ...{ tax: 0n, fees: 0n, commissions: 0n, net: 0n },
};

export const add = (moves: MoneyMovement[]): Sums =>
  moves.reduce((sum, { sums }) => {
    const names = Object.keys(NOTHING) as (keyof Sums)[];
    return Object.fromEntries(names.map((name) => [name, sum[name] + sums[name]])) as unknown as Sums;
  }, NOTHING);

/** All effects of a shop's orders, from the API's view of each order. */
export const movementsOf = async ({ admin }: History, { orders }: Shop): Promise<MoneyMovement[]> =>
  (await Promise.all(orders.map((order) => movesOfOrder(admin, order)))).flat();

async function movesOfOrder(admin: History["admin"], { id, buyer }: Order): Promise<MoneyMovement[]> {
  const order = (await admin.get(`/v1/admin/orders/${id}`)).body.data;
  const { events } = (await buyer.get(`/v1/purchases/${id}`)).body.data;
  const { currency } = order;
  const minor = (amount: number) => toMinor(amount, currency)!;
  const parts: Parts = {
    ...{ total: minor(order.amount), tax: minor(order.tax), fees: minor(order.fee) },
    ...{ commissions: minor(order.commission), net: minor(order.earnings) },
  };
  const of = { currency, productId: order.product.id, referralCode: order.referralCode, buyer: order.buyer };
  const moves: MoneyMovement[] = [];
  const note = (at: string, sums: Partial<Sums>, isSale = false) =>
    moves.push({ ...of, at: new Date(at), isSale, sums: { ...NOTHING, ...sums } });
  let taken = 0n;
  /** The part that belongs to `amount`, cumulative, so that only totals are rounded. */
  const take = (amount: bigint) => {
    const [was, is] = [lostOf(parts, taken), lostOf(parts, taken + amount)];
    taken += amount;
    const lost = {
      tax: was.tax - is.tax,
      fees: was.fees - is.fees,
      commissions: was.commissions - is.commissions,
    };
    const net = was.net - is.net;
    return { sums: { ...lost, net }, charged: -(lost.fees + lost.commissions + net) };
  };
  for (const { type, at, amount } of events as { type: string; at: string; amount: number }[]) {
    if (type === "purchase.completed") {
      const { total, ...rest } = parts;
      const sale = { ...rest, sales: 1n, gross: total - parts.tax, discounts: minor(order.lines.discount) };
      note(at, sale, true);
    }
    if (type === "refund.succeeded") {
      const { sums, charged } = take(minor(amount));
      note(at, { ...sums, refunds: charged });
    }
    if (type === "dispute.opened" || type === "dispute.won") {
      const { sums, charged } = take(type === "dispute.won" ? -minor(amount) : minor(amount));
      note(at, { ...sums, disputes: charged });
    }
    if (type === "dispute.lost") note(at, { disputes: DISPUTE_FEE, net: -DISPUTE_FEE });
  }
  return moves;
}

interface Parts {
  total: bigint;
  tax: bigint;
  fees: bigint;
  commissions: bigint;
  net: bigint;
}

/** The refunded share of each part when `taken` of the total is gone: docs/guides/money.md. */
function lostOf({ total, tax, fees, commissions }: Parts, taken: bigint): Omit<Parts, "total"> {
  const share = (part: bigint, some: bigint, whole: bigint) =>
    part === 0n ? 0n : roundHalfUp(part * some, whole);
  const lostTax = share(tax, taken, total);
  const net = taken - lostTax;
  const lostFees = share(fees, net, total - tax);
  const lostCommissions = share(commissions, net - lostFees, total - tax - fees);
  return {
    tax: lostTax,
    fees: lostFees,
    commissions: lostCommissions,
    net: net - lostFees - lostCommissions,
  };
}

export interface AnalyticsQuery {
  startDate: string;
  endDate: string;
  interval: "day" | "week" | "month";
  timezone: string;
  currency?: string;
}

const formats = new Map<string, (at: Date) => string>();

/** The local date in a time zone. */
export function dateIn(timezone: string, at: Date): string {
  if (!formats.has(timezone)) formats.set(timezone, formatOf(timezone));
  return formats.get(timezone)!(at);
}

/** Cached, since the same times occur for each row. */
function formatOf(timezone: string): (at: Date) => string {
  const format = new Intl.DateTimeFormat("sv-SE", { timeZone: timezone, dateStyle: "short" });
  const known = new Map<number, string>();
  return (at) => {
    const date = known.get(at.getTime()) ?? format.format(at);
    known.set(at.getTime(), date);
    return date;
  };
}

export const shift = (date: string, days: number): string =>
  new Date(Date.parse(date) + days * DAY_MS).toISOString().slice(0, 10);

const SUNDAY_TO_MONDAY = 6;
const DAYS_OF_WEEK = 7;

/** The first day of the timeline row that contains a date. */
export function rowOf({ interval, startDate }: AnalyticsQuery, date: string): string {
  const afterMonday = (new Date(date).getUTCDay() + SUNDAY_TO_MONDAY) % DAYS_OF_WEEK;
  const first = { day: date, week: shift(date, -afterMonday), month: `${date.slice(0, 7)}-01` }[interval];
  return first < startDate ? startDate : first;
}

export function rowsOf(question: AnalyticsQuery): string[] {
  const rows = new Set<string>();
  for (let date = question.startDate; date <= question.endDate; date = shift(date, 1))
    rows.add(rowOf(question, date));
  return [...rows];
}

export const isIn = ({ startDate, endDate, timezone }: AnalyticsQuery, { at }: MoneyMovement): boolean => {
  const date = dateIn(timezone, at);
  return startDate <= date && date <= endDate;
};
