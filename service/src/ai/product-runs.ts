import type { ProductRuns } from "@stoa/contract";
import type { Context, Member } from "../context.ts";
import { daysAfter } from "../days.ts";
import { mustMayChange } from "../products/ownership.ts";
import { countRunsOf } from "./queries.ts";

const LATELY_DAYS = 30;

/** How often buyers ran a product: all that its author learns of their runs. */
export async function readProductRuns(ctx: Context, caller: Member, productId: string): Promise<ProductRuns> {
  const product = await mustMayChange(ctx, caller, productId);
  return countRunsOf(ctx.db, product, daysAfter(ctx.now(), -LATELY_DAYS));
}
