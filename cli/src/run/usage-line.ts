import type { Usage } from "@stoa/sdk";

/** `12 + 34 tokens, USD 0.0012`. */
export function describeUsage({
  promptTokens,
  completionTokens,
  estimatedCost,
  costKnown,
  estimated,
}: Usage): string {
  const tokens = `${estimated ? "about " : ""}${promptTokens} + ${completionTokens} tokens`;
  return `${tokens}, ${costKnown ? describeCost(estimatedCost) : "cost unknown"}`;
}

export const describeCost = (usd: number): string => `USD ${usd === 0 ? "0" : Number(usd.toPrecision(3))}`;
