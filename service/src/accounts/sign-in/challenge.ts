import type { TwoFactor } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { SESSION_COOKIE } from "../../platform/http/authenticate.ts";
import type { RequestFacts } from "../../platform/http/route.ts";
import { entrantById } from "../people/credentials.ts";
import { type Entry, enter, mustBeRightCode, sessionAnswer } from "./complete.ts";
import { reportIfRefused } from "./failures.ts";
import { knownBrowser } from "./known-browser.ts";
import { mustFindOneTimeToken, redeemOneTimeToken } from "./one-time-tokens.ts";

/** The second half of a sign-in. A wrong code leaves the challenge; the right one uses it up, and so does one of parallel calls. */
export async function answerChallenge(ctx: Context, { challenge, code }: TwoFactor, facts: RequestFacts) {
  const { userId, data } = await reportIfRefused(ctx, facts.source, () =>
    mustFindOneTimeToken(ctx, challenge, "two-factor"),
  );
  const user = await entrantById(ctx.db, userId!);
  if (!user) throw new ApiError("INVALID_TOKEN");
  const entry: Entry = {
    user,
    via: data["via"] as string,
    source: facts.source,
    earlierToken: facts.cookies[SESSION_COOKIE],
    mustStillHold: async (tx) => void (await redeemOneTimeToken(ctx, tx, challenge, ["two-factor"])),
  };
  await mustBeRightCode(ctx, entry, code);
  return sessionAnswer(await enter(ctx, entry, true), [knownBrowser(ctx, user.email)]);
}
