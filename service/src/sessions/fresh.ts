import type { Context, SessionCaller } from "../context.ts";
import { ApiError } from "../errors.ts";

const FRESH_MINUTES = 15;

/** Whether they signed in so lately that it is still they who sit there. */
export const isFresh = ({ now }: Context, { authenticatedAt }: SessionCaller): boolean =>
  now().getTime() - authenticatedAt.getTime() < FRESH_MINUTES * 60_000;

/** Before what a stolen session must not do. */
export function mustBeFresh(ctx: Context, caller: SessionCaller): void {
  if (isFresh(ctx, caller)) return;
  throw new ApiError(
    "UNAUTHORIZED",
    `Sign in again: this needs a sign-in of the last ${FRESH_MINUTES} minutes.`,
    {
      required: "fresh-sign-in",
    },
  );
}
