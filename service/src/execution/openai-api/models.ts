import { type OpenAiModel, toVisibleLine } from "@stoa/contract";
import { findProductToRun } from "../../catalog/products/detail.ts";
import { findRunnableVersion } from "../../catalog/products/product-lookup.ts";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { listRunnablePrompts } from "./queries.ts";

/** OpenAI's list has no pages; a longer one helps no client. */
const MAX_MODELS = 1_000;

export const toModelId = (productId: string, version: string) => `${productId}@${version}`;

/** Splits `prod_…@1.2.0` into a product and an optional version. */
export function parseModelId(model: string): { productId: string; version: string | undefined } {
  const at = model.indexOf("@");
  return at === -1
    ? { productId: model, version: undefined }
    : { productId: model.slice(0, at), version: model.slice(at + 1) };
}

interface ModelSource {
  title: string;
  authorName: string;
  createdAt: Date;
}

const toModel = (id: string, { title, authorName, createdAt }: ModelSource): OpenAiModel => ({
  id,
  object: "model",
  created: Math.floor(createdAt.getTime() / 1000),
  owned_by: toVisibleLine(authorName),
  name: toVisibleLine(title),
});

export async function listModels(ctx: Context, caller: Member) {
  const rows = await listRunnablePrompts(ctx.db, caller.userId, MAX_MODELS);
  return { object: "list" as const, data: rows.map((row) => toModel(toId("prod", row.id), row)) };
}

/** A product that the caller may not run is no model. */
export async function readModel(ctx: Context, caller: Member, id: string): Promise<OpenAiModel> {
  const { productId, version } = parseModelId(id);
  const product = await findProductToRun(ctx, caller, productId);
  if (product.reason === "none" || product.type !== "PROMPT") throw new ApiError("PRODUCT_NOT_FOUND");
  const selector = { major: product.major, pinned: version };
  if (version !== undefined && !(await findRunnableVersion(ctx.db, product.id, selector)))
    throw new ApiError("VERSION_NOT_FOUND");
  return toModel(id, product);
}
