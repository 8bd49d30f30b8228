import type { AiModel, Estimate, EstimatedCall } from "@stoa/sdk";

/** What an answer is taken to have before a run, where nothing limits it. The service reserves the same amount for a step. */
export const EXPECTED_TOKENS = 500;
const BYTES_PER_TOKEN = 4;
const MILLION = 1_000_000;

/** USD. */
export interface CostRange {
  low: number;
  high: number;
}

/** null: no price is known. */
export const rangeOf = ({ cost }: Pick<Estimate, "cost">): CostRange | null =>
  cost.min === null || cost.max === null ? null : { low: cost.min, high: cost.max };

export const addRanges = (ranges: (CostRange | null)[]): CostRange | null =>
  ranges.reduce<CostRange | null>(
    (sum, range) => sum && range && { low: sum.low + range.low, high: sum.high + range.high },
    { low: 0, high: 0 },
  );

/** As the service estimates tokens before a provider has counted them. */
export const estimateTokens = (text: string): number =>
  Math.ceil(new TextEncoder().encode(text).length / BYTES_PER_TOKEN);

/** null: no price is known. */
export function costOf(
  model: AiModel | undefined,
  promptTokens: number,
  outputTokens: number,
): number | null {
  if (model === undefined || model.promptPrice === null || model.completionPrice === null) return null;
  return (promptTokens * model.promptPrice + outputTokens * model.completionPrice) / MILLION;
}

/**
 * What the calls of a workflow's step are taken to cost: each with the text of its prompt, and an answer of its limit or the expected
 * tokens. The outputs of earlier steps, which its prompt may contain, are not known yet. null: no price is known.
 */
export function expectedCost(
  { calls, promptTokens, completionTokens, provider, cost }: EstimatedCall,
  models: AiModel[],
  modelId: string | null,
): number | null {
  if (provider === "sandbox") return 0;
  // An embedding: none of its texts is known yet.
  if (completionTokens.max === 0) return cost.min;
  const answer = Math.min(completionTokens.max ?? EXPECTED_TOKENS, EXPECTED_TOKENS);
  const model = models.find(({ id }) => id === modelId);
  const each = costOf(model, promptTokens.min, answer);
  return each === null ? null : each * Math.max(1, calls.min);
}
