import type { ChatCompletion, CreateChatCompletion, Execute, ExecutionResult } from "@stoa/contract";
import { findProductToRun } from "../../catalog/products/detail.ts";
import type { Context, Member } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { EventStreamResponse, type RequestInfo } from "../../platform/http/route.ts";
import { mustFind } from "../executions/executions.ts";
import { runsAsStream, streamExecution } from "../executions/stream-events.ts";
import { defaultKeyFor } from "../prompt-runs/default-key.ts";
import { executePrompt, resumePrompt } from "../prompt-runs/execute.ts";
import { mustBeBought, versionToRun } from "../prompt-runs/prepare-run.ts";
import { promptKind } from "../prompt-runs/prompt-kind.ts";
import { type Completion, finishReasonOf, inChunks, usageOf } from "./chunks.ts";
import { type Said, saidIn, variablesOf } from "./extract-variables.ts";
import { modelId, toNamed } from "./models.ts";
import { inItsTerms } from "./openai-fields.ts";

/** Answered in the words of this door, so that nothing but `stream` says how. */
const asTheBodySays = { acceptsEvents: false, prefer: { respondAsync: false, waitSeconds: null } };

/** Runs a prompt once, as `POST /ai/execute` does. Its errors name the fields of this request. */
export async function complete(
  ctx: Context,
  caller: Member,
  body: CreateChatCompletion,
  { disconnectSignal }: Pick<RequestInfo, "disconnectSignal">,
): Promise<ChatCompletion | EventStreamResponse> {
  const said = saidIn(body);
  const created = ctx.now();
  try {
    const wish = await toWish(ctx, caller, body, said);
    const model = modelId(wish.productId, wish.options.version!);
    const answer = await executePrompt(ctx, caller, wish, { ...asTheBodySays, disconnectSignal });
    if (!(answer instanceof EventStreamResponse))
      return toCompletion(answer as ExecutionResult, model, created);
    const includeUsage = body.stream_options?.include_usage ?? false;
    return retold(answer, { id: answer.name!, model, created, includeUsage });
  } catch (error) {
    throw inItsTerms(error, said.at);
  }
}

/** Of a run that was written under the same Idempotency-Key; null: the provider refused it. */
export async function resumeCompletion(
  ctx: Context,
  caller: Member,
  executionId: string,
  body: CreateChatCompletion,
): Promise<ChatCompletion | EventStreamResponse | null> {
  try {
    const answer = await resumePrompt(ctx, caller, executionId, body.stream ? "stream" : "sync");
    if (answer === null) return null;
    const { productId, productVersion, createdAt } = await mustFind(ctx, caller, executionId);
    const model = modelId(toId("prod", productId), productVersion);
    if (!(answer instanceof EventStreamResponse))
      return toCompletion(answer as ExecutionResult, model, createdAt);
    const includeUsage = body.stream_options?.include_usage ?? false;
    return retold(answer, { id: executionId, model, created: createdAt, includeUsage });
  } catch (error) {
    throw inItsTerms(error, saidIn(body).at);
  }
}

/** The version is looked up once, so that the answer names the one that ran. */
async function toWish(
  ctx: Context,
  caller: Member,
  body: CreateChatCompletion,
  said: Said,
): Promise<Execute> {
  const { productId, version } = toNamed(body.model);
  const product = await findProductToRun(ctx, caller, productId);
  mustBeBought(product);
  const runnable = await versionToRun(ctx, product, version);
  const { apiKeyId, model } = body.metadata ?? {};
  const maxTokens = body.max_completion_tokens ?? body.max_tokens ?? undefined;
  return {
    productId,
    apiKeyId: apiKeyId ?? (await defaultKeyFor(ctx, caller, product, model)),
    variables: variablesOf(said, runnable.variables),
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
      finish_reason: finishReasonOf(metadata.finishReason),
    },
  ],
  usage: usageOf(usage),
});

const WITH_USAGE = "+usage";

const nameOf = ({ id, includeUsage }: Pick<Completion, "id" | "includeUsage">) =>
  id + (includeUsage ? WITH_USAGE : "");

/** The name of the stream of a run under way; null: it is answered whole. */
export const joinCompletion = async (
  ctx: Context,
  caller: Member,
  executionId: string,
  { stream_options: options }: CreateChatCompletion,
): Promise<string | null> =>
  (await runsAsStream(ctx, caller, executionId))
    ? nameOf({ id: executionId, includeUsage: options?.include_usage ?? false })
    : null;

/** Its name says how it was told, for whoever must tell it again. */
const retold = (
  { events, onEnd: ended, endSignal: until }: EventStreamResponse,
  completion: Completion,
): EventStreamResponse =>
  new EventStreamResponse({
    onEnd: ended,
    endSignal: until,
    name: nameOf(completion),
    events: (signal) => inChunks(events(signal), completion),
  });

/** The chunks of a run once more, for a repeat of its Idempotency-Key. */
export async function completeAgain(
  ctx: Context,
  caller: Member,
  name: string,
): Promise<EventStreamResponse> {
  const id = name.replace(WITH_USAGE, "");
  // First, since a stream that nobody hears would never be ended.
  const { productId, productVersion, createdAt } = await mustFind(ctx, caller, id);
  const stream = await streamExecution(ctx, caller, id, null, { PROMPT: promptKind });
  const model = modelId(toId("prod", productId), productVersion);
  return retold(stream, { id, model, created: createdAt, includeUsage: name !== id });
}
