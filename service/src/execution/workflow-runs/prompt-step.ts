import type { Context } from "../../core/context.ts";
import { renderMessages } from "../../formats/prompt-template/template.ts";
import { generateSample } from "../../formats/workflow-definition/json-schema-sample.ts";
import { type OpenCall, toOpenCall, withReserved } from "../provider-keys/provider-calls.ts";
import { toTexts } from "./expressions.ts";
import { callForJson } from "./json-output.ts";
import type { Surroundings } from "./prepare-step.ts";
import type { Work } from "./run-state.ts";
import { type Call, callForText, guarded, modelFor } from "./step-call.ts";
import type { Outcome, Prepared } from "./step-result.ts";
import type { Tally } from "./usage-total.ts";

/** A prompt step with the values of its variables. */
interface Prompt {
  work: Extract<Work, { type: "prompt" }>;
  values: Record<string, unknown>;
}

type Asked = Omit<Call, "signal" | "opened">;

/** What a prompt step asks, and what that takes of its key's limits. What stands against it is told when it would be called. */
export async function preparePrompt(ctx: Context, run: Surroundings, prompt: Prompt): Promise<Prepared> {
  try {
    const asked = await toAsked(run, prompt);
    const opens = toOpenCall(ctx, asked.key, { ...asked, executionId: run.id });
    const call = (signal: AbortSignal) =>
      guarded(ctx, signal, (tally) =>
        callPrompt(ctx, run, prompt, { ...asked, opened: opens, signal }, tally),
      );
    return { kind: "call", opens, call };
  } catch (error) {
    const call = (signal: AbortSignal) => guarded(ctx, signal, () => Promise.reject(error));
    return { kind: "call", opens: null, call };
  }
}

async function toAsked({ keys, start }: Surroundings, { work, values }: Prompt): Promise<Asked> {
  const key = await keys.find(work.provider);
  const { temperature, maxTokens, timeoutSeconds = work.timeoutSeconds } = work.options;
  return {
    key,
    model: modelFor(key, work.provider, work.model),
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
  run: Surroundings,
  prompt: Prompt,
  call: Call & { opened: OpenCall | null },
  tally: Tally,
): Promise<Outcome> {
  const { output, provider } = prompt.work;
  const current = call.opened ? await withOpened(call.opened) : call;
  return output ? callForJson(ctx, run, current, output, tally) : callForText(ctx, run, current, tally);

  async function withOpened(opened: OpenCall): Promise<Call> {
    const { refusedBy, maxTokens } = run.calls.takeReserved(opened);
    if (refusedBy === "changed") return askedAnew();
    return {
      ...call,
      opened: withReserved(opened, { ...(refusedBy && { refusedBy }), maxTokens: maxTokens ?? null }),
    };
  }

  /** With the key as it is now. */
  async function askedAnew(): Promise<Call> {
    run.keys.forget(provider);
    return { ...(await toAsked(run, prompt)), signal: call.signal };
  }
}
