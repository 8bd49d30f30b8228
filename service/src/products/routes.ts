import { api } from "@stoa/contract";
import { route } from "../http/route.ts";
import { readDetail } from "./detail.ts";
import { changeProduct, createProduct } from "./products.ts";
import { deleteProduct, publishProduct, unpublishProduct } from "./states.ts";

export const productRoutes = [
  route(api.products.get, (ctx, caller, { params }, { source, isPrefetch }) =>
    readDetail(ctx, caller, params.productId, { userAgent: source.userAgent, isPrefetch }),
  ),
  route(api.products.create, (ctx, caller, { body }) => createProduct(ctx, caller, body)),
  route(api.products.change, (ctx, caller, { params, body }, facts) =>
    changeProduct(ctx, caller, params.productId, body, facts),
  ),
  route(api.products.publish, (ctx, caller, { params }, { source }) =>
    publishProduct(ctx, caller, params.productId, source),
  ),
  route(api.products.unpublish, (ctx, caller, { params }, { source }) =>
    unpublishProduct(ctx, caller, params.productId, source),
  ),
  route(api.products.remove, (ctx, caller, { params }, { source }) =>
    deleteProduct(ctx, caller, params.productId, source),
  ),
];
