import { roundHalfUp, toDecimal } from "../src/core/money/amount.ts";
import {
  type AnalyticsQuery,
  add,
  dateIn,
  isIn,
  type MoneyMovement,
  NOTHING,
  rowOf,
  rowsOf,
  type Sums,
} from "./expected-analytics.ts";
import type { ProductView, Shop } from "./histories.ts";

type Asked = AnalyticsQuery & { currency: string };

export const byCurrency = <T extends { currency: string }>(rows: T[]): T[] =>
  rows.toSorted((one, other) => (one.currency < other.currency ? -1 : 1));

const hasMoved = (sums: Sums) => Object.values(sums).some((sum) => sum !== 0n);
const rate = (part: bigint, whole: bigint) =>
  whole === 0n ? 0 : Number(roundHalfUp(part * 10_000n, whole)) / 10_000;
const averageOf = ({ gross, sales }: Sums) => (sales === 0n ? 0n : roundHalfUp(gross, sales));

/** The expected GET /analytics/products, summed from orders and views. */
export function recountProducts(
  moves: MoneyMovement[],
  looks: ProductView[],
  shop: Shop,
  question: Asked & { productId: string | undefined },
) {
  const { currency, productId } = question;
  const asked = moves.filter((move) => isIn(question, move) && (!productId || move.productId === productId));
  const isOurs = ({ productId: id }: ProductView) =>
    productId ? id === productId : shop.products.some((product) => product.id === id);
  const viewed = looks.filter(
    (look) => isOurs(look) && question.startDate <= look.day && look.day <= question.endDate,
  );
  const inCurrency = asked.filter((move) => move.currency === currency);
  const byRow = Map.groupBy(inCurrency, (move) => rowIn(question, move));
  const viewsByRow = Map.groupBy(viewed, ({ day }) => rowOf(question, day));
  return {
    summary: { ...productSummary(inCurrency, currency), conversionRate: conversion(asked, viewed) },
    timeline: rowsOf(question).map((date) => {
      const { gross, sales } = add(byRow.get(date) ?? []);
      const views = viewersIn(viewsByRow.get(date) ?? []);
      return { date, revenue: toDecimal(gross, currency), sales: Number(sales), views };
    }),
    topProducts: groups(inCurrency, ({ productId: id }) => id)
      .filter(({ sums }) => sums.sales > 0n)
      .map(({ key, sums }) => ({
        id: key,
        title: shop.products.find(({ id }) => id === key)!.title,
        revenue: toDecimal(sums.gross, currency),
        sales: Number(sums.sales),
      })),
    otherCurrencies: othersIn(asked, currency, productSummary),
  };
}

const rowIn = (question: AnalyticsQuery, { at }: MoneyMovement) =>
  rowOf(question, dateIn(question.timezone, at));

const viewersIn = (looks: ProductView[]) =>
  new Set(looks.map(({ productId, day, viewerId }) => `${productId} ${day} ${viewerId}`)).size;

function conversion(moves: MoneyMovement[], looks: ProductView[]): number {
  return Math.min(1, rate(add(moves).sales, BigInt(viewersIn(looks))));
}

function productSummary(moves: MoneyMovement[], currency: string) {
  const sums = add(moves);
  return {
    totalRevenue: toDecimal(sums.gross, currency),
    totalSales: Number(sums.sales),
    avgOrderValue: toDecimal(averageOf(sums), currency),
    refunds: toDecimal(sums.refunds, currency),
  };
}

function othersIn<T>(
  moves: MoneyMovement[],
  currency: string,
  summary: (moves: MoneyMovement[], currency: string) => T,
) {
  const others = Map.groupBy(moves, (move) => move.currency);
  return byCurrency(
    [...others]
      .filter(([other, group]) => other !== currency && hasMoved(add(group)))
      .map(([other, group]) => ({ currency: other, ...summary(group, other) })),
  );
}

/** Effects by key, the highest revenue first. */
function groups(moves: MoneyMovement[], keyOf: (move: MoneyMovement) => string) {
  return [...Map.groupBy(moves, keyOf)]
    .map(([key, group]) => ({ key, sums: add(group) }))
    .filter(({ sums }) => hasMoved(sums))
    .toSorted(
      (one, other) =>
        Number(other.sums.gross - one.sums.gross) ||
        Number(other.sums.sales - one.sums.sales) ||
        (one.key < other.key ? -1 : 1),
    );
}

export type GroupBy = "product" | "category" | "referral" | "currency";

/** The expected GET /analytics/revenue, without labels and without balances, which come from the ledger. */
export function recountRevenue(
  moves: MoneyMovement[],
  question: Asked & { groupBy: GroupBy },
  categoryOf: (productId: string) => string,
) {
  const { currency, groupBy } = question;
  const asked = moves.filter((move) => isIn(question, move));
  const inCurrency = asked.filter((move) => move.currency === currency);
  const keyOf = {
    product: ({ productId }: MoneyMovement) => productId,
    category: ({ productId }: MoneyMovement) => categoryOf(productId),
    referral: ({ referralCode }: MoneyMovement) => referralCode ?? "direct",
    currency: (move: MoneyMovement) => move.currency,
  }[groupBy];
  const byRow = Map.groupBy(inCurrency, (move) => rowIn(question, move));
  const parts = groups(groupBy === "currency" ? asked : inCurrency, keyOf);
  // Amounts in several currencies have no order.
  if (groupBy === "currency") parts.sort((one, other) => (one.key < other.key ? -1 : 1));
  return {
    summary: revenueSummary(inCurrency, currency),
    timeline: rowsOf(question).map((date) => ({ date, ...amountsOf(add(byRow.get(date) ?? []), currency) })),
    breakdown: parts.map(({ key, sums }) => {
      const of = groupBy === "currency" ? key : currency;
      return {
        ...{ key, grossRevenue: toDecimal(sums.gross, of), netRevenue: toDecimal(sums.net, of) },
        sales: Number(sums.sales),
      };
    }),
    otherCurrencies: othersIn(asked, currency, revenueSummary),
  };
}

function amountsOf(sums: Sums, currency: string) {
  const amount = (minor: bigint) => toDecimal(minor, currency);
  return {
    ...{ grossRevenue: amount(sums.gross), refunds: amount(sums.refunds), disputes: amount(sums.disputes) },
    ...{ fees: amount(sums.fees), commissions: amount(sums.commissions), netRevenue: amount(sums.net) },
    sales: Number(sums.sales),
  };
}

function revenueSummary(moves: MoneyMovement[], currency: string) {
  const sums = moves.length === 0 ? NOTHING : add(moves);
  const { fees, commissions, ...row } = amountsOf(sums, currency);
  return {
    ...row,
    discounts: toDecimal(sums.discounts, currency),
    tax: toDecimal(sums.tax, currency),
    platformFees: fees,
    referralCommissions: commissions,
    avgOrderValue: toDecimal(averageOf(sums), currency),
    refundRate: rate(sums.refunds, sums.gross),
  };
}
