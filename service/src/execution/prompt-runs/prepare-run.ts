import type { Execute } from "@stoa/contract";
import { findProductToRun } from "../../catalog/products/detail.ts";
import { findRunnableVersion } from "../../catalog/products/product-lookup.ts";
import type { Context, Member } from "../../core/context.ts";
import { ApiError, fieldError, ruleViolation } from "../../core/errors.ts";
import { parseMessages, renderMessages } from "../../formats/prompt-template/template.ts";
import { checkVariables } from "../../formats/prompt-template/variables.ts";
import {
  anyModelProviders,
  defaultModels,
  type Message,
} from "../../integrations/ai-providers/ai-provider.ts";
import { keyToRunWith, type UsableKey } from "../provider-keys/provider-keys.ts";
import { type RunOptions, withinCost } from "./max-cost.ts";

export type Product = Awaited<ReturnType<typeof findProductToRun>>;

/** A run that may begin: whose key it takes, of what, and what will be asked. */
export interface Prepared {
  product: Product;
  key: UsableKey;
  model: string;
  version: string;
  messages: Message[];
  variables: Record<string, string>;
  options: RunOptions;
}

/** What the caller may run, checked and rendered. Nothing is written. */
export async function prepare(ctx: Context, caller: Member, wish: Execute): Promise<Prepared> {
  // At the same time; of two that fail, the product's is told.
  const [foundProduct, foundKey] = await Promise.allSettled([
    findProductToRun(ctx, caller, wish.productId),
    keyToRunWith(ctx, caller, wish.apiKeyId),
  ]);
  const product = mustBeFulfilled(foundProduct);
  const key = mustBeFulfilled(foundKey);
  mustBeBought(product);
  if (product.type !== "PROMPT") throw ruleViolation("productId", "is a workflow, not a prompt");
  mustFit(product, key);
  const { version, messages } = await renderedFor(ctx, product, wish);
  const model = modelFor(product, key, wish.options.model);
  const call = { provider: key.provider, model, messages, at: ctx.now() };
  return {
    product,
    key,
    model,
    version,
    messages,
    variables: wish.variables as Record<string, string>,
    options: withinCost(wish.options, call),
  };
}

/** The messages of the version that the caller may run, with the values in them. */
export async function renderedFor(
  ctx: Context,
  product: Product,
  { variables, options }: { variables: Record<string, unknown>; options: { version?: string | undefined } },
): Promise<{ version: string; messages: Message[] }> {
  const version = await versionToRun(ctx, product, options.version);
  const checked = checkVariables(version.variables, variables);
  if ("problems" in checked) throw fieldError("VALIDATION_ERROR", checked.problems);
  const messages = renderMessages(parseMessages(version.contentFormat, version.content), checked.values);
  return { version: version.version, messages };
}

function mustBeFulfilled<Value>(settled: PromiseSettledResult<Value>): Value {
  if (settled.status === "rejected") throw settled.reason;
  return settled.value;
}

export function mustBeBought(product: Product): void {
  if (product.reason !== "none") return;
  throw new ApiError("UNAUTHORIZED", "Buy the product before you run it.", {
    source: "marketplace",
    reason: "purchase_required",
  });
}

function mustFit(product: Product, key: UsableKey): void {
  if (anyModelProviders.has(key.provider) || product.compatibility.includes(key.provider)) return;
  throw new ApiError(
    "PROVIDER_NOT_SUPPORTED",
    `This product runs on ${product.compatibility.join(", ")}; the key is of ${key.provider}.`,
    { source: "marketplace", provider: key.provider, supported: product.compatibility },
  );
}

/** A pinned version must be of the line that the caller may run; without a pin it is that line's newest. */
export async function versionToRun(ctx: Context, product: Product, pinned: string | undefined) {
  if (pinned === undefined || pinned === product.version) return product;
  const version = await findRunnableVersion(ctx.db, product.id, { major: product.major, pinned });
  if (!version) throw ruleViolation("options.version", "is not a version that you may run");
  return version;
}

function modelFor(product: Product, key: UsableKey, wished: string | undefined): string {
  const model = wished ?? product.models[key.provider] ?? defaultModels[key.provider];
  if (!model)
    throw ruleViolation(
      "options.model",
      `is needed: nobody knows the models of this ${key.provider} address`,
    );
  return model;
}
