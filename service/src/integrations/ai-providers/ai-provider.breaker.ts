import { digestOf } from "../../core/digest.ts";
import type { Breaker, Pass } from "../egress/circuit-breaker.ts";
import { type AiProviders, ProviderFault, type ProviderKey } from "./ai-provider.ts";

/**
 * Spares a provider that fails again and again, and its callers the wait: PROVIDER_UNAVAILABLE at once, for each key at
 * each address. What is repeated within a call counts once. Verifying is no call: people wait for the answer. `opened` is
 * told whenever somebody begins to be left alone.
 */
export function withBreaker(
  providers: AiProviders,
  breaker: Breaker,
  opened: (key: ProviderKey) => void = () => {},
): AiProviders {
  const fail = (key: ProviderKey, pass: Pass, error: unknown) => {
    if (pass[wordOf(error)]()) opened(key);
  };
  return {
    ...providers,
    mustLetThrough: (key) => mustNotWait(key, breaker.waitOf(nameOf(key))),
    async run(call) {
      const pass = enter(breaker, call);
      try {
        const answer = await providers.run(call);
        pass.answered();
        return answer;
      } catch (error) {
        fail(call, pass, error);
        throw error;
      }
    },
    async *stream(call) {
      const pass = enter(breaker, call);
      const pieces = providers.stream(call);
      try {
        let piece = await pieces.next();
        pass.heard();
        for (; !piece.done; piece = await pieces.next()) yield piece.value;
        pass.answered();
        return piece.value;
      } catch (error) {
        fail(call, pass, error);
        throw error;
      } finally {
        pass.left();
        await pieces.return(undefined as never);
      }
    },
  };
}

function enter(breaker: Breaker, key: ProviderKey): Pass {
  const passed = breaker.enter(nameOf(key));
  if (typeof passed === "number") throw unavailable(key, passed);
  return passed;
}

function mustNotWait(key: ProviderKey, waitSeconds: number): void {
  if (waitSeconds > 0) throw unavailable(key, waitSeconds);
}

const unavailable = ({ provider }: ProviderKey, retryAfterSeconds: number) =>
  new ProviderFault("PROVIDER_UNAVAILABLE", { provider, attempts: 0, retryAfterSeconds });

/** Digested: nothing that lives as long as the process holds a key. */
const nameOf = ({ provider, baseUrl, apiKey }: ProviderKey) =>
  digestOf(JSON.stringify([provider, baseUrl, apiKey])).toString("base64");

/** Faults that say nothing of whether the provider is there: ours, and answers that are merely broken. */
const telling: ReadonlySet<string | undefined> = new Set([undefined, "unreachable"]);

function wordOf(error: unknown): "answered" | "failed" | "left" {
  if (!(error instanceof ProviderFault) || error.attempts === 0) return "left";
  const { code, facts } = error;
  if (code === "PROVIDER_TIMEOUT") return "failed";
  if (code === "PROVIDER_BAD_RESPONSE") return "left";
  if (code !== "PROVIDER_ERROR" || facts.reason === "request_refused") return "answered";
  return telling.has(facts.reason) ? "failed" : "left";
}
