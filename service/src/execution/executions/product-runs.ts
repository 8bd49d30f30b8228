import type { ProductRunCounts, ProductRuns, SaleRuns } from "@stoa/contract";
import { authorizeChange } from "../../catalog/products/ownership.ts";
import { findOwnSale } from "../../commerce/orders/sales.ts";
import type { Context, Member } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { toId, toUuids } from "../../core/ids.ts";
import { mapPage, type Page, type Paging } from "../../platform/db/paging.ts";
import {
  countProductRuns,
  countRunsOfSale,
  insertProductRun,
  listRunCounts,
  type ProductRun,
} from "./product-run-queries.ts";

const RECENT_DAYS = 30;

export async function readProductRuns(ctx: Context, caller: Member, productId: string): Promise<ProductRuns> {
  const product = await authorizeChange(ctx, caller, productId);
  return countProductRuns(ctx.db, product, daysAfter(ctx.now(), -RECENT_DAYS));
}

interface CountsQuery extends Paging {
  /** Separated by commas. */
  productIds?: string | undefined;
  sort: "runs" | "failures";
}

export async function listProductRunCounts(
  ctx: Context,
  caller: Member,
  { productIds, ...query }: CountsQuery,
): Promise<Page<ProductRunCounts>> {
  const ids = productIds === undefined ? undefined : toUuids("prod", productIds);
  const since = daysAfter(ctx.now(), -RECENT_DAYS);
  const page = await listRunCounts(ctx.db, caller.userId, { ...query, productIds: ids, since });
  return mapPage(page, ({ productId, title, type, ...counts }) => ({
    product: { id: toId("prod", productId), title, type },
    ...counts,
  }));
}

export async function readSaleRuns(ctx: Context, caller: Member, orderId: string): Promise<SaleRuns> {
  const { buyerId, productId, createdAt } = await findOwnSale(ctx, caller, orderId);
  const { lastAt, ...runs } = await countRunsOfSale(ctx.db, { buyerId, productId, since: createdAt });
  return { ...runs, lastAt: lastAt?.toISOString() ?? null };
}

/** Counts a prompt that a workflow step ran. The provider was called, so a failed write must not lose the answer. */
export async function recordProductRun(ctx: Context, run: ProductRun): Promise<void> {
  try {
    await insertProductRun(ctx.db, { ...run, id: ctx.newId(), now: ctx.now() });
  } catch (error) {
    ctx.log.error({ product: run.productId, err: error }, "a run of a product could not be counted");
  }
}
