import { callWithKey } from "../ai/provider-calls.ts";
import { keyToRunWith, type UsableKey } from "../ai/provider-keys.ts";
import type { Context } from "../context.ts";
import { ApiError, toPath } from "../errors.ts";
import { SANDBOX_LABEL } from "../outside/ai-provider.sandbox.ts";
import {
  defaultModels,
  type Message,
  type ProviderAnswer,
  type ProviderCall,
  ProviderFault,
} from "../outside/ai-provider.ts";
import { renderMessages } from "../prompts/template.ts";
import { type JsonSchema, valueFaults } from "../workflows/json-schema.ts";
import { memberOf } from "./member.ts";
import { type CallFacts, failed, type Outcome } from "./outcome.ts";
import type { Surroundings } from "./prepare.ts";
import { addSpent, type Spent, type Work } from "./state.ts";
import { toText } from "./values.ts";

type PromptWork = Extract<Work, { type: "prompt" }>;

/** What trying again would not change. */
const FINAL: ReadonlySet<string> = new Set([
  "UNAUTHORIZED",
  "PRODUCT_NOT_FOUND",
  "PRODUCT_UNAVAILABLE",
  "PROVIDER_KEY_NOT_FOUND",
  "PROVIDER_KEY_INVALID",
  "PROVIDER_PERMISSION_DENIED",
  "PROVIDER_NOT_SUPPORTED",
  "VALIDATION_ERROR",
]);

/** A prompt step's call, with the key that the run was given for its provider. */
export async function callPrompt(
  ctx: Context,
  run: Surroundings,
  work: PromptWork,
  values: Record<string, unknown>,
  signal: AbortSignal,
): Promise<Outcome> {
  const texts = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, toText(value)]));
  return guarded(ctx, signal, async () => {
    const key = await keyToRunWith(ctx, memberOf(run.userId), run.start.apiKeys[work.provider] ?? "");
    const call = {
      key,
      model: modelFor(key, work.provider, work.model),
      messages: renderMessages(work.messages, texts),
      options: {
        ...(work.options.temperature !== undefined && { temperature: work.options.temperature }),
        ...(work.options.maxTokens !== undefined && { maxTokens: work.options.maxTokens }),
      },
      versionId: `${run.start.productId}@${run.start.version}`,
      signal,
    };
    return work.output ? callForJson(ctx, run, call, work.output) : callForText(ctx, run, call);
  });
}

/** A key of another provider, which stands in for it, has models of its own. */
export function modelFor(key: UsableKey, provider: string, wished: string | undefined): string {
  const model =
    key.provider === provider
      ? (wished ?? defaultModels[key.provider])
      : (defaultModels[key.provider] ?? wished);
  if (!model) throw new ApiError("VALIDATION_ERROR", `No model is known for the key of ${key.provider}.`);
  return model;
}

export type Call = Pick<ProviderCall, "model" | "messages" | "options" | "versionId" | "signal"> & {
  key: UsableKey;
};

export async function callForText(ctx: Context, run: Surroundings, call: Call): Promise<Outcome> {
  const { answer, facts } = await callOnce(ctx, run, call);
  return { kind: "completed", output: answer.output, facts };
}

async function callOnce(
  ctx: Context,
  run: Surroundings,
  call: Call,
): Promise<{ answer: ProviderAnswer; facts: CallFacts }> {
  const { answer, cost } = await callWithKey(ctx, { ...call, executionId: run.id });
  const spent: Spent = {
    promptTokens: answer.usage.promptTokens,
    completionTokens: answer.usage.completionTokens,
    costUsd: cost.estimatedCost,
    costKnown: cost.costKnown,
    estimated: answer.usage.estimated ?? false,
  };
  return { answer, facts: { provider: call.key.provider, model: answer.model, spent } };
}

/** Asks for JSON that fits a schema, and once more where it does not. */
async function callForJson(
  ctx: Context,
  run: Surroundings,
  call: Call,
  schema: JsonSchema,
): Promise<Outcome> {
  const first = await callOnce(ctx, run, call);
  const read = readOutput(first.answer.output, schema);
  if (read.fits) return { kind: "completed", output: read.value, facts: first.facts };
  const second = await callOnce(ctx, run, {
    ...call,
    messages: [...call.messages, ...repairOf(first.answer, read.faults)],
  });
  const facts = { ...second.facts, spent: addSpent(first.facts.spent, second.facts.spent) };
  const again = readOutput(second.answer.output, schema);
  if (again.fits) return { kind: "completed", output: again.value, facts };
  return failed("OUTPUT_SCHEMA_MISMATCH", "The provider's answer is no JSON that fits the step's schema.", {
    isFinal: false,
    facts,
  });
}

type Read = { fits: true; value: unknown } | { fits: false; faults: string[] };

const FENCE = /^```(?:json)?\s*\n([\s\S]*)\n```$/;

function readOutput(text: string, schema: JsonSchema): Read {
  const bare = text.startsWith(SANDBOX_LABEL) ? text.slice(SANDBOX_LABEL.length) : text;
  const trimmed = bare.trim();
  let value: unknown;
  try {
    value = JSON.parse(FENCE.exec(trimmed)?.[1] ?? trimmed);
  } catch {
    return { fits: false, faults: ["It is no JSON."] };
  }
  const faults = valueFaults(schema, value);
  if (faults.length === 0) return { fits: true, value };
  return {
    fits: false,
    faults: faults.map(({ path, reason }) => `${toPath(["answer", ...path])}: ${reason}`),
  };
}

const repairOf = ({ output }: ProviderAnswer, faults: string[]): Message[] => [
  { role: "assistant", content: output },
  {
    role: "user",
    content: `That cannot be used:\n${faults.slice(0, 20).join("\n")}\nAnswer again with the JSON alone, mended, and no other words.`,
  },
];

/** What anything thrown says of a step. Nothing of it quotes a prompt, an output or a key. */
export async function guarded(
  ctx: Context,
  signal: AbortSignal,
  work: () => Promise<Outcome>,
): Promise<Outcome> {
  try {
    return await work();
  } catch (error) {
    if (signal.aborted) return { kind: "given_up" };
    if (error instanceof ProviderFault || error instanceof ApiError)
      return failed(error.code, error.message, {
        isFinal: FINAL.has(error.code),
        retryAfterSeconds: error.retryAfterSeconds,
      });
    ctx.log.error({ err: error }, "a step of a workflow failed");
    return failed("INTERNAL_ERROR", "Something went wrong on our side.", { isFinal: false });
  }
}
