import type { ExecutionRow } from "./queries.ts";

type UsageColumns = Pick<
  ExecutionRow,
  "promptTokens" | "completionTokens" | "costUsd" | "costKnown" | "usageEstimated"
>;

/** The usage in the history; null: unknown. */
export function toUsage({
  promptTokens,
  completionTokens,
  costUsd,
  costKnown,
  usageEstimated,
}: UsageColumns) {
  if (promptTokens === null || completionTokens === null) return null;
  return {
    promptTokens,
    completionTokens,
    totalTokens: promptTokens + completionTokens,
    estimatedCost: Number(costUsd ?? 0),
    costKnown: costKnown ?? false,
    estimated: usageEstimated,
  };
}
