import { api } from "@stoa/contract";
import { resumableRoute, route } from "../../platform/http/route.ts";
import {
  changeDiscountCode,
  createDiscountCode,
  deleteDiscountCode,
  listDiscountCodes,
  readDiscountCode,
} from "./discounts.ts";

export const discountRoutes = [
  route(api.discountCodes.list, (ctx, caller, { query }) => listDiscountCodes(ctx, caller, query)),
  route(api.discountCodes.get, (ctx, caller, { params }) =>
    readDiscountCode(ctx, caller, params.discountCodeId),
  ),
  resumableRoute(
    api.discountCodes.create,
    (ctx, caller, { body }) => createDiscountCode(ctx, caller, body),
    readDiscountCode,
  ),
  route(api.discountCodes.update, (ctx, caller, { params, body }, { ifMatch }) =>
    changeDiscountCode(ctx, caller, params.discountCodeId, body, ifMatch),
  ),
  route(api.discountCodes.delete, (ctx, caller, { params }) =>
    deleteDiscountCode(ctx, caller, params.discountCodeId),
  ),
];
