import type { LogIn } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { networkUnlessLoopback } from "../../core/network.ts";
import { SESSION_COOKIE } from "../../platform/http/authenticate.ts";
import type { RequestInfo } from "../../platform/http/route.ts";
import { findSignInAccountByEmail } from "../people/credentials.ts";
import { verifyPassword } from "../people/password-hash.ts";
import { countAttempts, releaseAttempts, runWithinLimits } from "./attempts.ts";
import { completeSignIn, sessionResponse } from "./complete-sign-in.ts";
import { deviceCookie, readDeviceId } from "./device-cookie.ts";
import { reportFailure } from "./failures.ts";

const invalidCredentials = () => new ApiError("INVALID_CREDENTIALS");

/** Every reason for a refusal costs the same work and gets the same response. */
export async function logIn(ctx: Context, { email, password, code }: LogIn, facts: RequestInfo) {
  const { source, cookies } = facts;
  const browser = readDeviceId(ctx, cookies, email);
  const limited = { subject: email, account: () => findSignInAccountByEmail(ctx.db, email), source };
  const attempt = await runWithinLimits(ctx, limited, (tx) =>
    countAttempts(ctx, tx, [
      browser ? ["login in a known browser", browser] : ["login of an address", email],
      ["login from a network", networkUnlessLoopback(source.ip)],
    ]),
  );
  const account = await findSignInAccountByEmail(ctx.db, email);
  const isRight = await verifyPassword(account?.passwordHash, password);
  if (!account?.emailVerifiedAt || !isRight) {
    const accountId = account?.id ?? null;
    await reportFailure(ctx, { action: "sign_in.password_refused", subject: email, accountId, source });
    throw invalidCredentials();
  }
  await ctx.db.transaction().execute((tx) => releaseAttempts(tx, attempt));
  const token = await completeSignIn(ctx, {
    user: account,
    via: "password",
    source,
    code,
    previousToken: cookies[SESSION_COOKIE],
    // The password changed while it was verified: this session would outlive the change that ends all others.
    async revalidate(_tx, { passwordHash }) {
      if (passwordHash !== account.passwordHash) throw invalidCredentials();
    },
  });
  return sessionResponse(token, [deviceCookie(ctx, account.email)]);
}
