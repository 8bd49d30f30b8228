/** "12.5" is 1250. Returns null for anything but a percentage with at most two decimals. */
export function toBasisPoints(percent: string): number | null {
  const [, whole, fraction = ""] = /^(\d{1,3})(?:\.(\d{1,2}))?$/.exec(percent) ?? [];
  return whole === undefined ? null : Number(whole + fraction.padEnd(2, "0"));
}

export const toPercent = (basisPoints: number): number =>
  Number(`${Math.trunc(basisPoints / 100)}.${String(basisPoints % 100).padStart(2, "0")}`);

export interface TaxRate {
  percent: number;
  inclusive: boolean;
  country: string;
}

/** null: no tax. */
export const taxRateOf = (row: {
  taxBasisPoints: number;
  taxInclusive: boolean;
  taxCountry: string | null;
}): TaxRate | null =>
  row.taxBasisPoints > 0 && row.taxCountry
    ? { percent: toPercent(row.taxBasisPoints), inclusive: row.taxInclusive, country: row.taxCountry }
    : null;
