import type { ChatCompletion, CreateChatCompletion, Execute, ExecutionResult } from "@stoa/contract";
import { findProductToRun } from "../../catalog/products/detail.ts";
import type { Context, Member } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { EventStreamResponse, type RequestInfo } from "../../platform/http/route.ts";
import { mustFindExecution } from "../executions/executions.ts";
import { isStreaming, streamExecutionEvents } from "../executions/stream-events.ts";
import { findDefaultKey } from "../prompt-runs/default-key.ts";
import { executePrompt, resumePrompt } from "../prompt-runs/execute.ts";
import { findVersionToRun, mustBeEntitled } from "../prompt-runs/prepare-run.ts";
import { type Completion, toChunks, toFinishReason, toOpenAiUsage } from "./chunks.ts";
import { type ExtractedInput, extractInput, toVariables } from "./extract-variables.ts";
import { parseModelId, toModelId } from "./models.ts";
import { withOpenAiFields } from "./openai-fields.ts";

/** The response format depends on `stream`, not on headers. */
const NO_PREFERENCES = { acceptsEvents: false, prefer: { respondAsync: false, waitSeconds: null } };

/** Runs a prompt as `POST /ai/execute` does. Errors name the fields of this request. */
export async function createCompletion(
  ctx: Context,
  caller: Member,
  body: CreateChatCompletion,
  { disconnectSignal }: Pick<RequestInfo, "disconnectSignal">,
): Promise<ChatCompletion | EventStreamResponse> {
  const extracted = extractInput(body);
  const created = ctx.now();
  try {
    const input = await toExecuteInput(ctx, caller, body, extracted);
    const model = toModelId(input.productId, input.options.version!);
    const answer = await executePrompt(ctx, caller, input, { ...NO_PREFERENCES, disconnectSignal });
    if (!(answer instanceof EventStreamResponse))
      return toCompletion(answer as ExecutionResult, model, created);
    const includeUsage = body.stream_options?.include_usage ?? false;
    return toChunkStream(answer, { id: answer.name!, model, created, includeUsage });
  } catch (error) {
    throw withOpenAiFields(error, extracted.path);
  }
}

/** Responds to a repeated Idempotency-Key; null: the provider refused the call. */
export async function resumeCompletion(
  ctx: Context,
  caller: Member,
  executionId: string,
  body: CreateChatCompletion,
): Promise<ChatCompletion | EventStreamResponse | null> {
  try {
    const answer = await resumePrompt(ctx, caller, executionId, body.stream ? "stream" : "sync");
    if (answer === null) return null;
    const { productId, productVersion, createdAt } = await mustFindExecution(ctx, caller, executionId);
    const model = toModelId(toId("prod", productId), productVersion);
    if (!(answer instanceof EventStreamResponse))
      return toCompletion(answer as ExecutionResult, model, createdAt);
    const includeUsage = body.stream_options?.include_usage ?? false;
    return toChunkStream(answer, { id: executionId, model, created: createdAt, includeUsage });
  } catch (error) {
    throw withOpenAiFields(error, extractInput(body).path);
  }
}

/** Looks up the version once, so that the answer names the version that ran. */
async function toExecuteInput(
  ctx: Context,
  caller: Member,
  body: CreateChatCompletion,
  extracted: ExtractedInput,
): Promise<Execute> {
  const { productId, version } = parseModelId(body.model);
  const product = await findProductToRun(ctx, caller, productId);
  mustBeEntitled(product);
  const runnable = await findVersionToRun(ctx, product, version);
  const { apiKeyId, model } = body.metadata ?? {};
  const maxTokens = body.max_completion_tokens ?? body.max_tokens ?? undefined;
  return {
    productId,
    apiKeyId: apiKeyId ?? (await findDefaultKey(ctx, caller, product, model)),
    variables: toVariables(extracted, runnable.variables),
    stream: body.stream ?? false,
    options: {
      model,
      temperature: body.temperature ?? undefined,
      maxTokens,
      version: runnable.version,
      store: body.store ?? true,
    },
  };
}

const toCompletion = (
  { executionId, output, usage, metadata }: ExecutionResult,
  model: string,
  created: Date,
): ChatCompletion => ({
  id: executionId,
  object: "chat.completion",
  created: Math.floor(created.getTime() / 1000),
  model,
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: output, refusal: null },
      logprobs: null,
      finish_reason: toFinishReason(metadata.finishReason),
    },
  ],
  usage: toOpenAiUsage(usage),
});

const WITH_USAGE = "+usage";

const toStreamName = ({ id, includeUsage }: Pick<Completion, "id" | "includeUsage">) =>
  id + (includeUsage ? WITH_USAGE : "");

/** The name of the running stream; null: the run does not stream. */
export const joinCompletion = async (
  ctx: Context,
  caller: Member,
  executionId: string,
  { stream_options: options }: CreateChatCompletion,
): Promise<string | null> =>
  (await isStreaming(ctx, caller, executionId))
    ? toStreamName({ id: executionId, includeUsage: options?.include_usage ?? false })
    : null;

/** The name of the stream contains `includeUsage`, for a replay. */
const toChunkStream = (
  { events, onEnd, endSignal }: EventStreamResponse,
  completion: Completion,
): EventStreamResponse =>
  new EventStreamResponse({
    onEnd,
    endSignal,
    name: toStreamName(completion),
    events: (signal) => toChunks(events(signal), completion),
  });

/** Sends the chunks again for a repeated Idempotency-Key. */
export async function replayCompletion(
  ctx: Context,
  caller: Member,
  name: string,
): Promise<EventStreamResponse> {
  const id = name.replace(WITH_USAGE, "");
  // Before the stream, because only the response can end a stream.
  const { productId, productVersion, createdAt } = await mustFindExecution(ctx, caller, id);
  const stream = await streamExecutionEvents(ctx, caller, id, null);
  const model = toModelId(toId("prod", productId), productVersion);
  return toChunkStream(stream, { id, model, created: createdAt, includeUsage: name !== id });
}
