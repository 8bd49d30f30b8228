/** Basis points of a percentage as somebody wrote it, with at most two decimals: "12.5" is 1250. Null when it is none. */
export function toBasisPoints(percent: string): number | null {
  const [, whole, fraction = ""] = /^(\d{1,3})(?:\.(\d{1,2}))?$/.exec(percent) ?? [];
  return whole === undefined ? null : Number(whole + fraction.padEnd(2, "0"));
}

/** The JSON number of a rate, printed from the integer: 1250 is 12.5. */
export const toPercent = (basisPoints: number): number =>
  Number(`${Math.trunc(basisPoints / 100)}.${String(basisPoints % 100).padStart(2, "0")}`);

/** How something was taxed, as it is told. */
export interface TaxRate {
  percent: number;
  inclusive: boolean;
  country: string;
}

/** Of an order or a payment, which keep a copy of it; null: nothing is taxed. */
export const taxRateOf = (row: {
  taxBasisPoints: number;
  taxInclusive: boolean;
  taxCountry: string | null;
}): TaxRate | null =>
  row.taxBasisPoints > 0 && row.taxCountry
    ? { percent: toPercent(row.taxBasisPoints), inclusive: row.taxInclusive, country: row.taxCountry }
    : null;
