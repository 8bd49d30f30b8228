import type { ProductRuns } from "@stoa/contract";
import { authorizeChange } from "../../catalog/products/ownership.ts";
import type { Context, Member } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { countProductRuns, insertProductRun, type ProductRun } from "./product-run-queries.ts";

const RECENT_DAYS = 30;

export async function readProductRuns(ctx: Context, caller: Member, productId: string): Promise<ProductRuns> {
  const product = await authorizeChange(ctx, caller, productId);
  return countProductRuns(ctx.db, product, daysAfter(ctx.now(), -RECENT_DAYS));
}

/** Counts a prompt that a workflow step ran. The provider was called, so a failed write must not lose the answer. */
export async function recordProductRun(ctx: Context, run: ProductRun): Promise<void> {
  try {
    await insertProductRun(ctx.db, { ...run, id: ctx.newId(), now: ctx.now() });
  } catch (error) {
    ctx.log.error({ product: run.productId, err: error }, "a run of a product could not be counted");
  }
}
