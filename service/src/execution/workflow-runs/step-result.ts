import type { OpenCall } from "../provider-keys/provider-calls.ts";
import type { StepError, UsageSum } from "./run-state.ts";

/** The usage of a step's calls. */
export interface CallUsage {
  /** null: a child run made the calls. */
  provider: string | null;
  model: string | null;
  usage: UsageSum;
}

export interface StepFailure {
  error: StepError;
  /** A retry would fail in the same way. */
  isFinal: boolean;
  /** The delay that the provider asks for. */
  retryAfterSeconds?: number | undefined;
  callUsage?: CallUsage | undefined;
}

export type StepEnd =
  | { kind: "completed"; output: unknown; callUsage?: CallUsage | undefined }
  | { kind: "skipped" }
  | ({ kind: "failed" } & StepFailure);

export type StepResult =
  | StepEnd
  /** A child run does the work and signals its end. */
  | { kind: "called"; executionId: string }
  /** Aborted: only the usage of its calls still counts. */
  | { kind: "aborted"; callUsage?: CallUsage | undefined };

/** The result of the part of a step that calls nothing. */
export type PreparedStep =
  | StepResult
  | { kind: "map"; items: unknown[] }
  | { kind: "wait"; until: Date }
  /** A checkpoint must record the start before the call. It also writes the reservation `opens`. */
  | { kind: "call"; opens: OpenCall | null; call(signal: AbortSignal): Promise<StepResult> };

export const toFailedStep = (code: string, message: string, more: Partial<StepFailure> = {}): StepEnd => ({
  kind: "failed",
  error: { code, message },
  isFinal: true,
  ...more,
});
