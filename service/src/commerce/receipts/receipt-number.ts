const DIGITS = 5;

/** Such as `R-3F7K2-2026-00042`. */
export const formatReceiptNumber = (issuer: string, year: number, number: number): string =>
  `R-${issuer}-${year}-${String(number).padStart(DIGITS, "0")}`;
