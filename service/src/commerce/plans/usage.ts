import type { QuotaWindow, Usage } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import type { RateLimitWindow } from "../../platform/http/counters.ts";
import { allowanceOfKeys, allowanceOfSessions } from "./allowance.ts";

/** Peeking counts no request. */
export async function readUsage({ config, counters }: Context, caller: Member): Promise<Usage> {
  const [windows, sessionWindows] = await Promise.all([
    counters.peek(allowanceOfKeys(config.planConfig, caller)),
    counters.peek(allowanceOfSessions(config.planConfig, caller.userId)),
  ]);
  return {
    plan: caller.plan,
    windows: windows.map(toQuotaWindow),
    sessionWindows: sessionWindows.map(toQuotaWindow),
  };
}

const toQuotaWindow = ({ quota, used, endsAt }: RateLimitWindow): QuotaWindow => ({
  limit: quota.requests,
  seconds: quota.seconds,
  used,
  remaining: Math.max(0, quota.requests - used),
  resetAt: endsAt?.toISOString() ?? null,
});
