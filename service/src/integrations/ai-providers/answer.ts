import type { LanguageModelV4 } from "@ai-sdk/provider";
import {
  estimateTokens,
  type FinishReason,
  type ProviderAnswer,
  type ProviderCall,
  ProviderError,
  type ProviderId,
  type TokenUsage,
} from "./ai-provider.ts";

export type Model = LanguageModelV4;
export type Generated = Awaited<ReturnType<Model["doGenerate"]>>;

export interface CallResult extends Pick<Generated, "finishReason" | "usage" | "providerMetadata"> {
  output: string;
  /** The model that the provider names; undefined: none. */
  model: string | undefined;
}

const MAX_MODEL_NAME = 200;

const finishReasons: ReadonlyMap<string, FinishReason> = new Map<string, FinishReason>([
  ["stop", "stop"],
  ["length", "length"],
  ["content-filter", "content_filter"],
  // OpenAI's value, which the SDK does not map for every server.
  ["content_filter", "content_filter"],
]);

const toFinishReason = ({ finishReason: { unified, raw } }: CallResult): FinishReason =>
  finishReasons.get(unified) ?? finishReasons.get(raw ?? "") ?? "other";

/** Any user may run the server: a name that PostgreSQL cannot store must not prevent the record of the run. */
export const toModelName = (name: string): string =>
  name.replaceAll("\0", "").slice(0, MAX_MODEL_NAME).toWellFormed();

/** Converts the result of a call. Throws a ProviderError if it is no complete answer. */
export function toAnswer(result: CallResult, call: ProviderCall, attempts: number): ProviderAnswer {
  const answer: ProviderAnswer = {
    output: result.output,
    model: toModelName(result.model ?? call.model),
    finishReason: toFinishReason(result),
    usage: toUsage(result.usage, call, result.output),
    attempts,
  };
  mustBeWhole(result, call.provider, attempts);
  mustHoldText(answer, call.provider, stageOf(result));
  return answer;
}

/** Without a reason to stop, the answer may be cut, and a cut answer must not pass as complete. */
function mustBeWhole(
  { finishReason: { unified, raw } }: CallResult,
  provider: ProviderId,
  attempts: number,
): void {
  if (unified === "error" || raw === "error" || !raw)
    throw new ProviderError("PROVIDER_BAD_RESPONSE", { provider, attempts });
}

/** An empty answer is valid if the model stopped by itself, or used all tokens for reasoning. */
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

/** Only Google reports a refused prompt in an answer; other providers refuse the request. */
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

/** Above every model's limit, and low enough that the counts of a workflow's calls have an exact sum. */
const MAX_TOKENS = 2 ** 31 - 1;

/** Counts become money, and any user may run the server: only plausible counts are accepted. */
export function countOf(tokens: unknown): number | undefined {
  if (typeof tokens !== "number" || !Number.isInteger(tokens)) return undefined;
  return tokens >= 0 && tokens <= MAX_TOKENS ? tokens : undefined;
}

function counted<Name extends string>(name: Name, tokens: number | undefined): { [name in Name]?: number } {
  const count = countOf(tokens);
  return (count ? { [name]: count } : {}) as { [name in Name]?: number };
}
