import type { ProductRuns } from "@stoa/contract";
import { authorizeChange } from "../../catalog/products/ownership.ts";
import type { Context, Member } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { type CountedRun, countRunsOf, insertCountedRun } from "./product-run-queries.ts";

const LATELY_DAYS = 30;

/** How often buyers ran a product: all that its author learns of their runs. */
export async function readProductRuns(ctx: Context, caller: Member, productId: string): Promise<ProductRuns> {
  const product = await authorizeChange(ctx, caller, productId);
  return countRunsOf(ctx.db, product, daysAfter(ctx.now(), -LATELY_DAYS));
}

/** A prompt that a workflow's step ran counts for its author, too. Its provider was called: not to be counted must not lose the answer. */
export async function countRun(ctx: Context, run: CountedRun): Promise<void> {
  try {
    await insertCountedRun(ctx.db, { ...run, id: ctx.newId(), now: ctx.now() });
  } catch (error) {
    ctx.log.error({ product: run.productId, err: error }, "a run of a product could not be counted");
  }
}
