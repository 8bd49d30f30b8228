import type { EvaluateProduct, EvaluationEstimate } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { parseMessages, renderMessages } from "../../formats/prompt-template/template.ts";
import type { ProviderId } from "../../integrations/ai-providers/ai-provider.ts";
import { estimateWorkflow } from "../estimates/estimate-workflow.ts";
import { estimateUsage, PRICE_LIST, priceUsage, roundUsd } from "../provider-keys/cost.ts";
import { toBaselineText } from "./column-run.ts";
import { type EvaluationPlan, type PlannedColumn, planEvaluation, toRunInput } from "./evaluation-plan.ts";

/** Calls no provider and writes nothing. */
export async function estimateEvaluation(
  ctx: Context,
  caller: Member,
  productId: string,
  request: EvaluateProduct,
): Promise<EvaluationEstimate> {
  const plan = await planEvaluation(ctx, caller, productId, request);
  const runs = plan.testSet.cases.length * request.repeats;
  const columns = [];
  for (const { apiKeys: _, ...column } of plan.columns) {
    const cost = await estimateCases(ctx, plan, column);
    columns.push({ ...column, runs, cost: cost === null ? null : roundUsd(cost * request.repeats) });
  }
  return {
    runs: runs * columns.length,
    columns,
    cost: columns.reduce<number | null>(
      (sum, { cost }) => (sum === null || cost === null ? null : roundUsd(sum + cost)),
      0,
    ),
    prices: PRICE_LIST,
  };
}

/** USD of one repeat of all cases; null: not known. */
async function estimateCases(
  ctx: Context,
  { product, testSet }: EvaluationPlan,
  column: Omit<PlannedColumn, "apiKeys">,
): Promise<number | null> {
  let sum = 0;
  for (const { input } of testSet.cases) {
    const cost =
      column.provider === null
        ? (await estimateWorkflow(ctx, product, { variables: input, options: {} })).cost.max
        : estimatePrompt(ctx, product, column, toRunInput(product, input));
    if (cost === null) return null;
    sum += cost;
  }
  return sum;
}

function estimatePrompt(
  ctx: Context,
  product: EvaluationPlan["product"],
  { kind, provider, model }: Omit<PlannedColumn, "apiKeys">,
  values: Record<string, unknown>,
): number | null {
  const messages =
    kind === "baseline"
      ? [{ role: "user" as const, content: toBaselineText(values) }]
      : renderMessages(
          parseMessages(product.contentFormat, product.content),
          new Map(Object.entries(values).map(([name, value]) => [name, String(value)])),
        );
  const call = { provider: provider as ProviderId, model: model ?? "", messages, options: {}, at: ctx.now() };
  const { estimatedCost, costKnown } = priceUsage({ ...call, usage: estimateUsage(call) });
  return costKnown ? estimatedCost : null;
}
