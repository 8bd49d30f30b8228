import { MAX_TRY_OUT_CONTENT, type SetTryOut, type TryOut } from "@stoa/contract";
import { findProductToRun } from "../../catalog/products/detail.ts";
import type { Context, Member } from "../../core/context.ts";
import { dayOf } from "../../core/dates.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { findModel, mustSupportProvider } from "../prompt-runs/prepare-run.ts";
import { monthStartOf } from "../provider-keys/month-cost.ts";
import { findRunKey } from "../provider-keys/provider-keys.ts";
import { deleteTryOut, findTryOut, findUsedTries, type TryOutRow, upsertTryOut } from "./queries.ts";

/** Throws PRODUCT_NOT_FOUND, also for a product of another seller. */
async function findOwnProduct(ctx: Context, caller: Member, productId: string) {
  const product = await findProductToRun(ctx, caller, productId);
  if (product.reason !== "author") throw new ApiError("PRODUCT_NOT_FOUND");
  return product;
}

type OwnProduct = Awaited<ReturnType<typeof findOwnProduct>>;

function mustBeTriable({ type, status, content }: OwnProduct): void {
  if (type !== "PROMPT")
    throw ruleViolation("productId", "is a workflow: only prompts can be tried, because a try is one call");
  if (status === "deleted") throw new ApiError("INVALID_STATE", undefined, { current: status });
  if (content.length > MAX_TRY_OUT_CONTENT)
    throw ruleViolation(
      "productId",
      `has a prompt of ${content.length} characters: only prompts of at most ${MAX_TRY_OUT_CONTENT} can be tried`,
    );
}

export async function setTryOut(
  ctx: Context,
  caller: Member,
  productId: string,
  input: SetTryOut,
): Promise<TryOut> {
  const product = await findOwnProduct(ctx, caller, productId);
  mustBeTriable(product);
  const key = await findRunKey(ctx, caller, input.apiKeyId);
  mustSupportProvider(product, key);
  // Throws if no model is known, which the first visitor would otherwise find out.
  findModel(product, key, input.model ?? undefined);
  await upsertTryOut(ctx.db, {
    productId: product.id,
    ...{ providerKeyId: key.id, provider: key.provider },
    model: input.model,
    maxPerDay: input.maxPerDay,
    maxPerVisitorPerDay: input.maxPerVisitorPerDay,
    monthlyBudgetUsd: String(input.monthlyBudget),
    maxOutputTokens: input.maxOutputTokens,
    updatedAt: ctx.now(),
  });
  return readTryOut(ctx, caller, productId);
}

export async function readTryOut(ctx: Context, caller: Member, productId: string): Promise<TryOut> {
  const { id } = await findOwnProduct(ctx, caller, productId);
  const row = await findTryOut(ctx.db, id);
  if (!row) throw isOff();
  return toTryOut(ctx, caller, row);
}

export async function turnTryOutOff(ctx: Context, caller: Member, productId: string) {
  const { id } = await findOwnProduct(ctx, caller, productId);
  if (!(await deleteTryOut(ctx.db, id))) throw isOff();
  return { productId, deleted: true as const };
}

const isOff = () =>
  new ApiError("INVALID_STATE", "No visitor may try this product. Turn it on: PUT the limits here.", {
    current: "off",
  });

export const keyIdOf = ({ providerKeyId }: Pick<TryOutRow, "providerKeyId">) =>
  providerKeyId === null ? "sandbox" : toId("pkey", providerKeyId);

/** The days that the limits count. */
export const periodOf = (now: Date) => ({ today: dayOf(now), monthStart: dayOf(monthStartOf(now)) });

const isKeyStored = (ctx: Context, caller: Member, apiKeyId: string): Promise<boolean> =>
  findRunKey(ctx, caller, apiKeyId).then(
    () => true,
    (error) => {
      if (error instanceof ApiError) return false;
      throw error;
    },
  );

async function toTryOut(ctx: Context, caller: Member, row: TryOutRow): Promise<TryOut> {
  const apiKeyId = keyIdOf(row);
  const { lastFailure, ...used } = await findUsedTries(ctx.db, row.productId, periodOf(ctx.now()));
  return {
    apiKeyId,
    provider: row.provider,
    isKeyStored: await isKeyStored(ctx, caller, apiKeyId),
    model: row.model,
    maxPerDay: row.maxPerDay,
    maxPerVisitorPerDay: row.maxPerVisitorPerDay,
    monthlyBudget: Number(row.monthlyBudgetUsd),
    maxOutputTokens: row.maxOutputTokens,
    used: {
      ...used,
      lastFailure: lastFailure && { code: lastFailure.code, at: lastFailure.at.toISOString() },
    },
    updatedAt: row.updatedAt.toISOString(),
  };
}
