import type { ChatCompletion, ExecutionResult } from "@stoa/contract";
import { toOpenAiError } from "../../platform/http/openai-error.ts";
import type { StreamedEvent } from "../../platform/http/route.ts";
import { notKept } from "../prompt-runs/execute.ts";

type FinishReason = ChatCompletion["choices"][number]["finish_reason"];

/** What each chunk of one answer repeats. */
export interface Completion {
  id: string;
  model: string;
  created: Date;
  /** Whether a last chunk tells the usage. */
  includeUsage: boolean;
}

export const finishReasonOf = (reason: string): FinishReason =>
  reason === "length" || reason === "content_filter" ? reason : "stop";

export const usageOf = ({ promptTokens, completionTokens, totalTokens }: ExecutionResult["usage"]) => ({
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: totalTokens,
});

const told = (data: object): StreamedEvent => ({ data: JSON.stringify(data) });

/**
 * The events of a run as chunks of OpenAI's (https://platform.openai.com/docs/api-reference/chat-streaming). These have
 * no id to come back with. `[DONE]` comes after a whole answer alone; what broke off ends with an `error`, which clients throw.
 */
export async function* inChunks(
  events: AsyncIterable<StreamedEvent>,
  completion: Completion,
): AsyncGenerator<StreamedEvent> {
  for await (const { type, data } of events) {
    const facts = JSON.parse(data!);
    if (type === "execution.started") yield chunk(completion, { role: "assistant", content: "" });
    else if (type === "output.delta") yield chunk(completion, { content: facts.text });
    else if (type === "execution.failed") yield told(toOpenAiError(facts));
    else yield* lastOf(facts, completion);
  }
}

function* lastOf(
  { executionId, output, usage, metadata }: ExecutionResult,
  completion: Completion,
): Generator<StreamedEvent, void> {
  // Told again: without its words it would look like an empty answer.
  if (output === null) return yield told(toOpenAiError(notKept(executionId)));
  yield chunk(completion, {}, finishReasonOf(metadata.finishReason));
  if (completion.includeUsage) yield told({ ...frameOf(completion), choices: [], usage: usageOf(usage) });
  yield { data: "[DONE]" };
}

const frameOf = ({ id, model, created }: Completion) => ({
  id,
  object: "chat.completion.chunk",
  created: Math.floor(created.getTime() / 1000),
  model,
});

const chunk = (completion: Completion, delta: object, finish_reason: FinishReason | null = null) =>
  told({
    ...frameOf(completion),
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    ...(completion.includeUsage && { usage: null }),
  });
