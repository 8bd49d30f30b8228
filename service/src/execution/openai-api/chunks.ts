import type { ChatCompletion, ExecutionResult } from "@stoa/contract";
import { required } from "../../core/required.ts";
import { toOpenAiError } from "../../platform/http/openai-error.ts";
import type { StreamedEvent } from "../../platform/http/route.ts";
import { outputNotStored } from "../prompt-runs/execute.ts";

type FinishReason = ChatCompletion["choices"][number]["finish_reason"];

/** Fields that each chunk of a completion repeats. */
export interface Completion {
  id: string;
  model: string;
  created: Date;
  /** Whether the last chunk contains the usage. */
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
 * Converts events to OpenAI's chunks (https://platform.openai.com/docs/api-reference/chat-streaming), which have no ids. `[DONE]`
 * follows only a complete answer; else the stream ends with an `error`, which clients throw.
 */
export async function* toChunks(
  events: AsyncIterable<StreamedEvent>,
  completion: Completion,
): AsyncGenerator<StreamedEvent> {
  for await (const { type, data } of events) {
    const payload = JSON.parse(required(data, "the data of an event"));
    if (type === "execution.started") yield toChunk(completion, { role: "assistant", content: "" });
    else if (type === "output.delta") yield toChunk(completion, { content: payload.text });
    else if (type === "execution.failed") yield toEvent(toOpenAiError(payload));
    else yield* toLastChunks(payload, completion);
  }
}

function* toLastChunks(
  { executionId, output, usage, metadata }: ExecutionResult,
  completion: Completion,
): Generator<StreamedEvent, void> {
  // A repeated request whose output is not stored: without this error the answer would look empty.
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
