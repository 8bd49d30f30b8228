interface Counted {
  promptTokens: number | null;
  completionTokens: number | null;
  costUsd: string | null;
  costKnown: boolean | null;
  estimated: boolean;
}

/** null: no provider was asked. */
export function toUsage({ promptTokens, completionTokens, costUsd, costKnown, estimated }: Counted) {
  if (promptTokens === null) return null;
  return {
    promptTokens,
    completionTokens: completionTokens ?? 0,
    totalTokens: promptTokens + (completionTokens ?? 0),
    estimatedCost: Number(costUsd ?? 0),
    costKnown: costKnown ?? false,
    estimated,
  };
}
