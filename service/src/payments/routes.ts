import { api } from "@stoa/contract";
import { route } from "../http/route.ts";
import { addPaymentMethod, listPaymentMethods, makeDefault, removePaymentMethod } from "./methods.ts";

export const paymentRoutes = [
  route(api.paymentMethods.list, (ctx, caller, { query }) => listPaymentMethods(ctx, caller, query)),
  route(api.paymentMethods.add, (ctx, caller, { body }) => addPaymentMethod(ctx, caller, body.token)),
  route(api.paymentMethods.remove, (ctx, caller, { params }) =>
    removePaymentMethod(ctx, caller, params.methodId),
  ),
  route(api.paymentMethods.makeDefault, (ctx, caller, { params }) =>
    makeDefault(ctx, caller, params.methodId),
  ),
];
