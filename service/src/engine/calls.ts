import { callWithKey } from "../ai/provider-calls.ts";
import { keyToRunWith, type UsableKey } from "../ai/provider-keys.ts";
import type { Context } from "../context.ts";
import { ApiError, toPath } from "../errors.ts";
import { isTooDeep, MAX_DEPTH } from "../http/json-body.ts";
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
import { sampleOf } from "../workflows/json-schema-sample.ts";
import { memberOf } from "./member.ts";
import { failed, type Outcome } from "./outcome.ts";
import type { Surroundings } from "./prepare.ts";
import type { Work } from "./state.ts";
import { Tally } from "./tally.ts";
import { toTexts } from "./values.ts";

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
  const texts = toTexts(values);
  return guarded(ctx, signal, async (tally) => {
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
      ...(work.output &&
        key.provider === "sandbox" && { sample: JSON.stringify(sampleOf(work.output) ?? null) }),
    };
    return work.output ? callForJson(ctx, run, call, work.output, tally) : callForText(ctx, run, call, tally);
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

export type Call = Pick<
  ProviderCall,
  "model" | "messages" | "options" | "versionId" | "signal" | "sample"
> & {
  key: UsableKey;
};

export async function callForText(
  ctx: Context,
  run: Surroundings,
  call: Call,
  tally: Tally,
): Promise<Outcome> {
  const { output } = await callOnce(ctx, run, call, tally);
  return { kind: "completed", output, facts: tally.facts };
}

async function callOnce(ctx: Context, run: Surroundings, call: Call, tally: Tally): Promise<ProviderAnswer> {
  const { provider } = call.key;
  const count = (model: string, usage: ProviderAnswer["usage"]) => {
    const costUsd = tally.add({ provider, model, askedModel: call.model, usage });
    run.costLimit?.spend(costUsd);
  };
  const expectedUsd = run.costLimit?.reserve({ ...call, provider, at: ctx.now() }) ?? 0;
  try {
    const { answer } = await callWithKey(ctx, { ...call, executionId: run.id });
    count(answer.model, answer.usage);
    return answer;
  } catch (cause) {
    if (cause instanceof ProviderFault && cause.facts.usage) count(call.model, cause.facts.usage);
    throw cause;
  } finally {
    run.costLimit?.release(expectedUsd);
  }
}

/** Asks for JSON that fits a schema, and once more where it does not. */
async function callForJson(
  ctx: Context,
  run: Surroundings,
  call: Call,
  schema: JsonSchema,
  tally: Tally,
): Promise<Outcome> {
  const first = await callOnce(ctx, run, call, tally);
  const read = readOutput(first.output, schema);
  if (read.fits) return { kind: "completed", output: read.value, facts: tally.facts };
  const messages = [...call.messages, ...repairOf(first, read.faults)];
  const second = await callOnce(ctx, run, { ...call, messages }, tally);
  const again = readOutput(second.output, schema);
  if (again.fits) return { kind: "completed", output: again.value, facts: tally.facts };
  return failed("OUTPUT_SCHEMA_MISMATCH", "The provider's answer is no JSON that fits the step's schema.", {
    isFinal: false,
    facts: tally.facts,
  });
}

type Read = { fits: true; value: unknown } | { fits: false; faults: string[] };

/** Without the fence that some models put around JSON. By hand, because the text may be megabytes of anything. */
function unfenced(text: string): string {
  const end = text.indexOf("\n");
  const isFenced = end !== -1 && text.endsWith("\n```") && FENCES.has(text.slice(0, end).trim());
  return isFenced ? text.slice(end, -"```".length) : text;
}

const FENCES: ReadonlySet<string> = new Set(["```", "```json"]);

function readOutput(text: string, schema: JsonSchema): Read {
  const bare = text.startsWith(SANDBOX_LABEL) ? text.slice(SANDBOX_LABEL.length) : text;
  if (isTooDeep(Buffer.from(bare)))
    return { fits: false, faults: [`It is nested deeper than ${MAX_DEPTH} levels.`] };
  let value: unknown;
  try {
    value = JSON.parse(unfenced(bare.trim()));
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
  work: (tally: Tally) => Promise<Outcome>,
): Promise<Outcome> {
  const tally = new Tally(ctx);
  try {
    return await work(tally);
  } catch (error) {
    if (signal.aborted) return { kind: "given_up" };
    if (error instanceof ProviderFault || error instanceof ApiError)
      return failed(error.code, error.message, {
        isFinal: FINAL.has(error.code),
        retryAfterSeconds: error.retryAfterSeconds,
        facts: tally.facts,
      });
    ctx.log.error({ err: error }, "a step of a workflow failed");
    return failed("INTERNAL_ERROR", "Something went wrong on our side.", {
      isFinal: false,
      facts: tally.facts,
    });
  }
}
