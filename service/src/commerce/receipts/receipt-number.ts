const DIGITS = 5;

/** `R-3F7K2-2026-00042`: who issued it, in which year, and which of theirs it is. */
export const formatReceiptNumber = (issuer: string, year: number, number: number): string =>
  `R-${issuer}-${year}-${String(number).padStart(DIGITS, "0")}`;
