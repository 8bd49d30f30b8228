import type { LanguageModel } from "ai";
import {
  estimateTokens,
  type FinishReason,
  type ProviderAnswer,
  type ProviderCall,
  ProviderError,
  type ProviderId,
  type TokenUsage,
} from "./ai-provider.ts";

/** A provider's model as the SDK's packages speak to it. */
export type Model = Extract<LanguageModel, { specificationVersion: "v4" }>;
export type Generated = Awaited<ReturnType<Model["doGenerate"]>>;

/** What came of one call, whole or in pieces. */
export interface CallResult extends Pick<Generated, "finishReason" | "usage" | "providerMetadata"> {
  output: string;
  /** As the provider names it; undefined: it does not. */
  model: string | undefined;
}

const MAX_MODEL_NAME = 200;

const finishReasons: ReadonlyMap<string, FinishReason> = new Map<string, FinishReason>([
  ["stop", "stop"],
  ["length", "length"],
  ["content-filter", "content_filter"],
  // As OpenAI says it, where the SDK does not expect it.
  ["content_filter", "content_filter"],
]);

const toFinishReason = ({ finishReason: { unified, raw } }: CallResult): FinishReason =>
  finishReasons.get(unified) ?? finishReasons.get(raw ?? "") ?? "other";

/** The answer of a call; a ProviderFault, where what came is none. */
export function toAnswer(result: CallResult, call: ProviderCall, attempts: number): ProviderAnswer {
  const answer: ProviderAnswer = {
    output: result.output,
    // From a server that anyone may run: what no database could keep must not keep the run from being recorded.
    model: (result.model ?? call.model).replaceAll("\0", "").slice(0, MAX_MODEL_NAME).toWellFormed(),
    finishReason: toFinishReason(result),
    usage: toUsage(result.usage, call, result.output),
    attempts,
  };
  mustBeWhole(result, call.provider, attempts);
  mustHoldText(answer, call.provider, stageOf(result));
  return answer;
}

/** Without a word on why the model stopped, the answer may be cut, and a cut answer is never passed off as whole. */
function mustBeWhole(
  { finishReason: { unified, raw } }: CallResult,
  provider: ProviderId,
  attempts: number,
): void {
  if (unified === "error" || raw === "error" || !raw)
    throw new ProviderError("PROVIDER_BAD_RESPONSE", { provider, attempts });
}

/** Nothing is an answer where the model stopped by itself or ran out of tokens while it still reasoned. */
function mustHoldText(answer: ProviderAnswer, provider: ProviderId, stage: "input" | "output"): void {
  if (answer.output !== "") return;
  const { attempts, usage } = answer;
  if (answer.finishReason === "content_filter") {
    throw new ProviderError("CONTENT_FILTERED", { provider, attempts, stage, usage });
  }
  if (answer.finishReason === "other") {
    throw new ProviderError("PROVIDER_BAD_RESPONSE", { provider, attempts, usage });
  }
}

/** Google alone tells a refused prompt in an answer; the others refuse the request. */
function stageOf({ providerMetadata }: CallResult): "input" | "output" {
  return providerMetadata?.google?.promptFeedback ? "input" : "output";
}

function toUsage(
  { inputTokens, outputTokens }: CallResult["usage"],
  call: ProviderCall,
  output: string,
): TokenUsage {
  const prompt = countOf(inputTokens.total);
  const completion = countOf(outputTokens.total);
  const promptTokens = prompt ?? estimateTokens(call.messages.map(({ content }) => content).join("\n\n"));
  const completionTokens = completion ?? estimateTokens(output);
  return {
    promptTokens,
    completionTokens,
    totalTokens: promptTokens + completionTokens,
    ...counted("cachedTokens", inputTokens.cacheRead),
    ...counted("cacheWriteTokens", inputTokens.cacheWrite),
    ...counted("reasoningTokens", outputTokens.reasoning),
    ...(prompt === undefined || completion === undefined ? { estimated: true as const } : {}),
  };
}

/** More than any model reads or writes, and so few that all calls of a workflow have a sum. */
const MAX_TOKENS = 2 ** 31 - 1;

/** Counts become money: from a server that anyone may run, only what can be a count is taken. */
function countOf(tokens: number | undefined): number | undefined {
  if (tokens === undefined || !Number.isInteger(tokens)) return undefined;
  return tokens >= 0 && tokens <= MAX_TOKENS ? tokens : undefined;
}

function counted<Name extends string>(name: Name, tokens: number | undefined): { [name in Name]?: number } {
  const count = countOf(tokens);
  return (count ? { [name]: count } : {}) as { [name in Name]?: number };
}
