import { api } from "@stoa/contract";
import { repeatableRoute, resumableRoute, route } from "../../platform/http/route.ts";
import { nameAccount, onboard, readAccount } from "./account.ts";
import { readBalance } from "./balance.ts";
import { askPayout, listAllPayouts, listPayouts, readPayout, resumePayout } from "./payouts.ts";

export const payoutRoutes = [
  route(api.payouts.balance, (ctx, caller, { query }) => readBalance(ctx, caller, query)),
  route(api.payouts.list, (ctx, caller, { query }) => listPayouts(ctx, caller, query)),
  route(api.payouts.get, (ctx, caller, { params }) => readPayout(ctx, caller, params.payoutId)),
  resumableRoute(
    api.payouts.create,
    (ctx, caller, { body }) => askPayout(ctx, caller, body),
    (ctx, caller, payoutId) => resumePayout(ctx, caller, payoutId),
  ),
  route(api.payouts.account, (ctx, caller) => readAccount(ctx, caller)),
  route(api.payouts.nameAccount, (ctx, caller, { body }, { source }) =>
    nameAccount(ctx, caller, body, source),
  ),
  repeatableRoute(
    "A seller has one account at the provider; each request only draws another link to its page.",
    route(api.payouts.onboard, (ctx, caller, _input, { source }) => onboard(ctx, caller, source)),
  ),
  route(api.admin.payouts, (ctx, _caller, { query }) => listAllPayouts(ctx, query)),
];
