import type { RateLimits } from "../../platform/http/rate-limit.ts";
import { type Middleware, requestSource } from "./request-context.ts";

/** A wrong secret or token counts like a wrong API key. Neither can be guessed, so a right one still passes. */
export const countInvalidCredentials =
  (limits: RateLimits): Middleware =>
  async (koa, next) => {
    await next();
    if (koa.status !== 401) return;
    const refusal = await limits.countFailure("api", requestSource().ip);
    if (!refusal) return;
    koa.status = 429;
    koa.set("retry-after", String(refusal.retryAfterSeconds));
    koa.body = { error: "slow_down", error_description: refusal.message };
  };
