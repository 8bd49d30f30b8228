import type { ChatCompletion, ExecutionResult } from "@stoa/contract";
import { type ItemSource, type OnItem, type PushSource, readEach } from "../../core/read-each.ts";
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
export const toChunks = (
  events: ItemSource<StreamedEvent>,
  completion: Completion,
): PushSource<StreamedEvent> => ({
  readEach: (onChunk) => readEach(events, (event) => passEach(chunksOf(event, completion), onChunk)),
});

function chunksOf({ type, data }: StreamedEvent, completion: Completion): StreamedEvent[] {
  const payload = JSON.parse(required(data, "the data of an event"));
  if (type === "execution.started") return [toChunk(completion, { role: "assistant", content: "" })];
  if (type === "output.delta") return [toChunk(completion, { content: payload.text })];
  if (type === "execution.failed") return [toEvent(toOpenAiError(payload))];
  return toLastChunks(payload, completion);
}

function toLastChunks(
  { executionId, output, usage, metadata }: ExecutionResult,
  completion: Completion,
): StreamedEvent[] {
  // A repeated request whose output is not stored: without this error the answer would look empty.
  if (output === null) return [toEvent(toOpenAiError(outputNotStored(executionId)))];
  const usageFrame = { ...toFrame(completion), choices: [], usage: toOpenAiUsage(usage) };
  return [
    toChunk(completion, {}, toFinishReason(metadata.finishReason)),
    ...(completion.includeUsage ? [toEvent(usageFrame)] : []),
    { data: "[DONE]" },
  ];
}

function passEach<Item>(items: readonly Item[], onItem: OnItem<Item>): Promise<void> | undefined {
  for (const [at, item] of items.entries()) {
    const busy = onItem(item);
    if (busy !== undefined) return busy.then(() => passEach(items.slice(at + 1), onItem));
  }
  return undefined;
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
