import { api } from "@stoa/contract";
import { repeatableRoute, resumableRoute, route } from "../../platform/http/route.ts";
import { listMaturities, readBalance } from "./balance.ts";
import { readPayoutAccount, setAccount, startOnboarding } from "./payout-account.ts";
import { listPayoutItems, readPayout } from "./payout-items.ts";
import { readStatement } from "./payout-statement.ts";
import { listAllPayouts, listPayouts, requestPayout, resumePayout } from "./payouts.ts";

export const payoutRoutes = [
  route(api.balance.maturities, (ctx, caller, { query }) => listMaturities(ctx, caller, query)),
  route(api.balance.get, (ctx, caller, { query }) => readBalance(ctx, caller, query)),
  route(api.payouts.list, (ctx, caller, { query }) => listPayouts(ctx, caller, query)),
  route(api.payouts.get, (ctx, caller, { params }) => readPayout(ctx, caller, params.payoutId)),
  route(api.payouts.items, (ctx, caller, { params, query }) =>
    listPayoutItems(ctx, caller, params.payoutId, query),
  ),
  route(api.payouts.statement, (ctx, caller, { params, query }) =>
    readStatement(ctx, caller, params.payoutId, query.format),
  ),
  resumableRoute(
    api.payouts.create,
    (ctx, caller, { body }) => requestPayout(ctx, caller, body),
    (ctx, caller, payoutId) => resumePayout(ctx, caller, payoutId),
  ),
  route(api.payouts.account.get, (ctx, caller) => readPayoutAccount(ctx, caller)),
  route(api.payouts.account.set, (ctx, caller, { body }, { source }) =>
    setAccount(ctx, caller, body, source),
  ),
  repeatableRoute(
    "A seller has one account at the provider; each request only draws another link to its page.",
    route(api.payouts.account.onboard, (ctx, caller, _input, { source }) =>
      startOnboarding(ctx, caller, source),
    ),
  ),
  route(api.admin.payouts.list, (ctx, _caller, { query }) => listAllPayouts(ctx, query)),
];
