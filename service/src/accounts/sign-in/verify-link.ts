import type { VerifyToken } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { queueEmail } from "../../platform/email/email-queue.ts";
import { SESSION_COOKIE } from "../../platform/http/authenticate.ts";
import type { RequestInfo } from "../../platform/http/route.ts";
import { createVerifiedAccount, findSignInAccountByEmail } from "../people/credentials.ts";
import { completeSignIn, sessionResponse } from "./complete-sign-in.ts";
import { deviceCookie } from "./device-cookie.ts";
import { passwordNotSetEmail } from "./emails.ts";
import { reportInvalidToken } from "./failures.ts";
import { type OneTimeToken, redeemOneTimeToken } from "./one-time-tokens.ts";
import { isRegistrant } from "./registration-cookie.ts";
import { resetUnverifiedAccount } from "./unverified-account.ts";

/** Redeems a mailed link. Creates the account when the address has none. */
export async function verifyLink(
  ctx: Context,
  { token: value, registrationSecret }: VerifyToken,
  facts: RequestInfo,
) {
  const { source, cookies } = facts;
  const redeem = async (tx: Tx) => {
    const token = await redeemOneTimeToken(ctx, tx, value, ["magic-link", "registration"]);
    return findOrCreateAccount(ctx, tx, token, { ...facts, registrationSecret });
  };
  const user = await reportInvalidToken(ctx, source, () => ctx.db.transaction().execute(redeem));
  const previousToken = cookies[SESSION_COOKIE];
  const token = await completeSignIn(ctx, { user, via: "magic-link", source, previousToken });
  return sessionResponse(token, [deviceCookie(ctx, user.email)]);
}

interface RegistrationData {
  name: string;
  passwordHash: string;
  browser: string;
}

/** The password of a registration counts only for the client that chose it. It might be a stranger's. */
async function findOrCreateAccount(
  ctx: Context,
  tx: Tx,
  { email, data }: OneTimeToken,
  facts: Pick<RequestInfo, "source" | "cookies"> & { registrationSecret: string | undefined },
) {
  const input = data as Partial<RegistrationData>;
  const withPassword = input.browser !== undefined && isRegistrant(facts, input.browser);
  const isNew = await createVerifiedAccount(ctx, tx, {
    email: email!,
    name: input.name ?? null,
    passwordHash: withPassword ? (input.passwordHash ?? null) : null,
  });
  const account = await findSignInAccountByEmail(tx, email!);
  // Banned or closed: the same response as for an unknown link.
  if (!account) throw new ApiError("INVALID_TOKEN");
  const { source } = facts;
  if (isNew) {
    const details = { withPassword };
    await recordAudit(ctx, tx, { actorId: account.id, action: "user.registered", source, details });
    if (input.passwordHash && !withPassword)
      await queueEmail(ctx, tx, account.email, passwordNotSetEmail(ctx));
  }
  if (!account.emailVerifiedAt) await resetUnverifiedAccount(ctx, tx, account, { by: "magic-link", source });
  return account;
}
