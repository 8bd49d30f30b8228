/** Basis points of a written percentage with at most two decimals: "12.5" is 1250. null when the text is none. */
export function toBasisPoints(percent: string): number | null {
  const [, whole, fraction = ""] = /^(\d{1,3})(?:\.(\d{1,2}))?$/.exec(percent) ?? [];
  return whole === undefined ? null : Number(whole + fraction.padEnd(2, "0"));
}

/** The JSON number of a rate, printed from the integer: 1250 is 12.5. */
export const toPercent = (basisPoints: number): number =>
  Number(`${Math.trunc(basisPoints / 100)}.${String(basisPoints % 100).padStart(2, "0")}`);

/** The tax of something, as the API shows it. */
export interface TaxRate {
  percent: number;
  inclusive: boolean;
  country: string;
}

/** The tax of an order or a payment, which store a copy of it; null: no tax. */
export const taxRateOf = (row: {
  taxBasisPoints: number;
  taxInclusive: boolean;
  taxCountry: string | null;
}): TaxRate | null =>
  row.taxBasisPoints > 0 && row.taxCountry
    ? { percent: toPercent(row.taxBasisPoints), inclusive: row.taxInclusive, country: row.taxCountry }
    : null;
