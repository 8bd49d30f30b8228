import { api } from "@stoa/contract";
import { route } from "../../platform/http/route.ts";
import { listPayments } from "./payment-history.ts";
import { changeSubscription, readSubscription } from "./subscription-change.ts";
import { readUsage } from "./usage.ts";

export const planRoutes = [
  route(api.plans.usage, (ctx, caller) => readUsage(ctx, caller)),
  route(api.plans.subscription, (ctx, caller) => readSubscription(ctx, caller)),
  route(api.plans.payments, (ctx, caller, { query }) => listPayments(ctx, caller, query)),
  route(api.plans.changeSubscription, (ctx, caller, { body }, facts) =>
    changeSubscription(ctx, caller, body, facts.source),
  ),
];
