import type { AiModel } from "@stoa/sdk";

const usd = new Intl.NumberFormat("en", {
  style: "currency",
  currency: "USD",
  minimumFractionDigits: 2,
  maximumFractionDigits: 4,
});

/** USD for a million tokens: "$0.25 in and $2.00 out". Empty: unknown. */
export function describeModelPrice(model: AiModel | undefined): string {
  if (!model || model.promptPrice === null || model.completionPrice === null) return "";
  if (model.provider === "sandbox") return "free";
  return `${usd.format(model.promptPrice)} in and ${usd.format(model.completionPrice)} out`;
}
