import type { Caller, Context, SessionCaller } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";

export const FRESH_MINUTES = 15;

export const isFresh = ({ now }: Pick<Context, "now">, { authenticatedAt }: SessionCaller): boolean =>
  now().getTime() - authenticatedAt.getTime() < FRESH_MINUTES * 60_000;

/** Protects what a stolen session must not do. A key or token passes: its owner granted it, and `access` limits it. */
export function mustBeFresh(ctx: Pick<Context, "now">, caller: Caller): void {
  if (caller.kind !== "session" || isFresh(ctx, caller)) return;
  throw new ApiError(
    "UNAUTHORIZED",
    `This needs a sign-in of the last ${FRESH_MINUTES} minutes. Sign in again, at /auth/sign-in or by /api/auth, and repeat it with the new session.`,
    { required: "fresh-sign-in", reason: "sign_in_too_old" },
  );
}
