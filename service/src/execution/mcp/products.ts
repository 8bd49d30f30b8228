import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import { findProductToRun } from "../../catalog/products/detail.ts";
import type { Context, Member } from "../../core/context.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { lastOf } from "../../core/required.ts";
import { mustBeEntitled, type Product } from "../prompt-runs/prepare-run.ts";
import { parseIdSuffix } from "./names.ts";
import {
  findProductByIdSuffix,
  listRunnableProducts,
  type RunnableFilter,
  type RunnableProduct,
} from "./queries.ts";

const PAGE = 100;

export interface RunnablePage {
  products: RunnableProduct[];
  /** Where the next page begins; absent on the last page. */
  nextCursor?: string;
}

/** A page of the products that the caller may run. A cursor is the id of the last product of the previous page. */
export async function listProductPage(
  ctx: Context,
  caller: Member,
  types: RunnableFilter["types"],
  cursor: string | undefined,
): Promise<RunnablePage> {
  const after = cursor === undefined ? null : toUuid("prod", cursor);
  if (cursor !== undefined && after === null)
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      "The cursor is invalid. Use the nextCursor of the previous page.",
    );
  const found = await listRunnableProducts(ctx.db, caller.userId, { types, after, limit: PAGE + 1 });
  const products = found.slice(0, PAGE);
  return found.length > PAGE ? { products, nextCursor: toId("prod", lastOf(products).id) } : { products };
}

/**
 * The product of that name. undefined: the caller never wrote or bought one. Throws the errors of `POST /ai/execute`, such as for a
 * refunded product.
 */
export async function findProductByName(
  ctx: Context,
  caller: Member,
  name: string,
): Promise<Product | undefined> {
  const suffix = parseIdSuffix(name);
  const id = suffix && (await findProductByIdSuffix(ctx.db, caller.userId, suffix));
  if (!id) return undefined;
  const product = await findProductToRun(ctx, caller, toId("prod", id));
  mustBeEntitled(product);
  return product;
}
