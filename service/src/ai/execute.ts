import type { Execute, ExecutionResult } from "@stoa/contract";
import type { Context, Member } from "../context.ts";
import { noteUse } from "../entitlements/entitlements.ts";
import { ApiError, fieldError, ruleBroken } from "../errors.ts";
import { toId } from "../ids.ts";
import {
  defaultModels,
  fitsEverything,
  type Message,
  type ProviderAnswer,
  ProviderFault,
  type TokenUsage,
} from "../outside/ai-provider.ts";
import { findProductToRun } from "../products/detail.ts";
import { findRunnableVersion } from "../products/goods.ts";
import { parseMessages, renderMessages } from "../prompts/template.ts";
import { checkVariables } from "../prompts/variables.ts";
import { costOf } from "./cost.ts";
import { completed, failed, type Run, startRun } from "./executions.ts";
import { keyToRunWith, type UsableKey } from "./provider-keys.ts";

type Product = Awaited<ReturnType<typeof findProductToRun>>;

interface Prepared {
  product: Product;
  key: UsableKey;
  model: string;
  version: string;
  messages: Message[];
  variables: Record<string, string>;
}

/** Runs a prompt once with the caller's own key: what they may run, rendered, called, priced and recorded. */
export async function executePrompt(
  ctx: Context,
  caller: Member,
  wish: Execute,
  clientGone: AbortSignal | null,
): Promise<ExecutionResult> {
  const prepared = await prepare(ctx, caller, wish);
  const run = await startRun(ctx, caller, { ...prepared, options: wish.options });
  await noteFirstUse(ctx, caller, prepared.product);
  const answer = await callProvider(ctx, run, prepared, wish, clientGone);
  return finish(ctx, run, prepared, answer);
}

async function prepare(ctx: Context, caller: Member, wish: Execute): Promise<Prepared> {
  const product = await findProductToRun(ctx, caller, wish.productId);
  const key = await keyToRunWith(ctx, caller, wish.apiKeyId);
  mustBeBought(product);
  if (product.type !== "PROMPT") throw ruleBroken("productId", "is a workflow, not a prompt");
  mustFit(product, key);
  const version = await versionToRun(ctx, product, wish.options.version);
  const checked = checkVariables(version.variables, wish.variables);
  if ("problems" in checked) throw fieldError("VALIDATION_ERROR", checked.problems);
  return {
    product,
    key,
    model: modelFor(product, key, wish.options.model),
    version: version.version,
    messages: renderMessages(parseMessages(version.contentFormat, version.content), checked.values),
    variables: wish.variables as Record<string, string>,
  };
}

function mustBeBought(product: Product): void {
  if (product.reason !== "none") return;
  throw new ApiError("UNAUTHORIZED", "Buy the product before you run it.", {
    source: "marketplace",
    reason: "purchase_required",
  });
}

function mustFit(product: Product, key: UsableKey): void {
  if (fitsEverything.has(key.provider) || product.compatibility.includes(key.provider)) return;
  throw new ApiError(
    "PROVIDER_NOT_SUPPORTED",
    `This product runs on ${product.compatibility.join(", ")}; the key is of ${key.provider}.`,
    { source: "marketplace", provider: key.provider, supported: product.compatibility },
  );
}

/** A pinned version must be of the line that the caller may run; without a pin it is that line's newest. */
async function versionToRun(ctx: Context, product: Product, pinned: string | undefined) {
  if (pinned === undefined || pinned === product.version) return product;
  const version = await findRunnableVersion(ctx.db, product.id, { major: product.major, pinned });
  if (!version) throw ruleBroken("options.version", "is not a version that you may run");
  return version;
}

function modelFor(product: Product, key: UsableKey, wished: string | undefined): string {
  const model = wished ?? product.models[key.provider] ?? defaultModels[key.provider];
  if (!model)
    throw ruleBroken("options.model", `is needed: nobody knows the models of this ${key.provider} address`);
  return model;
}

/** Before the call: a server of the buyer's own has the whole prompt, even if it then answers with an error. */
async function noteFirstUse(ctx: Context, caller: Member, product: Product): Promise<void> {
  if (product.reason === "purchased" && !product.usedAt) await noteUse(ctx, caller.userId, product.id);
}

async function callProvider(
  ctx: Context,
  run: Run,
  prepared: Prepared,
  { options }: Execute,
  clientGone: AbortSignal | null,
): Promise<ProviderAnswer> {
  const { key, model, messages, product, version } = prepared;
  try {
    return await ctx.outside.ai.run({
      provider: key.provider,
      apiKey: key.secret,
      baseUrl: key.baseUrl,
      model,
      messages,
      options: {
        ...(options.temperature !== undefined && { temperature: options.temperature }),
        ...(options.maxTokens !== undefined && { maxTokens: options.maxTokens }),
      },
      signal: clientGone ? AbortSignal.any([ctx.shutdown, clientGone]) : ctx.shutdown,
      versionId: `${product.id}@${version}`,
    });
  } catch (cause) {
    const fault = cause instanceof ProviderFault ? cause : null;
    const counted = fault?.facts.usage;
    throw await failed(ctx, run, {
      cause,
      clientGone: clientGone?.aborted ?? false,
      spent: counted ? { usage: counted, cost: priceOf(ctx, prepared, counted) } : null,
    });
  }
}

const priceOf = (ctx: Context, { key, model }: Prepared, usage: TokenUsage, answeredModel = model) =>
  costOf({ provider: key.provider, model: answeredModel, askedModel: model, usage, at: ctx.now() });

async function finish(
  ctx: Context,
  run: Run,
  prepared: Prepared,
  answer: ProviderAnswer,
): Promise<ExecutionResult> {
  const cost = priceOf(ctx, prepared, answer.usage, answer.model);
  const durationMs = await completed(ctx, run, answer, cost);
  const { promptTokens, completionTokens, totalTokens } = answer.usage;
  return {
    executionId: toId("exec", run.id),
    output: answer.output,
    usage: { promptTokens, completionTokens, totalTokens, ...cost },
    metadata: {
      model: answer.model,
      duration: durationMs / 1000,
      provider: prepared.key.provider,
      finishReason: answer.finishReason,
      attempts: answer.attempts,
      productVersion: prepared.version,
      mode: "sync",
    },
  };
}
