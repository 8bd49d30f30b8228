import type { Quota } from "@stoa/contract";
import type { PlanConfig } from "../../core/config/plan-config.ts";
import type { Caller, Member } from "../../core/context.ts";
import { networkOf } from "../../core/network.ts";
import type { RateLimitKey } from "../../platform/http/counters.ts";

export function allowanceOf(planConfig: PlanConfig, caller: Caller, ip: string): RateLimitKey {
  switch (caller.kind) {
    case "guest":
      // Guests are counted by address, because cookies cost nothing.
      return { key: `guest:${networkOf(ip)}`, quotas: shortestFirst(planConfig.guests) };
    case "session":
      return allowanceOfSessions(planConfig, caller.userId);
    default:
      return allowanceOfKeys(planConfig, caller);
  }
}

export const allowanceOfKeys = (planConfig: PlanConfig, { userId, plan, quota }: Member): RateLimitKey => ({
  key: `account:${userId}`,
  quotas: shortestFirst(quota ?? planConfig.plans[plan].quotas),
});

/** Sessions have their own counter, so that browsing does not use up the quota of API keys. */
export const allowanceOfSessions = (planConfig: PlanConfig, userId: string): RateLimitKey => ({
  key: `session:${userId}`,
  quotas: shortestFirst(planConfig.sessions),
});

const shortestFirst = (quotas: Quota[]) => quotas.toSorted((a, b) => a.seconds - b.seconds);
