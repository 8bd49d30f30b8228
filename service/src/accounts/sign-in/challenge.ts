import type { VerifyTwoFactor } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { SESSION_COOKIE } from "../../platform/http/authenticate.ts";
import type { RequestInfo } from "../../platform/http/route.ts";
import { findSignInAccount } from "../people/credentials.ts";
import {
  mustBeValidCode,
  type ProvenSignIn,
  sessionResponse,
  startSignedInSession,
} from "./complete-sign-in.ts";
import { deviceCookie } from "./device-cookie.ts";
import { reportInvalidToken } from "./failures.ts";
import { mustFindOneTimeToken, redeemOneTimeToken } from "./one-time-tokens.ts";

/** A wrong code keeps the challenge. The right one consumes it, for one of parallel calls. */
export async function completeChallenge(
  ctx: Context,
  { challenge, code }: VerifyTwoFactor,
  facts: RequestInfo,
) {
  const { userId, data } = await reportInvalidToken(ctx, facts.source, () =>
    mustFindOneTimeToken(ctx, challenge, "two-factor"),
  );
  const user = await findSignInAccount(ctx.db, userId!);
  if (!user) throw new ApiError("INVALID_TOKEN");
  const entry: ProvenSignIn = {
    user,
    via: data["via"] as string,
    source: facts.source,
    previousToken: facts.cookies[SESSION_COOKIE],
    revalidate: async (tx) => void (await redeemOneTimeToken(ctx, tx, challenge, ["two-factor"])),
  };
  await mustBeValidCode(ctx, entry, code);
  return sessionResponse(await startSignedInSession(ctx, entry, true), [deviceCookie(ctx, user.email)]);
}
