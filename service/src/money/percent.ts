/** Basis points of a percentage as somebody wrote it, with at most two decimals: "12.5" is 1250. Null when it is none. */
export function toBasisPoints(percent: string): number | null {
  const [, whole, fraction = ""] = /^(\d{1,3})(?:\.(\d{1,2}))?$/.exec(percent) ?? [];
  return whole === undefined ? null : Number(whole + fraction.padEnd(2, "0"));
}

/** The JSON number of a rate, printed from the integer: 1250 is 12.5. */
export const toPercent = (basisPoints: number): number =>
  Number(`${Math.trunc(basisPoints / 100)}.${String(basisPoints % 100).padStart(2, "0")}`);
