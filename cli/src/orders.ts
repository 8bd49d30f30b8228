import { money } from "./format.ts";

export const amountOf = ({ amount, currency }: { amount: number; currency: string }): string =>
  money(amount, currency);
