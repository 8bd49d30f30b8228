import { type EvaluateProduct, MAX_RUNS_OF_COLUMN } from "@stoa/contract";
import { toInputText } from "@stoa/evaluation/input-text";
import { findProductToRun } from "../../catalog/products/detail.ts";
import { findInputProblems } from "../../catalog/test-sets/case-problems.ts";
import { findTestSet, type StoredTestSet } from "../../catalog/test-sets/test-sets.ts";
import type { Context, Member } from "../../core/context.ts";
import { digestOf } from "../../core/digest.ts";
import { ApiError, type FieldProblem, fieldError, ruleViolation } from "../../core/errors.ts";
import { checkVariables } from "../../formats/prompt-template/variables.ts";
import { checkInput } from "../../formats/workflow-definition/inputs.ts";
import { Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import { defaultModels } from "../../integrations/ai-providers/ai-provider.ts";
import { unknownPriceReason } from "../prompt-runs/max-cost.ts";
import { mustSupportProvider, type Product } from "../prompt-runs/prepare-run.ts";
import { findCostUsd } from "../provider-keys/cost.ts";
import { findRunKey } from "../provider-keys/provider-keys.ts";
import { checkRequirements } from "../workflow-runs/requirements.ts";
import type { ColumnSpec } from "./column-run.ts";
import { type PlannedJudge, planJudge } from "./judge-plan.ts";
import { hashDefinition, type StoredJudge } from "./queries.ts";
import { findBaselineModel } from "./workflow-baseline.ts";

interface OutputColumn extends ColumnSpec {
  kind: "product" | "baseline";
  isSandbox: boolean;
  apiKeys: Record<string, string>;
}

export interface PlannedColumn extends Omit<OutputColumn, "kind"> {
  kind: "product" | "baseline" | "judge";
  /** Of a judge: the index of the column that it judges. */
  judgedColumnN: number | null;
}

export interface EvaluationPlan {
  product: Product;
  contentSha256: string;
  definitionSha256: string;
  testSet: StoredTestSet;
  columns: PlannedColumn[];
  judge: StoredJudge | null;
}

/** Checks everything that an evaluation needs. Writes nothing. */
export async function planEvaluation(
  ctx: Context,
  caller: Member,
  productId: string,
  request: EvaluateProduct,
): Promise<EvaluationPlan> {
  const product = await findProductToRun(ctx, caller, productId);
  if (product.reason !== "author")
    throw new ApiError("UNAUTHORIZED", "Only its author may evaluate a product.", { required: "author" });
  const testSet = await findTestSet(ctx.db, product.id);
  if (!testSet)
    throw ruleViolation(
      "productId",
      "has no test set: store one by PUT /products/{productId}/test-set, or import one",
    );
  const problems = [
    ...findInputProblems(product, testSet.cases).map(toTestSetProblem),
    ...findSizeProblems(testSet, request),
  ];
  if (problems.length > 0) throw fieldError("VALIDATION_ERROR", problems);
  const hasInput = testSet.cases.every(({ input }) => toInputText(toRunInput(product, input)) !== "");
  const columns =
    product.type === "PROMPT"
      ? await planPrompt(ctx, caller, product, request, hasInput)
      : await planWorkflow(ctx, caller, product, request, hasInput);
  const judge = await planJudge(ctx, caller, testSet, request);
  return {
    product,
    contentSha256: digestOf(product.content).toString("hex"),
    definitionSha256: await hashDefinition(ctx.db, product),
    testSet,
    columns: columns.flatMap((column, index) => withJudge(column, index, judge)),
    judge: judge?.stored ?? null,
  };
}

/** Each judge follows the column that it judges. */
function withJudge(column: OutputColumn, index: number, judge: PlannedJudge | null): PlannedColumn[] {
  const judged = { ...column, judgedColumnN: null };
  if (!judge) return [judged];
  const { provider, model, isSandbox } = judge.stored;
  const { apiKeys } = judge;
  return [judged, { kind: "judge", judgedColumnN: index * 2, provider, model, isSandbox, apiKeys }];
}

/** The variables may have changed since the test set was stored. */
const toTestSetProblem = ({ field, reason }: FieldProblem): FieldProblem => ({
  field: "productId",
  reason: `has a test set that its current version refuses: ${field} ${reason}. Store a new test set`,
});

function findSizeProblems({ cases }: StoredTestSet, { repeats }: EvaluateProduct): FieldProblem[] {
  const runs = cases.length * repeats;
  if (runs <= MAX_RUNS_OF_COLUMN) return [];
  const most = Math.floor(MAX_RUNS_OF_COLUMN / cases.length);
  return [
    {
      field: "repeats",
      reason: `gives ${runs} runs for each model; at most ${MAX_RUNS_OF_COLUMN} are allowed: send ${most}`,
    },
  ];
}

/** Each model with the product, then without it. If a case has no input, there is no baseline: nothing could be sent. */
async function planPrompt(
  ctx: Context,
  caller: Member,
  product: Product,
  { models, apiKeys }: EvaluateProduct,
  hasInput: boolean,
): Promise<OutputColumn[]> {
  if (apiKeys) throw ruleViolation("apiKeys", "is for workflows: send models for a prompt");
  if (!models) throw ruleViolation("models", "is required for a prompt");
  const columns: OutputColumn[] = [];
  for (const [index, { apiKeyId, model: requested }] of models.entries()) {
    const field = `models[${index}].model`;
    const key = await findRunKey(ctx, caller, apiKeyId);
    mustSupportProvider(product, key);
    const model = requested ?? product.models[key.provider] ?? defaultModels[key.provider];
    if (!model)
      throw ruleViolation(field, `is needed: the models of this ${key.provider} address are unknown`);
    if (columns.some((other) => other.provider === key.provider && other.model === model))
      throw ruleViolation(field, `is ${model} of ${key.provider} again: name each model once`);
    const call = { provider: key.provider, model, at: ctx.now() };
    if (findCostUsd(call, 1, 1) === null) throw ruleViolation(field, unknownPriceReason(call));
    const column = { provider: key.provider, model, isSandbox: key.provider === "sandbox" };
    columns.push({ ...column, kind: "product", apiKeys: { [key.provider]: apiKeyId } });
    if (hasInput) columns.push({ ...column, kind: "baseline", apiKeys: { [key.provider]: apiKeyId } });
  }
  return columns;
}

/** The workflow, then the model of its last call with the input alone. */
async function planWorkflow(
  ctx: Context,
  caller: Member,
  product: Product,
  { models, apiKeys = {} }: EvaluateProduct,
  hasInput: boolean,
): Promise<OutputColumn[]> {
  if (models) throw ruleViolation("models", "is for prompts: the steps of a workflow set their models");
  const workflow = Workflow.parse(JSON.parse(product.content));
  const { problems: missing } = await checkRequirements(ctx, caller, workflow, apiKeys);
  if (missing.length > 0) throw fieldError("VALIDATION_ERROR", missing);
  const providers = await Promise.all(
    Object.values(apiKeys).map(async (id) => (await findRunKey(ctx, caller, id)).provider),
  );
  const isSandbox = providers.length > 0 && providers.every((provider) => provider === "sandbox");
  const bare = hasInput ? await findBaselineModel(ctx, caller, workflow, apiKeys) : null;
  return [
    { kind: "product", provider: null, model: null, isSandbox, apiKeys },
    ...(bare ? [{ kind: "baseline" as const, ...bare }] : []),
  ];
}

/** The input of a case as a run gets it: with defaults. */
export function toRunInput(
  { type, content, variables }: Pick<Product, "type" | "content" | "variables">,
  input: Record<string, unknown>,
): Record<string, unknown> {
  if (type === "PROMPT") {
    const checked = checkVariables(variables, input);
    return "values" in checked ? Object.fromEntries(checked.values) : input;
  }
  const checked = checkInput(Workflow.parse(JSON.parse(content)).input, input);
  return "input" in checked ? checked.input : input;
}
