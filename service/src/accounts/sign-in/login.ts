import type { LogIn } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { networkUnlessLoopback } from "../../core/network.ts";
import { SESSION_COOKIE } from "../../platform/http/authenticate.ts";
import type { RequestFacts } from "../../platform/http/route.ts";
import { entrantByEmail } from "../people/credentials.ts";
import { passwordFits } from "../people/password-hash.ts";
import { countAttempts, giveBack, withinLimits } from "./attempts.ts";
import { completeSignIn, sessionAnswer } from "./complete.ts";
import { reportFailure } from "./failures.ts";
import { knownBrowser, knownFor } from "./known-browser.ts";

const refused = () => new ApiError("INVALID_CREDENTIALS");

/** Unknown, unproven, banned, without a password, or with another one: the same work and the same answer. */
export async function logIn(ctx: Context, { email, password, code }: LogIn, facts: RequestFacts) {
  const { source, cookies } = facts;
  const browser = knownFor(ctx, cookies, email);
  const limited = { subject: email, account: () => entrantByEmail(ctx.db, email), source };
  const attempt = await withinLimits(ctx, limited, (tx) =>
    countAttempts(ctx, tx, [
      browser ? ["login in a known browser", browser] : ["login of an address", email],
      ["login from a network", networkUnlessLoopback(source.ip)],
    ]),
  );
  const account = await entrantByEmail(ctx.db, email);
  const isRight = await passwordFits(account?.passwordHash, password);
  if (!account?.mailboxProvenAt || !isRight) {
    const accountId = account?.id ?? null;
    await reportFailure(ctx, { action: "sign_in.password_refused", subject: email, accountId, source });
    throw refused();
  }
  await ctx.db.transaction().execute((tx) => giveBack(tx, attempt));
  const token = await completeSignIn(ctx, {
    user: account,
    via: "password",
    source,
    code,
    earlierToken: cookies[SESSION_COOKIE],
    // Changed while we hashed: the session would outlive the change that ends all others.
    async mustStillHold(_tx, { passwordHash }) {
      if (passwordHash !== account.passwordHash) throw refused();
    },
  });
  return sessionAnswer(token, [knownBrowser(ctx, account.email)]);
}
