import type { Usage } from "@stoa/sdk";
import { UsageError } from "../errors.ts";

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

/** An amount of USD, for an option. */
export function dollars(text: string): number {
  const number = Number(text);
  if (!(number > 0)) throw new UsageError(`${JSON.stringify(text)} is no amount of USD`, "Such as 0.05.");
  return number;
}
