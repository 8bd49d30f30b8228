import { digestOf } from "../../core/digest.ts";
import type { CircuitBreaker, CircuitPermit } from "../egress/circuit-breaker.ts";
import { type AiProviders, ProviderError, type ProviderKey } from "./ai-provider.ts";

/**
 * Refuses calls with PROVIDER_UNAVAILABLE after repeated failures, for each key and address. The retries of one call count once,
 * and verifications do not count. Calls `opened` when a circuit opens.
 */
export function withBreaker(
  providers: AiProviders,
  breaker: CircuitBreaker,
  opened: (key: ProviderKey) => void = () => {},
): AiProviders {
  const callOnce = async <Answer>(
    key: ProviderKey,
    call: (permit: CircuitPermit) => Promise<Answer>,
  ): Promise<Answer> => {
    const permit = enterCircuit(breaker, key);
    try {
      const answer = await call(permit);
      permit.onSuccess();
      return answer;
    } catch (error) {
      if (permit[classifyError(error)]()) opened(key);
      throw error;
    }
  };
  return {
    ...providers,
    mustBeAvailable: (key) => mustBeClosed(key, breaker.secondsToWait(circuitNameOf(key))),
    run: (call) => callOnce(call, () => providers.run(call)),
    embed: (call) => callOnce(call, () => providers.embed(call)),
    stream: (call, onPiece) =>
      callOnce(call, (permit) =>
        providers.stream(call, (piece) => {
          permit.onFirstByte();
          return onPiece(piece);
        }),
      ),
  };
}

function enterCircuit(breaker: CircuitBreaker, key: ProviderKey): CircuitPermit {
  const permitOrWait = breaker.enter(circuitNameOf(key));
  if (typeof permitOrWait === "number") throw unavailable(key, permitOrWait);
  return permitOrWait;
}

function mustBeClosed(key: ProviderKey, waitSeconds: number): void {
  if (waitSeconds > 0) throw unavailable(key, waitSeconds);
}

const unavailable = ({ provider }: ProviderKey, retryAfterSeconds: number) =>
  new ProviderError("PROVIDER_UNAVAILABLE", { provider, attempts: 0, retryAfterSeconds });

/** A digest, because the map outlives the call and must not contain keys. */
const circuitNameOf = ({ provider, baseUrl, apiKey }: ProviderKey) =>
  digestOf(JSON.stringify([provider, baseUrl, apiKey])).toString("base64");

/** Other reasons are our own faults or broken answers, which do not show an outage. */
const outageReasons: ReadonlySet<string | undefined> = new Set([undefined, "unreachable"]);

function classifyError(error: unknown): "onSuccess" | "onFailure" | "onAbandon" {
  if (!(error instanceof ProviderError) || error.attempts === 0) return "onAbandon";
  const { code, info } = error;
  if (code === "PROVIDER_TIMEOUT") return "onFailure";
  if (code === "PROVIDER_BAD_RESPONSE") return "onAbandon";
  if (code !== "PROVIDER_ERROR" || info.reason === "request_refused") return "onSuccess";
  return outageReasons.has(info.reason) ? "onFailure" : "onAbandon";
}
