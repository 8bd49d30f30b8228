import { toVisibleLine } from "@stoa/contract";
import { findProductToRun } from "../../catalog/products/detail.ts";
import type { Context, Member } from "../../core/context.ts";
import { ApiError, type FieldProblem, formatPath } from "../../core/errors.ts";
import { listProviders } from "../../formats/workflow-definition/check-workflow.ts";
import { MAX_CALL_DEPTH, Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import { anyModelProviders } from "../../integrations/ai-providers/ai-provider.ts";
import { findVersionToRun } from "../prompt-runs/prepare-run.ts";
import { findRunKey, type SealedKey, toUsableKey } from "../provider-keys/provider-keys.ts";
import { findProvider, MODEL_OF_WORKFLOW } from "./product-step.ts";

/** Products in a workflow and in the workflows that it runs. */
const MAX_PRODUCTS = 50;

type Keys = Record<string, string>;
type Product = Awaited<ReturnType<typeof findProductToRun>>;

interface Inspection {
  ctx: Context;
  caller: Member;
  apiKeys: Keys;
  /** Providers for which a key is needed. */
  providers: Set<string>;
  problems: FieldProblem[];
  seen: Set<string>;
}

/** Lists the missing provider keys and the unusable products of a run, and the keys that it needs. */
export async function checkRequirements(
  ctx: Context,
  caller: Member,
  workflow: Workflow,
  apiKeys: Keys,
): Promise<{ problems: FieldProblem[]; keys: ReadonlyMap<string, SealedKey> }> {
  const inspection = await inspect(ctx, caller, workflow, apiKeys);
  const { problems, keys } = await checkKeys(inspection);
  return { problems: [...problems, ...inspection.problems], keys };
}

/** Lists the providers for which a run needs a key. */
export async function listRequiredProviders(
  ctx: Context,
  caller: Member,
  workflow: Workflow,
  apiKeys: Keys,
): Promise<ReadonlySet<string>> {
  return (await inspect(ctx, caller, workflow, apiKeys)).providers;
}

async function inspect(ctx: Context, caller: Member, workflow: Workflow, apiKeys: Keys): Promise<Inspection> {
  const inspection: Inspection = {
    ctx,
    caller,
    apiKeys,
    providers: new Set(),
    problems: [],
    seen: new Set(),
  };
  await inspectWorkflow(inspection, workflow, 1, "workflowId");
  return inspection;
}

async function inspectWorkflow(
  inspection: Inspection,
  workflow: Workflow,
  depth: number,
  field: string,
): Promise<void> {
  for (const provider of listProviders(workflow)) inspection.providers.add(provider);
  for (const [index, step] of workflow.steps.entries()) {
    const work = step.type === "map" ? step.do : step;
    if (work.type !== "product") continue;
    const key = `${work.productId}@${work.version ?? ""}@${work.model ?? ""}@${depth}`;
    if (inspection.seen.has(key)) continue;
    inspection.seen.add(key);
    const reason = await findProductProblem(inspection, work, depth, field);
    if (reason) inspection.problems.push({ field, reason: `${formatPath(["steps", index])} ${reason}` });
  }
}

/** null: the product can run. `problems` gets those of the products that it runs in turn. */
async function findProductProblem(
  inspection: Inspection,
  {
    productId,
    version: pinned,
    model,
  }: { productId: string; version?: string | undefined; model?: string | undefined },
  depth: number,
  field: string,
): Promise<string | null> {
  const { ctx, caller, apiKeys } = inspection;
  if (inspection.seen.size > MAX_PRODUCTS)
    return `is one product too many: ${MAX_PRODUCTS} may be named in all`;
  const product = await valueOrMessage(() => findProductToRun(ctx, caller, productId));
  if (typeof product === "string") return `runs ${productId}: ${product}`;
  if (product.reason === "none") return `runs ${productId}, which you have not bought`;
  const version = await valueOrMessage(() => findVersionToRun(ctx, product, pinned));
  if (typeof version === "string") return `runs version ${pinned} of ${productId}, which you may not run`;
  if (product.type === "WORKFLOW") {
    if (model !== undefined) return `has a model for the workflow ${productId}; it ${MODEL_OF_WORKFLOW}`;
    if (depth >= MAX_CALL_DEPTH) return `runs the workflow ${productId}, more than ${MAX_CALL_DEPTH} deep`;
    await inspectWorkflow(inspection, Workflow.parse(JSON.parse(version.content)), depth + 1, field);
    return null;
  }
  const provider = findProvider(product.compatibility, apiKeys);
  if (provider) inspection.providers.add(provider);
  else inspection.problems.push({ field: "apiKeys", reason: keyNeededReason(product) });
  return null;
}

const keyNeededReason = ({ title, compatibility }: Product) =>
  `must have a key of one of ${compatibility.join(", ")}, which “${toVisibleLine(title)}” runs on`;

async function valueOrMessage<T>(find: () => Promise<T>): Promise<T | string> {
  try {
    return await find();
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
}

async function checkKeys({ ctx, caller, apiKeys, providers }: Inspection) {
  const problems: FieldProblem[] = [];
  const keys = new Map<string, SealedKey>();
  for (const provider of providers) {
    const key = await findKeyFor(ctx, caller, provider, apiKeys[provider]);
    if (typeof key === "string") problems.push({ field: `apiKeys.${provider}`, reason: key });
    else keys.set(provider, key);
  }
  return { problems, keys };
}

/** The key, or why there is none. A key of a provider that serves every model replaces any other key. */
async function findKeyFor(
  ctx: Context,
  caller: Member,
  provider: string,
  apiKeyId: string | undefined,
): Promise<SealedKey | string> {
  if (apiKeyId === undefined) return "is required: the workflow calls this provider";
  const key = await valueOrMessage(async () => {
    const found = await findRunKey(ctx, caller, apiKeyId);
    // A key that cannot be opened fails the request, not the run.
    toUsableKey(ctx, found);
    return found;
  });
  if (typeof key === "string") return "names no provider key of yours";
  return key.provider === provider || anyModelProviders.has(key.provider)
    ? key
    : `is a key of ${key.provider}`;
}
