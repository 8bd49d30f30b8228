import { followSignal } from "../../core/follow-signal.ts";
import { GrowingText } from "../../core/growing-text.ts";
import { type ProviderAnswer, type ProviderCall, ProviderError, type ProviderId } from "./ai-provider.ts";
import { type CallResult, toAnswer } from "./answer.ts";
import type { AnswerAllocation, AnswerMemory } from "./answer-memory.ts";
import { fetchForCall } from "./call-fetch.ts";
import { sendChatRequest } from "./chat-request.ts";
import { type Part, readChatCompletion, readChatStream } from "./chat-stream.ts";
import { hasManyParts } from "./many-parts.ts";
import {
  callOptions,
  hasPackage,
  languageModel,
  type ProviderAccess,
  usesChatCompletions,
} from "./models.ts";
import { type CallFailure, toFailure } from "./provider-errors.ts";
import { type Deadline, type RetryOptions, startDeadline, waitForRetry } from "./retry.ts";
import { ErrorResponseFound, withResponseStatus } from "./upstream-error.ts";

type Pieces = AsyncGenerator<string, ProviderAnswer, undefined>;
type Providers = ProviderAccess & RetryOptions & { answerMemory: AnswerMemory };

/** UTF-16 units, several times the longest answers of large models. A run keeps its output in memory until it ends. */
const MAX_OUTPUT = 4 * 1024 * 1024;

const MEMORY_FULL =
  "The answer was aborted: it exceeded the memory that other running answers leave in this process. Run it again when fewer runs are active, or limit the answer with maxTokens. The provider may bill the output so far.";

/** Yields the output and returns the answer. Throws a ProviderError if the answer is incomplete. */
export async function* streamWithDeadline(providers: Providers, call: ProviderCall): Pieces {
  const deadline = startDeadline(call, providers);
  try {
    return yield* streamWithRetries(providers, call, deadline);
  } finally {
    deadline.stop();
  }
}

/** An unknown maximum of a model is found by at most this many refused calls, which cost nothing. */
const MAX_LOWERED = 2;

async function* streamWithRetries(providers: Providers, request: ProviderCall, deadline: Deadline): Pieces {
  let call = request;
  let lowered = 0;
  for (let attempts = 1; ; attempts++) {
    call.signal.throwIfAborted();
    const attempt = new Attempt(providers, call, deadline.signal, attempts);
    try {
      return yield* attempt.pieces();
    } catch (error) {
      call.signal.throwIfAborted();
      const failure = attempt.failureOf(error);
      // Only attempts that are not billed are repeated.
      if (failure.retry !== "never") call.progress?.reset();
      if (failure.capTokens !== undefined && lowered++ < MAX_LOWERED) {
        call = { ...call, options: { ...call.options, capTokens: failure.capTokens } };
        continue;
      }
      await waitForRetry(providers, call, deadline, failure, attempts);
    } finally {
      attempt.abort();
    }
  }
}

/** One for all, because without a reason each abort creates an error with its stack. */
const ended = new Error("the attempt has ended");

class Attempt {
  readonly #providers: Providers;
  readonly #call: ProviderCall;
  readonly #attempts: number;
  readonly #end = new AbortController();
  readonly #unfollow: () => void;
  readonly #memory: AnswerAllocation;
  /** The provider's status, after its response began. */
  #status: number | undefined;
  /** The model has begun to answer, so the attempt may be billed. */
  #hasBegun = false;

  constructor(providers: Providers, call: ProviderCall, signal: AbortSignal, attempts: number) {
    this.#providers = providers;
    this.#call = call;
    this.#attempts = attempts;
    this.#unfollow = followSignal(this.#end, signal);
    this.#memory = providers.answerMemory.allocate();
  }

  /** Without this the SDK reads on after an error, and a slow provider keeps the connection. */
  abort(): void {
    this.#unfollow();
    this.#end.abort(ended);
    this.#memory.release();
  }

  async *pieces(): Pieces {
    const output = new GrowingText();
    const { progress } = this.#call;
    let modelName: string | undefined;
    let end: Pick<CallResult, "finishReason" | "usage" | "providerMetadata"> | undefined;
    for await (const part of await this.#parts()) {
      this.#throwIfFailed(part);
      if (progress && "delta" in part) progress.outputBytes += Buffer.byteLength(part.delta);
      if (part.type === "raw") modelName ??= modelVersionIn(part.rawValue);
      if (part.type === "response-metadata") modelName = part.modelId ?? modelName;
      else if (part.type === "finish") end = part;
      else if (part.type === "text-delta" && part.delta !== "") {
        if (output.length + part.delta.length > MAX_OUTPUT) throw this.#tooLong();
        this.#allocate(part.delta.length);
        output.add(part.delta);
        yield part.delta;
      }
    }
    if (!end) throw new Error("the stream has no end");
    return toAnswer({ ...end, output: String(output), model: modelName }, this.#call, this.#attempts);
  }

  async #parts(): Promise<AsyncIterable<Part>> {
    const call = this.#call;
    const { baseUrls } = this.#providers;
    if (hasPackage(call)) return this.#partsOfPackage({ baseUrls, fetch: this.#fetch }, call);
    return this.#readChat(await sendChatRequest({ baseUrls, fetch: this.#send }, call, this.#end.signal));
  }

  async #readChat(response: Response): Promise<AsyncIterable<Part>> {
    const { status, headers, body } = response;
    if (!response.ok)
      throw new ErrorResponseFound(status, await this.#textOf(response), Object.fromEntries(headers));
    if (!isJson(response))
      return readChatStream(body ?? new ReadableStream({ start: (empty) => empty.close() }));
    const text = await this.#textOf(response);
    const completion = parseCompletion(text);
    // The text is parsed: the output allocates its own memory.
    this.#memory.release();
    if (completion === undefined) throw new ErrorResponseFound(status, text);
    return readChatCompletion(completion);
  }

  async #partsOfPackage(
    access: ProviderAccess,
    call: Parameters<typeof languageModel>[1],
  ): Promise<AsyncIterable<Part>> {
    const model = await languageModel(access, call);
    const options = { ...callOptions(this.#call, this.#end.signal), includeRawChunks: true };
    try {
      return (await model.doStream(options)).stream;
    } catch (error) {
      if (error instanceof ChatStreamFound) return readChatStream(error.body);
      if (error instanceof CompletionFound) return readChatCompletion(error.completion);
      throw error;
    }
  }

  #tooLong(): ProviderError {
    const facts = { provider: this.#call.provider, attempts: this.#attempts, reason: "answer_too_long" };
    const message = `The provider's answer is longer than ${MAX_OUTPUT} characters: set maxTokens.`;
    return new ProviderError("PROVIDER_BAD_RESPONSE", facts, message);
  }

  #allocate(characters: number): void {
    if (this.#memory.tryGrow(characters)) return;
    // Without Retry-After: the provider may bill its output, so no client should repeat the call automatically.
    const facts = { provider: this.#call.provider, attempts: this.#attempts, reason: "memory_full" };
    throw new ProviderError("SERVICE_UNAVAILABLE", facts, MEMORY_FULL);
  }

  async #textOf(response: Response): Promise<string> {
    const decoder = new TextDecoder();
    let text = "";
    for await (const bytes of response.body ?? []) {
      this.#allocate(bytes.length);
      text += decoder.decode(bytes, { stream: true });
    }
    return text + decoder.decode();
  }

  /** The SDK continues after an error in the stream and may report a clean end. */
  #throwIfFailed(part: Part): void {
    if (part.type === "error") throw part.error;
    if (part.type === "raw") throwErrorFrame(part.rawValue);
    else if (!("warnings" in part) && part.type !== "response-metadata") this.#hasBegun = true;
  }

  failureOf(error: unknown): CallFailure {
    if (error instanceof ProviderError) return { error: error, retry: "never" };
    // After an abort the SDK and fetch throw errors of their own; the reason is the real cause.
    if (this.#end.signal.aborted) return toFailure(this.#end.signal.reason, this.#call, this.#attempts);
    const failure = toFailure(withResponseStatus(this.#status, error), this.#call, this.#attempts);
    return this.#hasBegun ? { ...failure, retry: "never" } : failure;
  }

  readonly #send: typeof globalThis.fetch = async (input, init) => {
    const response = await fetchForCall(this.#providers.fetch, this.#call)(input, init);
    this.#status = response.status;
    return response;
  };

  /** For the SDK, which builds the request and reads only what has no chat stream. */
  readonly #fetch: typeof globalThis.fetch = async (input, init) => {
    const { provider } = this.#call;
    const response = await this.#send(input, init);
    if (!response.ok) return new Response((await this.#textOf(response)) || null, response);
    if (isJson(response)) {
      const found = readJsonResponse(provider, response.status, await this.#textOf(response));
      // The text is parsed: the output allocates its own memory.
      this.#memory.release();
      throw found;
    }
    if (response.body && usesChatCompletions(provider)) throw new ChatStreamFound(response.body);
    return response;
  };
}

/** Google's field, which its package drops. */
function modelVersionIn(frame: unknown): string | undefined {
  const version = (frame as { modelVersion?: unknown } | null)?.modelVersion;
  return typeof version === "string" && version !== "" ? version : undefined;
}

/** Thrown to take the response from the SDK, which only builds the request. */
class ChatStreamFound extends Error {
  readonly body: ReadableStream<Uint8Array>;
  constructor(body: ReadableStream<Uint8Array>) {
    super("the stream is read elsewhere");
    this.body = body;
  }
}

class CompletionFound extends Error {
  readonly completion: unknown;
  constructor(completion: unknown) {
    super("the provider does not stream");
    this.completion = completion;
  }
}

const isJson = (response: Response): boolean =>
  /^application\/json\b/i.test(response.headers.get("content-type") ?? "");

/** Some providers report an error with status 200 and JSON, and some servers do not stream. */
function readJsonResponse(
  provider: ProviderId,
  status: number,
  text: string,
): ErrorResponseFound | CompletionFound {
  const completion = usesChatCompletions(provider) ? parseCompletion(text) : undefined;
  return completion === undefined ? new ErrorResponseFound(status, text) : new CompletionFound(completion);
}

function parseCompletion(text: string): unknown {
  if (hasManyParts(text)) return undefined;
  try {
    const body = JSON.parse(text);
    return body?.error || !body?.choices?.[0]?.message ? undefined : body;
  } catch {
    return undefined;
  }
}

function throwErrorFrame(frame: unknown): void {
  if (typeof frame !== "object" || frame === null) return;
  if (("error" in frame && frame.error) || ("type" in frame && frame.type === "error"))
    throw new ErrorResponseFound(200, JSON.stringify(frame));
}
