import type { Context } from "../../core/context.ts";
import { renderMessages } from "../../formats/prompt-template/template.ts";
import { generateSample } from "../../formats/workflow-definition/json-schema-sample.ts";
import { type OpenCall, toOpenCall, withReservation } from "../provider-keys/provider-calls.ts";
import { toTexts } from "./expressions.ts";
import { callForJson } from "./json-output.ts";
import type { RunContext } from "./prepare-step.ts";
import type { StepWork } from "./run-state.ts";
import { callForText, catchStepErrors, findModel, type StepCall } from "./step-call.ts";
import type { PreparedStep, StepResult } from "./step-result.ts";
import type { UsageTotal } from "./usage-total.ts";

/** A prompt step with the values of its variables. */
interface PromptStep {
  work: Extract<StepWork, { type: "prompt" }>;
  values: Record<string, unknown>;
}

type PromptCall = Omit<StepCall, "signal" | "opened">;

/** Prepares the call of a prompt step and its reservation. An error is the result of the call, so that it counts as an attempt. */
export async function preparePrompt(
  ctx: Context,
  run: RunContext,
  prompt: PromptStep,
): Promise<PreparedStep> {
  try {
    const promptCall = await toPromptCall(run, prompt);
    const opens = toOpenCall(ctx, promptCall.key, { ...promptCall, executionId: run.id });
    const call = (signal: AbortSignal) =>
      catchStepErrors(ctx, signal, (usageTotal) =>
        callPrompt(ctx, run, prompt, { ...promptCall, opened: opens, signal }, usageTotal),
      );
    return { kind: "call", opens, call };
  } catch (error) {
    const call = (signal: AbortSignal) => catchStepErrors(ctx, signal, () => Promise.reject(error));
    return { kind: "call", opens: null, call };
  }
}

async function toPromptCall({ keys, start }: RunContext, { work, values }: PromptStep): Promise<PromptCall> {
  const key = await keys.find(work.provider);
  const { temperature, maxTokens, timeoutSeconds = work.timeoutSeconds } = work.options;
  return {
    key,
    model: findModel(key, work.provider, work.model),
    messages: renderMessages(work.messages, toTexts(values)),
    options: {
      ...(temperature !== undefined && { temperature }),
      ...(maxTokens !== undefined && { maxTokens }),
    },
    timeoutMs: timeoutSeconds && timeoutSeconds * 1_000,
    versionId: `${start.productId}@${start.version}`,
    ...(work.output &&
      key.provider === "sandbox" && { sample: JSON.stringify(generateSample(work.output) ?? null) }),
  };
}

async function callPrompt(
  ctx: Context,
  run: RunContext,
  prompt: PromptStep,
  call: StepCall & { opened: OpenCall | null },
  usageTotal: UsageTotal,
): Promise<StepResult> {
  const { output, provider } = prompt.work;
  const current = call.opened ? await withOpened(call.opened) : call;
  return output
    ? callForJson(ctx, run, current, output, usageTotal)
    : callForText(ctx, run, current, usageTotal);

  async function withOpened(opened: OpenCall): Promise<StepCall> {
    const { refusedBy, maxTokens } = run.pendingCalls.takeReservation(opened);
    if (refusedBy === "changed") return withChangedKey();
    return {
      ...call,
      opened: withReservation(opened, { ...(refusedBy && { refusedBy }), maxTokens: maxTokens ?? null }),
    };
  }

  /** Reads the key again, which changed since the run read it. */
  async function withChangedKey(): Promise<StepCall> {
    run.keys.invalidate(provider);
    return { ...(await toPromptCall(run, prompt)), signal: call.signal };
  }
}
