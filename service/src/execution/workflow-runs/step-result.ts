import type { OpenCall } from "../provider-keys/provider-calls.ts";
import type { Spent, StepError } from "./run-state.ts";

/** What a call of a provider was, beside what came out. */
export interface CallFacts {
  /** null: another execution made the calls. */
  provider: string | null;
  model: string | null;
  spent: Spent;
}

export interface Failure {
  error: StepError;
  /** Trying again would fail in the same way. */
  isFinal: boolean;
  /** How long the provider wants to be left alone. */
  retryAfterSeconds?: number | undefined;
  facts?: CallFacts | undefined;
}

/** How a step ended, or an item of a map. */
export type End =
  | { kind: "completed"; output: unknown; facts?: CallFacts | undefined }
  | { kind: "skipped" }
  | ({ kind: "failed" } & Failure);

/** What came of a call. */
export type Outcome =
  | End
  /** Another execution does its work, and says so when it has ended. */
  | { kind: "called"; executionId: string }
  /** Broken off: nobody asks any more how it ended, but for what its calls have used. */
  | { kind: "given_up"; facts?: CallFacts | undefined };

/** What a step comes to before anybody outside is asked. */
export type Prepared =
  | Outcome
  | { kind: "map"; items: unknown[] }
  | { kind: "wait"; until: Date }
  /** Must be known to have begun before it is called. `opens` takes its part of a key's limits where that is written down. */
  | { kind: "call"; opens: OpenCall | null; call(signal: AbortSignal): Promise<Outcome> };

export const failed = (code: string, message: string, more: Partial<Failure> = {}): End => ({
  kind: "failed",
  error: { code, message },
  isFinal: true,
  ...more,
});
