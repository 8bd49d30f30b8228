import type { Context } from "../../core/context.ts";
import { toOpenCall, withReservation } from "../provider-keys/provider-calls.ts";
import type { RunContext } from "./prepare-step.ts";
import { catchStepErrors, type StepCall } from "./step-call.ts";
import type { PreparedStep, StepResult } from "./step-result.ts";
import type { UsageTotal } from "./usage-total.ts";

export type PlannedCall = Omit<StepCall, "signal" | "opened">;

interface CallOfStep {
  /** The provider that the step names. */
  provider: string;
  /** Reads the key, and again when it changed since. */
  plan(): Promise<PlannedCall>;
  make(call: StepCall, usageTotal: UsageTotal): Promise<StepResult>;
}

/** Prepares the call of a step and its reservation. An error is the result of the call, so that it counts as an attempt. */
export async function prepareCall(
  ctx: Context,
  run: RunContext,
  { provider, plan, make }: CallOfStep,
): Promise<PreparedStep> {
  try {
    const planned = await plan();
    const opens = toOpenCall(ctx, planned.key, { ...planned, executionId: run.id });
    const call = (signal: AbortSignal) =>
      catchStepErrors(ctx, signal, async (usageTotal) =>
        make(await toStepCall({ ...planned, opened: opens, signal }), usageTotal),
      );
    return { kind: "call", opens, call };
  } catch (error) {
    const call = (signal: AbortSignal) => catchStepErrors(ctx, signal, () => Promise.reject(error));
    return { kind: "call", opens: null, call };
  }

  async function toStepCall(call: StepCall): Promise<StepCall> {
    const { opened } = call;
    if (!opened) return call;
    const { refusedBy, maxTokens } = run.pendingCalls.takeReservation(opened);
    if (refusedBy === "changed") {
      run.keys.invalidate(provider);
      return { ...(await plan()), signal: call.signal };
    }
    const reservation = { ...(refusedBy && { refusedBy }), maxTokens: maxTokens ?? null };
    return { ...call, opened: withReservation(opened, reservation) };
  }
}
