import type { Context } from "../../core/context.ts";
import { renderMessages } from "../../formats/prompt-template/template.ts";
import { generateSample } from "../../formats/workflow-definition/json-schema-sample.ts";
import { toTexts } from "./expressions.ts";
import { callForJson } from "./json-output.ts";
import { type PlannedCall, prepareCall } from "./prepare-call.ts";
import type { RunContext } from "./prepare-step.ts";
import type { StepWork } from "./run-state.ts";
import { callForText, findModel } from "./step-call.ts";
import type { PreparedStep } from "./step-result.ts";

/** A prompt step with the values of its variables. */
interface PromptStep {
  work: Extract<StepWork, { type: "prompt" }>;
  values: Record<string, unknown>;
}

export function preparePrompt(ctx: Context, run: RunContext, prompt: PromptStep): Promise<PreparedStep> {
  const { output, provider } = prompt.work;
  return prepareCall(ctx, run, {
    provider,
    plan: () => planPrompt(run, prompt),
    make: (call, usageTotal) =>
      output ? callForJson(ctx, run, call, output, usageTotal) : callForText(ctx, run, call, usageTotal),
  });
}

async function planPrompt({ keys, start }: RunContext, { work, values }: PromptStep): Promise<PlannedCall> {
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
