import { digestOf } from "../../core/digest.ts";
import type { CircuitBreaker, CircuitPermit } from "../egress/circuit-breaker.ts";
import { type AiProviders, ProviderError, type ProviderKey } from "./ai-provider.ts";

/**
 * Spares a provider that fails again and again, and its callers the wait: PROVIDER_UNAVAILABLE at once, for each key at
 * each address. What is repeated within a call counts once. Verifying is no call: people wait for the answer. `opened` is
 * told whenever somebody begins to be left alone.
 */
export function withBreaker(
  providers: AiProviders,
  breaker: CircuitBreaker,
  opened: (key: ProviderKey) => void = () => {},
): AiProviders {
  const fail = (key: ProviderKey, pass: CircuitPermit, error: unknown) => {
    if (pass[classifyError(error)]()) opened(key);
  };
  return {
    ...providers,
    mustBeAvailable: (key) => mustBeClosed(key, breaker.secondsToWait(circuitNameOf(key))),
    async run(call) {
      const pass = enterCircuit(breaker, call);
      try {
        const answer = await providers.run(call);
        pass.onSuccess();
        return answer;
      } catch (error) {
        fail(call, pass, error);
        throw error;
      }
    },
    async *stream(call) {
      const pass = enterCircuit(breaker, call);
      const pieces = providers.stream(call);
      try {
        let piece = await pieces.next();
        pass.onFirstByte();
        for (; !piece.done; piece = await pieces.next()) yield piece.value;
        pass.onSuccess();
        return piece.value;
      } catch (error) {
        fail(call, pass, error);
        throw error;
      } finally {
        pass.onAbandon();
        await pieces.return(undefined as never);
      }
    },
  };
}

function enterCircuit(breaker: CircuitBreaker, key: ProviderKey): CircuitPermit {
  const passed = breaker.enter(circuitNameOf(key));
  if (typeof passed === "number") throw unavailable(key, passed);
  return passed;
}

function mustBeClosed(key: ProviderKey, waitSeconds: number): void {
  if (waitSeconds > 0) throw unavailable(key, waitSeconds);
}

const unavailable = ({ provider }: ProviderKey, retryAfterSeconds: number) =>
  new ProviderError("PROVIDER_UNAVAILABLE", { provider, attempts: 0, retryAfterSeconds });

/** Digested: nothing that lives as long as the process holds a key. */
const circuitNameOf = ({ provider, baseUrl, apiKey }: ProviderKey) =>
  digestOf(JSON.stringify([provider, baseUrl, apiKey])).toString("base64");

/** Faults that say nothing of whether the provider is there: ours, and answers that are merely broken. */
const outageReasons: ReadonlySet<string | undefined> = new Set([undefined, "unreachable"]);

function classifyError(error: unknown): "onSuccess" | "onFailure" | "onAbandon" {
  if (!(error instanceof ProviderError) || error.attempts === 0) return "onAbandon";
  const { code, info } = error;
  if (code === "PROVIDER_TIMEOUT") return "onFailure";
  if (code === "PROVIDER_BAD_RESPONSE") return "onAbandon";
  if (code !== "PROVIDER_ERROR" || info.reason === "request_refused") return "onSuccess";
  return outageReasons.has(info.reason) ? "onFailure" : "onAbandon";
}
