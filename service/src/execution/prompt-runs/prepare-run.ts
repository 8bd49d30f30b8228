import type { Execute, PromptDraft } from "@stoa/contract";
import { analyzeContent } from "../../catalog/products/content.ts";
import { findProductToRun } from "../../catalog/products/detail.ts";
import { findRunnableVersion } from "../../catalog/products/product-lookup.ts";
import type { Context, Member } from "../../core/context.ts";
import { ApiError, fieldError, fieldProblemsOf, ruleViolation } from "../../core/errors.ts";
import { parseMessages, renderMessages } from "../../formats/prompt-template/template.ts";
import { checkVariables } from "../../formats/prompt-template/variables.ts";
import {
  anyModelProviders,
  defaultModels,
  type Message,
} from "../../integrations/ai-providers/ai-provider.ts";
import { toDraftVersion } from "../executions/draft-version.ts";
import { findRunKey, toUsableKey, type UsableKey } from "../provider-keys/provider-keys.ts";
import { limitToMaxCost, type RunOptions } from "./max-cost.ts";
import type { RunProduct, RunTarget } from "./run-targets.ts";

export type Product = Awaited<ReturnType<typeof findProductToRun>>;

export interface PreparedRun {
  product: RunProduct;
  key: UsableKey;
  model: string;
  version: string;
  messages: Message[];
  variables: Record<string, string>;
  options: RunOptions;
}

/** Checks and renders a run. Writes nothing. */
export const readAndPrepareRun = async (ctx: Context, caller: Member, input: Execute): Promise<PreparedRun> =>
  prepareRun(ctx, input, await readTarget(ctx, caller, input));

export async function readTarget(
  ctx: Context,
  caller: Member,
  input: Pick<Execute, "productId" | "apiKeyId">,
): Promise<RunTarget> {
  // In parallel; if both fail, the error of the product is thrown.
  const [foundProduct, foundKey] = await Promise.allSettled([
    findProductToRun(ctx, caller, input.productId),
    findRunKey(ctx, caller, input.apiKeyId),
  ]);
  return { product: fulfilledOrThrow(foundProduct), key: fulfilledOrThrow(foundKey) };
}

/** The same, of a target that was read before. */
export async function prepareRun(ctx: Context, input: Execute, target: RunTarget): Promise<PreparedRun> {
  const { product } = target;
  const key = toUsableKey(ctx, target.key);
  mustBeEntitled(product);
  if (product.type !== "PROMPT") throw ruleViolation("productId", "is a workflow, not a prompt");
  mustSupportProvider(product, key);
  const { version, messages } = await renderPrompt(ctx, product, input);
  const model = findModel(product, key, input.options.model);
  const call = { provider: key.provider, model, messages, at: ctx.now() };
  return {
    product,
    key,
    model,
    version,
    messages,
    variables: input.variables as Record<string, string>,
    options: limitToMaxCost(input.options, call),
  };
}

interface RenderInput {
  variables: Record<string, unknown>;
  draft?: PromptDraft | undefined;
  options: { version?: string | undefined };
}

/** Renders the version that the caller may run, or the draft of its author. */
export async function renderPrompt(
  ctx: Context,
  product: RunProduct,
  { variables, draft, options }: RenderInput,
): Promise<{ version: string; messages: Message[] }> {
  const version = draft
    ? await prepareDraft(product, draft, options.version)
    : await findVersionToRun(ctx, product, options.version);
  const checked = checkVariables(version.variables, variables);
  if ("problems" in checked) throw fieldError("VALIDATION_ERROR", checked.problems);
  const messages = renderMessages(parseMessages(version.contentFormat, version.content), checked.values);
  return { version: version.version, messages };
}

/** With the checks of PATCH /products/{productId}. */
async function prepareDraft(product: RunProduct, draft: PromptDraft, pinned: string | undefined) {
  if (product.reason !== "author")
    throw new ApiError("UNAUTHORIZED", "Only its author may run a draft.", { required: "author" });
  if (product.type !== "PROMPT") throw ruleViolation("draft", "is for prompts: this product is a workflow");
  if (pinned !== undefined) throw ruleViolation("options.version", "cannot be sent with draft");
  const { variables } = await analyzeContent({ type: "PROMPT", ...draft }, draft.variables).catch(
    (error: unknown) => {
      if (!(error instanceof ApiError)) throw error;
      const problems = fieldProblemsOf(error, "content");
      throw fieldError(
        "INVALID_REQUEST",
        problems.map(({ field, reason }) => ({ field: `draft.${field}`, reason })),
      );
    },
  );
  return { ...draft, variables, version: toDraftVersion(product.version) };
}

function fulfilledOrThrow<Value>(settled: PromiseSettledResult<Value>): Value {
  if (settled.status === "rejected") throw settled.reason;
  return settled.value;
}

export function mustBeEntitled(product: Pick<Product, "reason">): void {
  if (product.reason !== "none") return;
  throw new ApiError("UNAUTHORIZED", "Buy the product before you run it.", {
    source: "marketplace",
    reason: "purchase_required",
  });
}

export function mustSupportProvider(
  product: Pick<Product, "compatibility">,
  key: Pick<UsableKey, "provider">,
): void {
  if (anyModelProviders.has(key.provider) || product.compatibility.includes(key.provider)) return;
  throw new ApiError(
    "PROVIDER_NOT_SUPPORTED",
    `This product runs on ${product.compatibility.join(", ")}; the key is of ${key.provider}.`,
    { source: "marketplace", provider: key.provider, supported: product.compatibility },
  );
}

/** A pinned version must be in the line that the caller may run; the default is the newest of that line. */
export async function findVersionToRun<Found extends RunProduct>(
  ctx: Context,
  product: Found,
  pinned: string | undefined,
) {
  if (pinned === undefined || pinned === product.version) return product;
  const version = await findRunnableVersion(ctx.db, product.id, { major: product.major, pinned });
  if (!version) throw ruleViolation("options.version", "is not a version that you may run");
  return version;
}

export function findModel(
  product: Pick<Product, "models">,
  key: Pick<UsableKey, "provider">,
  requested: string | undefined,
): string {
  const model = requested ?? product.models[key.provider] ?? defaultModels[key.provider];
  if (!model)
    throw ruleViolation("options.model", `is needed: the models of this ${key.provider} address are unknown`);
  return model;
}
