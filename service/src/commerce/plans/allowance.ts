import type { Quota } from "@stoa/contract";
import type { PlanConfig } from "../../core/config/plan-config.ts";
import type { Caller, Member } from "../../core/context.ts";
import { networkOf } from "../../core/network.ts";
import type { RateLimitKey } from "../../platform/http/counters.ts";

/** What a caller's requests are counted under, and against which quotas. */
export function allowanceOf(book: PlanConfig, caller: Caller, ip: string): RateLimitKey {
  switch (caller.kind) {
    case "guest":
      // By address: cookies are to be had for nothing.
      return { key: `guest:${networkOf(ip)}`, quotas: shortestFirst(book.guests) };
    case "session":
      return allowanceOfSessions(book, caller.userId);
    default:
      return allowanceOfKeys(book, caller);
  }
}

/** All keys and tokens of the account together. */
export const allowanceOfKeys = (book: PlanConfig, { userId, plan, quota }: Member): RateLimitKey => ({
  key: `account:${userId}`,
  quotas: shortestFirst(quota ?? book.plans[plan].quotas),
});

/** Apart from the keys, so that looking at a page does not eat what programs need. */
export const allowanceOfSessions = (book: PlanConfig, userId: string): RateLimitKey => ({
  key: `session:${userId}`,
  quotas: shortestFirst(book.sessions),
});

const shortestFirst = (quotas: Quota[]) => quotas.toSorted((a, b) => a.seconds - b.seconds);
