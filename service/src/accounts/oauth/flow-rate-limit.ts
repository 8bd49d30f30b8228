import type { FastifyRequest } from "fastify";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { networkUnlessLoopback } from "../../core/network.ts";

/** Enough for an office behind one address, and little disk space. */
const FLOW_QUOTA = { requests: 120, seconds: 60 };

/** Starting a flow needs no sign-in, and each leaves a row for up to an hour. */
export const limitFlowsPerNetwork =
  (ctx: Context) =>
  async ({ ip }: FastifyRequest): Promise<void> => {
    const network = networkUnlessLoopback(ip);
    if (network === null) return;
    const { allowed } = await ctx.counters.consume({ key: `oauth flows:${network}`, quotas: [FLOW_QUOTA] });
    if (!allowed) throw new ApiError("RATE_LIMIT_EXCEEDED", undefined, undefined, FLOW_QUOTA.seconds);
  };
