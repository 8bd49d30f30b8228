import { type EmbeddingProvider, embeddingProviders } from "@stoa/contract";
import {
  type EmbeddingAnswer,
  type EmbeddingCall,
  hasEmbeddings,
  ProviderError,
  type ProviderId,
} from "./ai-provider.ts";
import { toModelName } from "./answer.ts";
import type { AnswerAllocation, AnswerMemory } from "./answer-memory.ts";
import { fetchForCall } from "./call-fetch.ts";
import { mustHaveBaseUrl, type ProviderAccess } from "./models.ts";
import { type CallFailure, toFailure } from "./provider-errors.ts";
import { readEmbeddings } from "./read-embeddings.ts";
import { readText } from "./read-text.ts";
import { type Deadline, type RetryOptions, startDeadline, waitForRetry } from "./retry.ts";
import { ErrorResponseFound, withResponseStatus } from "./upstream-error.ts";

type Providers = ProviderAccess & RetryOptions & { answerMemory: AnswerMemory };
type SupportedCall = EmbeddingCall & { provider: Exclude<EmbeddingProvider, "sandbox"> };

/** Returns the vectors of texts. Throws a ProviderError if the answer is no complete list of vectors. */
export async function embedWithDeadline(providers: Providers, call: EmbeddingCall): Promise<EmbeddingAnswer> {
  mustHaveEmbeddings(call);
  const deadline = startDeadline(call, providers);
  try {
    return await embedWithRetries(providers, call, deadline);
  } finally {
    deadline.stop();
  }
}

function mustHaveEmbeddings(call: EmbeddingCall): asserts call is SupportedCall {
  const { provider } = call;
  if (hasEmbeddings(provider)) return;
  const info = { provider, attempts: 0, reason: "no_embeddings" };
  throw new ProviderError("PROVIDER_NOT_SUPPORTED", info, noEmbeddingsReason(provider));
}

export const noEmbeddingsReason = (provider: ProviderId): string =>
  `Embeddings of ${provider} are not supported: use a key of ${embeddingProviders.join(", ")}.`;

async function embedWithRetries(
  providers: Providers,
  call: SupportedCall,
  deadline: Deadline,
): Promise<EmbeddingAnswer> {
  for (let attempts = 1; ; attempts++) {
    call.signal.throwIfAborted();
    const attempt = new EmbeddingAttempt(providers, call, deadline.signal, attempts);
    try {
      return await attempt.embed();
    } catch (error) {
      call.signal.throwIfAborted();
      const failure = attempt.failureOf(error);
      // Only attempts that are not billed are repeated.
      if (failure.retry !== "never") call.progress?.reset();
      await waitForRetry(providers, call, deadline, failure, attempts);
    }
  }
}

/** The limit of a response: the most texts of one call with the most dimensions need less. */
const MAX_RESPONSE_BYTES = 8 * 1024 * 1024;

class EmbeddingAttempt {
  readonly #providers: Providers;
  readonly #call: SupportedCall;
  readonly #signal: AbortSignal;
  readonly #attempts: number;
  readonly #memory: AnswerAllocation;
  /** The provider's status, after its response began. */
  #status: number | undefined;
  #bytes = 0;

  constructor(providers: Providers, call: SupportedCall, signal: AbortSignal, attempts: number) {
    this.#providers = providers;
    this.#call = call;
    this.#signal = signal;
    this.#attempts = attempts;
    this.#memory = providers.answerMemory.allocate();
  }

  async embed(): Promise<EmbeddingAnswer> {
    try {
      const access = { baseUrls: this.#providers.baseUrls, fetch: this.#send };
      const response = await sendEmbeddingRequest(access, this.#call, this.#signal);
      const text = await readText(response.body, (bytes) => this.#allocate(bytes));
      if (!response.ok)
        throw new ErrorResponseFound(response.status, text, Object.fromEntries(response.headers));
      const { vectors, model, usage } = readEmbeddings(text, this.#call, this.#attempts);
      return { vectors, model: toModelName(model ?? this.#call.model), usage, attempts: this.#attempts };
    } finally {
      this.#memory.release();
    }
  }

  failureOf(error: unknown): CallFailure {
    if (error instanceof ProviderError) return { error, retry: "never" };
    // After an abort the SDK and fetch throw errors of their own; the reason is the real cause.
    const cause = this.#signal.aborted ? this.#signal.reason : withResponseStatus(this.#status, error);
    return toFailure(cause, { provider: this.#call.provider, model: this.#call.model }, this.#attempts);
  }

  readonly #send: typeof globalThis.fetch = async (input, init) => {
    const response = await fetchForCall(this.#providers.fetch, this.#call)(input, init);
    this.#status = response.status;
    return response;
  };

  #allocate(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > MAX_RESPONSE_BYTES) throw this.#failed("response_too_large");
    if (!this.#memory.tryGrow(bytes)) throw this.#failed("memory_full", "SERVICE_UNAVAILABLE");
  }

  #failed(
    reason: string,
    code: "PROVIDER_BAD_RESPONSE" | "SERVICE_UNAVAILABLE" = "PROVIDER_BAD_RESPONSE",
  ): ProviderError {
    return new ProviderError(code, { provider: this.#call.provider, attempts: this.#attempts, reason });
  }
}

/** Thrown to take the response from the SDK, which only builds the request: it ignores the order and the size of vectors. */
class ResponseFound extends Error {
  readonly response: Response;
  constructor(response: Response) {
    super("the response is read elsewhere");
    this.response = response;
  }
}

async function sendEmbeddingRequest(
  access: ProviderAccess,
  call: SupportedCall,
  signal: AbortSignal,
): Promise<Response> {
  if (call.provider !== "openai" && call.provider !== "mistral")
    return sendPlainRequest(access, call, signal);
  const fetch: typeof globalThis.fetch = async (input, init) => {
    throw new ResponseFound(await access.fetch(input, init));
  };
  const model = await embeddingModel({ ...access, fetch }, { ...call, provider: call.provider });
  try {
    await model.doEmbed({ values: [...call.texts], abortSignal: signal });
  } catch (error) {
    if (error instanceof ResponseFound) return error.response;
    throw error;
  }
  throw new Error("the package sent no request");
}

async function embeddingModel(
  access: ProviderAccess,
  call: EmbeddingCall & { provider: "openai" | "mistral" },
) {
  const settings = { apiKey: call.apiKey, baseURL: mustHaveBaseUrl(access, call), fetch: access.fetch };
  return call.provider === "openai"
    ? (await import("@ai-sdk/openai")).createOpenAI(settings).embeddingModel(call.model)
    : (await import("@ai-sdk/mistral")).createMistral(settings).embeddingModel(call.model);
}

const sendPlainRequest = (
  access: ProviderAccess,
  call: EmbeddingCall,
  signal: AbortSignal,
): Promise<Response> =>
  access.fetch(`${mustHaveBaseUrl(access, call)}/embeddings`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(call.apiKey !== "" && { authorization: `Bearer ${call.apiKey}` }),
    },
    body: JSON.stringify({ model: call.model, input: call.texts, encoding_format: "float" }),
    signal,
  });
