import { type EvaluateProduct, MAX_JUDGE_CALLS_OF_COLUMN } from "@stoa/contract";
import type { TestCase } from "@stoa/evaluation";
import {
  comparesEmbeddings,
  isRelevance,
  QUESTION_INSTRUCTIONS,
} from "@stoa/evaluation/embedding-assertions";
import {
  JUDGE_INSTRUCTIONS,
  type JudgeAbility,
  listJudgedAssertions,
  toRubricsText,
} from "@stoa/evaluation/judge-prompt";
import { type StoredTestSet, saltedHash } from "../../catalog/test-sets/test-sets.ts";
import type { Context, Member } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import {
  defaultEmbeddingModels,
  defaultModels,
  hasEmbeddings,
} from "../../integrations/ai-providers/ai-provider.ts";
import { noEmbeddingsReason } from "../../integrations/ai-providers/embeddings.ts";
import { unknownPriceReason } from "../prompt-runs/max-cost.ts";
import { findCostUsd, findListedMode } from "../provider-keys/cost.ts";
import { findRunKey } from "../provider-keys/provider-keys.ts";
import type { StoredEmbedding, StoredJudge } from "./queries.ts";

export interface PlannedJudge {
  stored: StoredJudge;
  apiKeys: Record<string, string>;
}

type RequestedJudge = NonNullable<EvaluateProduct["judge"]>;

/** A test set without anything to judge and a judge are a mistake of the request. */
export async function planJudge(
  ctx: Context,
  caller: Member,
  testSet: StoredTestSet,
  { judge, repeats }: EvaluateProduct,
): Promise<PlannedJudge | null> {
  if (!judge) return null;
  mustHaveJudgedAssertions(testSet, judge, repeats);
  const { provider } = await findRunKey(ctx, caller, judge.apiKeyId);
  const model = judge.model ?? defaultModels[provider];
  if (!model)
    throw ruleViolation("judge.model", `is needed: the models of this ${provider} address are unknown`);
  const call = { provider, model, at: ctx.now() };
  if (findCostUsd(call, 1, 1) === null) throw ruleViolation("judge.model", unknownPriceReason(call));
  const embedding = judge.embedding ? await planEmbedding(ctx, caller, judge.embedding) : null;
  if (embedding?.provider === provider && judge.embedding?.apiKeyId !== judge.apiKeyId)
    throw ruleViolation(
      "judge.embedding.apiKeyId",
      `must be the key of the judge, ${judge.apiKeyId}: a run uses one key of each provider`,
    );
  const asked = { instructions: JUDGE_INSTRUCTIONS, ...(embedding && { embedding }) };
  return {
    stored: {
      ...{ provider, model, isSandbox: provider === "sandbox", ...asked },
      rubricsHash: saltedHash(testSet, toRubricsText(asked, testSet.cases as TestCase[])),
    },
    apiKeys: {
      [provider]: judge.apiKeyId,
      ...(embedding && judge.embedding && { [embedding.provider]: judge.embedding.apiKeyId }),
    },
  };
}

function mustHaveJudgedAssertions(testSet: StoredTestSet, judge: RequestedJudge, repeats: number): void {
  const each = countJudgeCalls(testSet, judge);
  if (each === 0)
    throw ruleViolation(
      "judge",
      `has nothing to judge: no case of the test set has an llm-rubric or factuality assertion. ${comparesAny(testSet) ? "Name an embedding model in judge.embedding, which decides similar and answer-relevance, or omit judge" : "Omit it"}`,
    );
  if (judge.embedding && !comparesAny(testSet))
    throw ruleViolation(
      "judge.embedding",
      "has nothing to compare: no case of the test set has a similar or answer-relevance assertion. Omit it",
    );
  const calls = each * repeats;
  if (calls > MAX_JUDGE_CALLS_OF_COLUMN)
    throw ruleViolation(
      "repeats",
      `gives ${calls} calls of the judge for each model; at most ${MAX_JUDGE_CALLS_OF_COLUMN} are allowed: send ${Math.floor(MAX_JUDGE_CALLS_OF_COLUMN / each)}, or use fewer judged assertions`,
    );
}

async function planEmbedding(
  ctx: Context,
  caller: Member,
  requested: NonNullable<RequestedJudge["embedding"]>,
): Promise<StoredEmbedding> {
  const { provider } = await findRunKey(ctx, caller, requested.apiKeyId);
  if (!hasEmbeddings(provider)) {
    const field = "judge.embedding.apiKeyId";
    throw new ApiError("PROVIDER_NOT_SUPPORTED", `${field}: ${noEmbeddingsReason(provider)}`, { field });
  }
  const model = requested.model ?? defaultEmbeddingModels[provider];
  if (!model)
    throw ruleViolation(
      "judge.embedding.model",
      `is needed: the models of this ${provider} address are unknown`,
    );
  const call = { provider, model, at: ctx.now() };
  if (findListedMode(call) === "chat")
    throw ruleViolation(
      "judge.embedding.model",
      `is ${model}, which answers with text: GET /v1/ai/models?mode=embedding lists embedding models`,
    );
  if (findCostUsd(call, 1, 0) === null)
    throw ruleViolation("judge.embedding.model", unknownPriceReason(call));
  return { provider, model, isSandbox: provider === "sandbox", instructions: QUESTION_INSTRUCTIONS };
}

/** Calls about one repeat of all cases: for `answer-relevance`, the judge writes questions before their embeddings are compared. */
export const countJudgeCalls = ({ cases }: Pick<StoredTestSet, "cases">, judge: JudgeAbility): number =>
  (cases as TestCase[])
    .flatMap((testCase) => listJudgedAssertions(testCase, judge))
    .reduce((sum, assertion) => sum + (isRelevance(assertion) ? 2 : 1), 0);

/** Whether a case has an assertion that compares embeddings. */
export const comparesAny = ({ cases }: Pick<StoredTestSet, "cases">): boolean =>
  (cases as TestCase[]).some((one) => listJudgedAssertions(one, { embedding: {} }).some(comparesEmbeddings));
