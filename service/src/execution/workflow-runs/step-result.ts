import type { OpenCall } from "../provider-keys/provider-calls.ts";
import type { StepError, UsageSum } from "./run-state.ts";

/** What a call of a provider was, beside what came out. */
export interface CallUsage {
  /** null: another execution made the calls. */
  provider: string | null;
  model: string | null;
  usage: UsageSum;
}

export interface StepFailure {
  error: StepError;
  /** Trying again would fail in the same way. */
  isFinal: boolean;
  /** How long the provider wants to be left alone. */
  retryAfterSeconds?: number | undefined;
  callUsage?: CallUsage | undefined;
}

/** How a step ended, or an item of a map. */
export type StepEnd =
  | { kind: "completed"; output: unknown; callUsage?: CallUsage | undefined }
  | { kind: "skipped" }
  | ({ kind: "failed" } & StepFailure);

/** What came of a call. */
export type StepResult =
  | StepEnd
  /** A child run does the work and signals its end. */
  | { kind: "called"; executionId: string }
  /** Aborted: only the usage of its calls still counts. */
  | { kind: "aborted"; callUsage?: CallUsage | undefined };

/** What a step comes to before anybody outside is asked. */
export type PreparedStep =
  | StepResult
  | { kind: "map"; items: unknown[] }
  | { kind: "wait"; until: Date }
  /** Must be known to have begun before it is called. `opens` takes its part of a key's limits where that is written down. */
  | { kind: "call"; opens: OpenCall | null; call(signal: AbortSignal): Promise<StepResult> };

export const toFailedStep = (code: string, message: string, more: Partial<StepFailure> = {}): StepEnd => ({
  kind: "failed",
  error: { code, message },
  isFinal: true,
  ...more,
});
