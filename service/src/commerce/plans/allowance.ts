import type { Quota } from "@stoa/contract";
import type { PlanConfig } from "../../core/config/plan-config.ts";
import type { Caller, Member } from "../../core/context.ts";
import { networkOf } from "../../core/network.ts";
import type { RateLimitKey } from "../../platform/http/counters.ts";

/** The key under which a caller's requests are counted, and the quotas for it. */
export function allowanceOf(book: PlanConfig, caller: Caller, ip: string): RateLimitKey {
  switch (caller.kind) {
    case "guest":
      // Guests are counted by address, because cookies cost nothing.
      return { key: `guest:${networkOf(ip)}`, quotas: shortestFirst(book.guests) };
    case "session":
      return allowanceOfSessions(book, caller.userId);
    default:
      return allowanceOfKeys(book, caller);
  }
}

/** All keys and tokens of an account share one count. */
export const allowanceOfKeys = (book: PlanConfig, { userId, plan, quota }: Member): RateLimitKey => ({
  key: `account:${userId}`,
  quotas: shortestFirst(quota ?? book.plans[plan].quotas),
});

/** Sessions have their own count, so that browsing does not use up the quota of programs. */
export const allowanceOfSessions = (book: PlanConfig, userId: string): RateLimitKey => ({
  key: `session:${userId}`,
  quotas: shortestFirst(book.sessions),
});

const shortestFirst = (quotas: Quota[]) => quotas.toSorted((a, b) => a.seconds - b.seconds);
