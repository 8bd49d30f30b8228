import { api } from "@stoa/contract";
import { route } from "../../platform/http/route.ts";
import { listPayments } from "./payment-history.ts";
import { changeSubscription, readSubscription } from "./subscription-change.ts";
import { readUsage } from "./usage.ts";

export const planRoutes = [
  route(api.account.usage.get, (ctx, caller) => readUsage(ctx, caller)),
  route(api.account.subscription.get, (ctx, caller) => readSubscription(ctx, caller)),
  route(api.account.subscription.payments, (ctx, caller, { query }) => listPayments(ctx, caller, query)),
  route(api.account.subscription.update, (ctx, caller, { body }, facts) =>
    changeSubscription(ctx, caller, body, facts.source),
  ),
];
