import { type Attributes, type Span, SpanKind } from "@opentelemetry/api";
import type { Metrics } from "../../core/telemetry/metrics.ts";
import { markFailed, serverAttributes, tracer } from "../../core/telemetry/tracing.ts";
import {
  type AiProviders,
  type EmbeddingAnswer,
  type EmbeddingCall,
  type ProviderAnswer,
  type ProviderCall,
  ProviderError,
  type ProviderId,
  type ProviderKey,
  type TokenUsage,
} from "./ai-provider.ts";

type AddressOf = (key: ProviderKey) => string | undefined;

/** Names from OpenTelemetry's GenAI conventions; other providers have our names. */
const conventionalNames: Partial<Record<ProviderId, string>> = {
  google: "gcp.gemini",
  mistral: "mistral_ai",
  xai: "x_ai",
};

export const telemetryNameOf = (provider: ProviderId): string => conventionalNames[provider] ?? provider;

/**
 * Records each call as a span and in metrics by the GenAI conventions
 * (https://github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai). Never records texts; no setting enables that. The
 * trace context is not sent to providers.
 */
export function withTelemetry(providers: AiProviders, metrics: Metrics, addressOf: AddressOf): AiProviders {
  const recordCall = async <Answer extends ProviderAnswer | EmbeddingAnswer>(
    call: ProviderCall | EmbeddingCall,
    isStream: boolean,
    make: (telemetry: CallTelemetry) => Promise<Answer>,
  ): Promise<Answer> => {
    const telemetry = new CallTelemetry(metrics, call, addressOf(call), isStream);
    try {
      const answer = await make(telemetry);
      telemetry.onSuccess(answer);
      return answer;
    } catch (error) {
      telemetry.onFailure(error);
      throw error;
    }
  };
  return {
    ...providers,
    run: (call) => recordCall(call, false, () => providers.run(call)),
    embed: (call) => recordCall(call, false, () => providers.embed(call)),
    stream: (call, onPiece) =>
      recordCall(call, true, (telemetry) =>
        providers.stream(call, (piece) => {
          telemetry.onChunk();
          return onPiece(piece);
        }),
      ),
  };
}

class CallTelemetry {
  readonly #metrics: Metrics;
  readonly #call: ProviderCall | EmbeddingCall;
  readonly #isStream: boolean;
  readonly #span: Span;
  readonly #operation: Attributes;
  readonly #startedAt = performance.now();
  #firstChunkSeconds: number | undefined;

  constructor(
    metrics: Metrics,
    call: ProviderCall | EmbeddingCall,
    address: string | undefined,
    isStream: boolean,
  ) {
    this.#metrics = metrics;
    this.#call = call;
    this.#isStream = isStream;
    const server = serverAttributes(address);
    const name = "texts" in call ? "embeddings" : "chat";
    const operation = {
      "gen_ai.operation.name": name,
      "gen_ai.provider.name": telemetryNameOf(call.provider),
    };
    // Users name these servers, and there may be any number of them: they are in spans, not in metrics.
    this.#operation = call.baseUrl === null ? { ...operation, ...server } : operation;
    this.#span = tracer.startSpan(`${name} ${call.model}`, {
      kind: call.provider === "sandbox" ? SpanKind.INTERNAL : SpanKind.CLIENT,
      attributes: { ...operation, ...server, ...requestAttributes(call, isStream) },
    });
  }

  onChunk(): void {
    this.#firstChunkSeconds ??= this.#seconds();
  }

  onSuccess(answer: ProviderAnswer | EmbeddingAnswer): void {
    const { model, usage, attempts } = answer;
    this.#span.setAttributes({
      "gen_ai.response.model": model,
      ...("vectors" in answer
        ? { "gen_ai.embeddings.dimension.count": answer.vectors[0]?.length ?? 0 }
        : { "gen_ai.response.finish_reasons": [answer.finishReason] }),
      "stoa.provider.attempts": attempts,
      ...usageAttributes(usage),
    });
    // Callers may send any model name; only an answered one becomes a metric's label.
    const named = this.#call.baseUrl === null ? { "gen_ai.request.model": this.#call.model } : {};
    this.#end({ ...this.#operation, ...named }, usage);
  }

  onFailure(error: unknown): void {
    const fault = error instanceof ProviderError ? error : null;
    const errorType = fault?.code ?? (this.#call.signal.aborted ? "canceled" : "_OTHER");
    markFailed(this.#span, errorType);
    if (fault)
      this.#span.setAttributes({ "stoa.provider.attempts": fault.attempts, ...errorAttributes(fault) });
    this.#end({ ...this.#operation, "error.type": errorType }, fault?.info.usage);
  }

  #seconds = () => (performance.now() - this.#startedAt) / 1000;

  #end(operation: Attributes, usage?: TokenUsage): void {
    this.#metrics.callDuration(this.#seconds(), operation);
    if (this.#isStream && this.#firstChunkSeconds !== undefined) {
      this.#span.setAttribute("gen_ai.response.time_to_first_chunk", this.#firstChunkSeconds);
      this.#metrics.firstChunk(this.#firstChunkSeconds, operation);
    }
    if (usage && !usage.estimated) this.#recordTokens(operation, usage);
    this.#span.end();
  }

  #recordTokens(operation: Attributes, { promptTokens, completionTokens }: TokenUsage): void {
    this.#metrics.tokens(promptTokens, { ...operation, "gen_ai.token.type": "input" });
    if ("texts" in this.#call) return;
    this.#metrics.tokens(completionTokens, { ...operation, "gen_ai.token.type": "output" });
  }
}

function requestAttributes(call: ProviderCall | EmbeddingCall, isStream: boolean): Attributes {
  const requested = { "gen_ai.request.model": call.model };
  if ("texts" in call) return { ...requested, "gen_ai.request.encoding_formats": ["float"] };
  const { temperature, maxTokens } = call.options;
  return {
    ...requested,
    "gen_ai.output.type": "text",
    ...(isStream && { "gen_ai.request.stream": true }),
    ...(temperature !== undefined && { "gen_ai.request.temperature": temperature }),
    ...(maxTokens !== undefined && { "gen_ai.request.max_tokens": maxTokens }),
  };
}

/** Counts of the provider; estimates are not reported as its counts. */
function usageAttributes(usage: TokenUsage): Attributes {
  if (usage.estimated) return {};
  const { cachedTokens, cacheWriteTokens, reasoningTokens } = usage;
  return {
    "gen_ai.usage.input_tokens": usage.promptTokens,
    "gen_ai.usage.output_tokens": usage.completionTokens,
    ...(cachedTokens !== undefined && { "gen_ai.usage.cache_read.input_tokens": cachedTokens }),
    ...(cacheWriteTokens !== undefined && { "gen_ai.usage.cache_creation.input_tokens": cacheWriteTokens }),
    ...(reasoningTokens !== undefined && { "gen_ai.usage.reasoning.output_tokens": reasoningTokens }),
  };
}

const errorAttributes = ({ info: { status, phase, usage } }: ProviderError): Attributes => ({
  ...(status !== undefined && { "http.response.status_code": status }),
  ...(phase !== undefined && { "stoa.provider.timeout": phase }),
  ...(usage && usageAttributes(usage)),
});
