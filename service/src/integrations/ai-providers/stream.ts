import { followSignal } from "../../core/follow-signal.ts";
import { GrowingText } from "../../core/growing-text.ts";
import { readEach } from "../../core/read-each.ts";
import type { PlainResponse, PostText } from "../egress/guarded-fetch.ts";
import {
  type OnPiece,
  type ProviderAnswer,
  type ProviderCall,
  ProviderError,
  type ProviderId,
} from "./ai-provider.ts";
import { type CallResult, toAnswer } from "./answer.ts";
import type { AnswerAllocation, AnswerMemory } from "./answer-memory.ts";
import { fetchForCall, fetchOptionsOf } from "./call-fetch.ts";
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
import { readText } from "./read-text.ts";
import { type RetryOptions, startDeadline, waitForRetry } from "./retry.ts";
import { ErrorResponseFound, withResponseStatus } from "./upstream-error.ts";

type Providers = ProviderAccess & RetryOptions & { postText: PostText; answerMemory: AnswerMemory };

/** UTF-16 units, several times the longest answers of large models. A run keeps its output in memory until it ends. */
const MAX_OUTPUT = 4 * 1024 * 1024;

const MEMORY_FULL =
  "The answer was aborted: it exceeded the memory that other running answers leave in this process. Run it again when fewer runs are active, or limit the answer with maxTokens. The provider may bill the output so far.";

/** An unknown maximum of a model is found by at most this many refused calls, which cost nothing. */
const MAX_LOWERED = 2;

/** Returns the answer, after its pieces. Throws a ProviderError if the answer is incomplete. */
export async function streamWithDeadline(
  providers: Providers,
  request: ProviderCall,
  onPiece: OnPiece,
): Promise<ProviderAnswer> {
  const deadline = startDeadline(request, providers);
  let call = request;
  let lowered = 0;
  try {
    for (let attempts = 1; ; attempts++) {
      call.signal.throwIfAborted();
      const attempt = new Attempt(providers, call, onPiece, deadline.signal, attempts);
      try {
        return await attempt.readAnswer();
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
  } finally {
    deadline.stop();
  }
}

/** One for all, because without a reason each abort creates an error with its stack. */
const ended = new Error("the attempt has ended");

class Attempt {
  readonly #providers: Providers;
  readonly #call: ProviderCall;
  readonly #onPiece: OnPiece;
  readonly #attempts: number;
  readonly #end = new AbortController();
  readonly #unfollow: () => void;
  readonly #memory: AnswerAllocation;
  /** The provider's status, after its response began. */
  #status: number | undefined;
  /** The model has begun to answer, so the attempt may be billed. */
  #hasBegun = false;
  readonly #output = new GrowingText();
  #modelName: string | undefined;
  #finish: Pick<CallResult, "finishReason" | "usage" | "providerMetadata"> | undefined;

  constructor(
    providers: Providers,
    call: ProviderCall,
    onPiece: OnPiece,
    signal: AbortSignal,
    attempts: number,
  ) {
    this.#providers = providers;
    this.#call = call;
    this.#onPiece = onPiece;
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

  /** Throws if the answer has no end. */
  async readAnswer(): Promise<ProviderAnswer> {
    await this.#readParts();
    if (!this.#finish) throw new Error("the stream has no end");
    const result = { ...this.#finish, output: String(this.#output), model: this.#modelName };
    return toAnswer(result, this.#call, this.#attempts);
  }

  readonly #onPart = (part: Part): Promise<void> | undefined => {
    this.#throwIfFailed(part);
    const { progress } = this.#call;
    if (progress && "delta" in part) progress.outputBytes += Buffer.byteLength(part.delta);
    if (part.type === "raw") this.#modelName ??= modelVersionIn(part.rawValue);
    else if (part.type === "response-metadata") this.#modelName = part.modelId ?? this.#modelName;
    else if (part.type === "finish") this.#finish = part;
    else if (part.type === "text-delta" && part.delta !== "") return this.#addText(part.delta);
    return undefined;
  };

  #addText(text: string): Promise<void> | undefined {
    if (this.#output.length + text.length > MAX_OUTPUT) throw this.#tooLong();
    this.#allocate(text.length);
    this.#output.add(text);
    return this.#onPiece(text);
  }

  async #readParts(): Promise<void> {
    const call = this.#call;
    const { baseUrls } = this.#providers;
    if (hasPackage(call)) return this.#readPackage({ baseUrls, fetch: this.#fetch }, call);
    const fetchOptions = { ...fetchOptionsOf(call), signal: this.#end.signal };
    return this.#readChat(await sendChatRequest(this.#providers, call, fetchOptions));
  }

  async #readChat({ status, headers, body }: PlainResponse): Promise<void> {
    this.#status = status;
    if (!isSuccess(status))
      throw new ErrorResponseFound(status, await this.#readText(body), toHeaderRecord(headers));
    if (!isJson(headers["content-type"])) return readChatStream(body ?? noBody(), this.#onPart);
    const text = await this.#readText(body);
    const completion = parseCompletion(text);
    // The text is parsed: the output allocates its own memory.
    this.#memory.release();
    if (completion === undefined) throw new ErrorResponseFound(status, text);
    readChatCompletion(completion, this.#onPart);
  }

  async #readPackage(access: ProviderAccess, call: Parameters<typeof languageModel>[1]): Promise<void> {
    const model = await languageModel(access, call);
    const options = { ...callOptions(this.#call, this.#end.signal), includeRawChunks: true };
    let parts: ReadableStream<Part>;
    try {
      parts = (await model.doStream(options)).stream;
    } catch (error) {
      if (error instanceof ChatStreamFound) return readChatStream(error.body, this.#onPart);
      if (error instanceof CompletionFound) return readChatCompletion(error.completion, this.#onPart);
      throw error;
    }
    return readEach(parts, this.#onPart);
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

  #readText(body: AsyncIterable<Uint8Array> | null): Promise<string> {
    return readText(body, (bytes) => this.#allocate(bytes));
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

  /** For the SDK, which builds the request and reads only what has no chat stream. */
  readonly #fetch: typeof globalThis.fetch = async (input, init) => {
    const { provider } = this.#call;
    const response = await fetchForCall(this.#providers.fetch, this.#call)(input, init);
    this.#status = response.status;
    if (!response.ok) return new Response((await this.#readText(response.body)) || null, response);
    if (isJson(response.headers.get("content-type"))) {
      const found = readJsonResponse(provider, response.status, await this.#readText(response.body));
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

async function* noBody(): AsyncGenerator<Uint8Array> {}

const isSuccess = (status: number): boolean => status >= 200 && status < 300;

const isJson = (contentType: string | string[] | null | undefined): boolean =>
  /^application\/json\b/i.test(String(contentType ?? ""));

const toHeaderRecord = (headers: PlainResponse["headers"]): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value = ""]) => [name, String(value)]));

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
