import { type Finished, toAnswer } from "./ai-provider.answer.ts";
import { chatParts, type Part } from "./ai-provider.chat-stream.ts";
import { type Failure, toFailure } from "./ai-provider.faults.ts";
import { type Access, callOptions, languageModel, speaksChat } from "./ai-provider.models.ts";
import { type Deadline, type Patience, startDeadline, untilRepeat } from "./ai-provider.patience.ts";
import { type ProviderAnswer, type ProviderCall, ProviderFault } from "./ai-provider.ts";
import { brokenIn } from "./ai-provider.upstream.ts";

type Pieces = AsyncGenerator<string, ProviderAnswer, undefined>;
type Providers = Access & Patience;

/** The output as it comes, and at last the answer; a ProviderFault where it does not come whole. */
export async function* streamInTime(providers: Providers, call: ProviderCall): Pieces {
  const deadline = startDeadline(call.signal, providers.deadlines.totalMs);
  try {
    return yield* streamWithRepeats(providers, call, deadline);
  } finally {
    deadline.stop();
  }
}

async function* streamWithRepeats(providers: Providers, call: ProviderCall, deadline: Deadline): Pieces {
  for (let attempts = 1; ; attempts++) {
    call.signal.throwIfAborted();
    const attempt = new Attempt(providers, call, deadline.signal, attempts);
    try {
      return yield* attempt.pieces();
    } catch (error) {
      call.signal.throwIfAborted();
      await untilRepeat(providers, call, deadline, attempt.failureOf(error), attempts);
    } finally {
      attempt.hangUp();
    }
  }
}

/** One call of the provider, as far as it has come. */
class Attempt {
  readonly #providers: Providers;
  readonly #call: ProviderCall;
  readonly #attempts: number;
  readonly #end = new AbortController();
  readonly #signal: AbortSignal;
  /** The provider's, once it has answered. */
  #status: number | undefined;
  /** The model has begun to answer: from here on somebody may be billed. */
  #hasBegun = false;

  constructor(providers: Providers, call: ProviderCall, signal: AbortSignal, attempts: number) {
    this.#providers = providers;
    this.#call = call;
    this.#attempts = attempts;
    this.#signal = AbortSignal.any([signal, this.#end.signal]);
  }

  /** The SDK would read on behind an error, and so would a provider that only trickles never be left. */
  hangUp(): void {
    this.#end.abort();
  }

  async *pieces(): Pieces {
    let output = "";
    let modelName: string | undefined;
    let end: Pick<Finished, "finishReason" | "usage" | "providerMetadata"> | undefined;
    for await (const part of await this.#parts()) {
      this.#mustGoOn(part);
      if (part.type === "response-metadata") modelName = part.modelId;
      else if (part.type === "finish") end = part;
      else if (part.type === "text-delta" && part.delta !== "") {
        output += part.delta;
        yield part.delta;
      }
    }
    if (!end) throw new Error("the stream has no end");
    return toAnswer({ ...end, output, model: modelName }, this.#call, this.#attempts);
  }

  async #parts(): Promise<AsyncIterable<Part>> {
    const model = await languageModel({ ...this.#providers, fetch: this.#fetch }, this.#call);
    const options = { ...callOptions(this.#call, this.#signal), includeRawChunks: true };
    try {
      return (await model.doStream(options)).stream;
    } catch (error) {
      if (error instanceof TakenOver) return chatParts(error.body);
      throw error;
    }
  }

  /** An error in the stream ends it: the SDK would go on, and might call its end a clean one. */
  #mustGoOn(part: Part): void {
    if (part.type === "error") throw part.error;
    if (part.type === "raw") mustBeNoError(part.rawValue);
    else if (!("warnings" in part) && part.type !== "response-metadata") this.#hasBegun = true;
  }

  failureOf(error: unknown): Failure {
    if (error instanceof ProviderFault) return { fault: error, repeat: "never" };
    // After an abort the SDK and fetch each throw something of their own; the reason says what happened.
    if (this.#signal.aborted) return toFailure(this.#signal.reason, this.#call, this.#attempts);
    const failure = toFailure(brokenIn(this.#status, error), this.#call, this.#attempts);
    return this.#hasBegun ? { ...failure, repeat: "never" } : failure;
  }

  readonly #fetch: typeof globalThis.fetch = async (input, init) => {
    const response = await this.#providers.fetch(input, init);
    this.#status = response.status;
    if (!response.ok) return response;
    await mustNotBeJson(response);
    if (response.body && speaksChat(this.#call.provider)) throw new TakenOver(response.body);
    return response;
  };
}

/** A stream that we read ourselves: the request was the SDK's, and its part is over. */
class TakenOver extends Error {
  readonly body: ReadableStream<Uint8Array>;
  constructor(body: ReadableStream<Uint8Array>) {
    super("the stream is read elsewhere");
    this.body = body;
  }
}

/** What the provider said in the place of a stream, or in it; read for its codes, and told to nobody. */
class ToldInstead extends Error {
  readonly statusCode: number;
  readonly responseBody: string;
  constructor(statusCode: number, responseBody: string) {
    super("the provider told an error");
    this.statusCode = statusCode;
    this.responseBody = responseBody;
  }
}

/** Some tell a fault by 200, as JSON in the place of the stream that was asked for. */
async function mustNotBeJson(response: Response): Promise<void> {
  if (!/^application\/json\b/i.test(response.headers.get("content-type") ?? "")) return;
  throw new ToldInstead(response.status, await response.text());
}

/** An error frame in any provider's words. */
function mustBeNoError(frame: unknown): void {
  if (typeof frame !== "object" || frame === null) return;
  if (("error" in frame && frame.error) || ("type" in frame && frame.type === "error"))
    throw new ToldInstead(200, JSON.stringify(frame));
}
