import type { ChatCompletion, ExecutionResult } from "@stoa/contract";
import { required } from "../../core/required.ts";
import { toOpenAiError } from "../../platform/http/openai-error.ts";
import type { StreamedEvent } from "../../platform/http/route.ts";
import { outputNotStored } from "../prompt-runs/execute.ts";

type FinishReason = ChatCompletion["choices"][number]["finish_reason"];

/** What each chunk of one answer repeats. */
export interface Completion {
  id: string;
  model: string;
  created: Date;
  /** Whether a last chunk tells the usage. */
  includeUsage: boolean;
}

export const toFinishReason = (reason: string): FinishReason =>
  reason === "length" || reason === "content_filter" ? reason : "stop";

export const toOpenAiUsage = ({ promptTokens, completionTokens, totalTokens }: ExecutionResult["usage"]) => ({
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: totalTokens,
});

const toEvent = (data: object): StreamedEvent => ({ data: JSON.stringify(data) });

/**
 * The events of a run as chunks of OpenAI's (https://platform.openai.com/docs/api-reference/chat-streaming). These have
 * no id to come back with. `[DONE]` comes after a whole answer alone; what broke off ends with an `error`, which clients throw.
 */
export async function* toChunks(
  events: AsyncIterable<StreamedEvent>,
  completion: Completion,
): AsyncGenerator<StreamedEvent> {
  for await (const { type, data } of events) {
    const facts = JSON.parse(required(data, "the data of an event"));
    if (type === "execution.started") yield toChunk(completion, { role: "assistant", content: "" });
    else if (type === "output.delta") yield toChunk(completion, { content: facts.text });
    else if (type === "execution.failed") yield toEvent(toOpenAiError(facts));
    else yield* toLastChunks(facts, completion);
  }
}

function* toLastChunks(
  { executionId, output, usage, metadata }: ExecutionResult,
  completion: Completion,
): Generator<StreamedEvent, void> {
  // Told again: without its words it would look like an empty answer.
  if (output === null) return yield toEvent(toOpenAiError(outputNotStored(executionId)));
  yield toChunk(completion, {}, toFinishReason(metadata.finishReason));
  if (completion.includeUsage)
    yield toEvent({ ...toFrame(completion), choices: [], usage: toOpenAiUsage(usage) });
  yield { data: "[DONE]" };
}

const toFrame = ({ id, model, created }: Completion) => ({
  id,
  object: "chat.completion.chunk",
  created: Math.floor(created.getTime() / 1000),
  model,
});

const toChunk = (completion: Completion, delta: object, finish_reason: FinishReason | null = null) =>
  toEvent({
    ...toFrame(completion),
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    ...(completion.includeUsage && { usage: null }),
  });
