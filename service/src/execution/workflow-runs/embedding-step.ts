import type { Context } from "../../core/context.ts";
import { defaultEmbeddingModels, MAX_EMBEDDED_TEXTS } from "../../integrations/ai-providers/ai-provider.ts";
import { askForVectors } from "../provider-keys/provider-calls.ts";
import { type PlannedCall, prepareCall } from "./prepare-call.ts";
import type { RunContext } from "./prepare-step.ts";
import type { StepWork } from "./run-state.ts";
import { callProvider, findModel } from "./step-call.ts";
import { type PreparedStep, toFailedStep } from "./step-result.ts";

type EmbeddingWork = Extract<StepWork, { type: "embedding" }>;

/** An embedding step with the values of its expressions. */
interface EmbeddingStep {
  work: EmbeddingWork;
  values: Record<string, unknown>;
}

/** The step returns a vector, or cosines: vectors are long, and no expression could compare two of them. */
export async function prepareEmbedding(
  ctx: Context,
  run: RunContext,
  { work, values }: EmbeddingStep,
): Promise<PreparedStep> {
  const read = readTexts(values);
  if ("problem" in read) return toFailedStep("EXPRESSION_FAILED", read.problem);
  const { texts } = read;
  return prepareCall(ctx, run, {
    provider: work.provider,
    plan: () => planEmbedding(run, work, texts),
    make: async (call, usageTotal) => {
      const { answer, end } = await callProvider(ctx, run, call, usageTotal, askForVectors);
      await run.pendingCalls.end(end);
      const [vector = [], ...others] = answer.vectors;
      const output = work.compareTo === undefined ? vector : others.map((other) => cosineOf(vector, other));
      return { kind: "completed", output, callUsage: usageTotal.callUsage };
    },
  });
}

function readTexts({
  text,
  compareTo = [],
}: Record<string, unknown>): { texts: string[] } | { problem: string } {
  if (!isText(text)) return { problem: "text is no text, or empty" };
  if (!Array.isArray(compareTo) || !compareTo.every(isText))
    return { problem: "compareTo is no list of texts that are not empty" };
  if (compareTo.length >= MAX_EMBEDDED_TEXTS)
    return {
      problem: `compareTo has ${compareTo.length} texts; at most ${MAX_EMBEDDED_TEXTS - 1} are allowed`,
    };
  return { texts: [text, ...compareTo] };
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";

/** Prices and limits of keys count the texts as messages. An embedding has no output. */
async function planEmbedding(
  { keys }: RunContext,
  { provider, model, timeoutSeconds }: EmbeddingWork,
  texts: readonly string[],
): Promise<PlannedCall> {
  const key = await keys.find(provider);
  return {
    key,
    model: findModel(key, provider, model, defaultEmbeddingModels),
    messages: texts.map((content) => ({ role: "user", content })),
    options: { maxTokens: 0 },
    timeoutMs: timeoutSeconds && timeoutSeconds * 1_000,
  };
}

/** Both have a direction. Rounding can exceed 1. */
function cosineOf(a: readonly number[], b: readonly number[]): number {
  const product = (one: readonly number[], two: readonly number[]) =>
    one.reduce((sum, value, at) => sum + value * (two[at] ?? 0), 0);
  const cosine = product(a, b) / (Math.sqrt(product(a, a)) * Math.sqrt(product(b, b)));
  return Math.min(1, Math.max(-1, cosine));
}
