import type { Verify } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { record } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { sendMail } from "../../platform/email/mail.ts";
import { SESSION_COOKIE } from "../../platform/http/authenticate.ts";
import type { RequestFacts } from "../../platform/http/route.ts";
import { entrantByEmail, openAccount } from "../people/credentials.ts";
import { completeSignIn, sessionAnswer } from "./complete.ts";
import { reportIfRefused } from "./failures.ts";
import { wipeUnproven } from "./first-proof.ts";
import { knownBrowser } from "./known-browser.ts";
import { passwordLeftOutLetter } from "./letters.ts";
import { type OneTimeToken, redeemOneTimeToken } from "./one-time-tokens.ts";
import { hasRegistered } from "./registering-browser.ts";

/** Uses a mailed link up: whoever holds it reads the mailbox, whose account is made now if there is none. */
export async function redeemLink(
  ctx: Context,
  { token: value, registrationSecret }: Verify,
  facts: RequestFacts,
) {
  const { source, cookies } = facts;
  const redeem = async (tx: Tx) => {
    const token = await redeemOneTimeToken(ctx, tx, value, ["magic-link", "registration"]);
    return accountOf(ctx, tx, token, { ...facts, registrationSecret });
  };
  const user = await reportIfRefused(ctx, source, () => ctx.db.transaction().execute(redeem));
  const earlierToken = cookies[SESSION_COOKIE];
  const token = await completeSignIn(ctx, { user, via: "magic-link", source, earlierToken });
  return sessionAnswer(token, [knownBrowser(ctx, user.email)]);
}

interface Registration {
  name: string;
  passwordHash: string;
  browser: string;
}

/** A registration's password is for the account that it makes, and for whoever chose it: else it might be a stranger's. */
async function accountOf(
  ctx: Context,
  tx: Tx,
  { email, data }: OneTimeToken,
  facts: Pick<RequestFacts, "source" | "cookies"> & { registrationSecret: string | undefined },
) {
  const wish = data as Partial<Registration>;
  const withPassword = wish.browser !== undefined && hasRegistered(facts, wish.browser);
  const isNew = await openAccount(ctx, tx, {
    email: email!,
    name: wish.name ?? null,
    passwordHash: withPassword ? wish.passwordHash! : null,
  });
  const account = await entrantByEmail(tx, email!);
  // Banned or closed: the link is worth what an unknown one is.
  if (!account) throw new ApiError("INVALID_TOKEN");
  const { source } = facts;
  if (isNew) {
    const details = { withPassword };
    await record(ctx, tx, { actorId: account.id, action: "user.registered", source, details });
    if (wish.passwordHash && !withPassword)
      await sendMail(ctx, tx, account.email, passwordLeftOutLetter(ctx));
  }
  if (!account.mailboxProvenAt) await wipeUnproven(ctx, tx, account, { by: "magic-link", source });
  return account;
}
