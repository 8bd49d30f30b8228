import { api } from "@stoa/contract";
import { repeatableRoute, resumableRoute, route } from "../../platform/http/route.ts";
import {
  addPaymentMethod,
  listPaymentMethods,
  removePaymentMethod,
  resumeMethod,
  setDefaultPaymentMethod,
  startCardSetup,
} from "./payment-methods.ts";

export const paymentRoutes = [
  route(api.paymentMethods.list, (ctx, caller, { query }) => listPaymentMethods(ctx, caller, query)),
  resumableRoute(
    api.paymentMethods.create,
    (ctx, caller, { body }) => addPaymentMethod(ctx, caller, body.token),
    resumeMethod,
  ),
  repeatableRoute(
    "It writes nothing; each request only draws another link to the provider's page.",
    route(api.paymentMethods.startSetup, (ctx, caller, { body }) =>
      startCardSetup(ctx, caller, body.returnTo),
    ),
  ),
  route(api.paymentMethods.delete, (ctx, caller, { params }) =>
    removePaymentMethod(ctx, caller, params.methodId),
  ),
  resumableRoute(
    api.paymentMethods.setDefault,
    (ctx, caller, { params }) => setDefaultPaymentMethod(ctx, caller, params.methodId),
    resumeMethod,
  ),
];
