import type { Register } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { networkUnlessLoopback } from "../../core/network.ts";
import { queueEmail } from "../../platform/email/email-queue.ts";
import { DataResponse, type RequestInfo } from "../../platform/http/route.ts";
import { findSignInAccountByEmail } from "../people/credentials.ts";
import { hashPassword } from "../people/password-hash.ts";
import { countAttempts, runWithinLimits } from "./attempts.ts";
import { accountExistsEmail, createSignInLink, LINK_LIFETIME_SECONDS, registrationEmail } from "./emails.ts";
import { validatePassword } from "./password-rules.ts";
import { issueRegistrationSecret } from "./registration-cookie.ts";

/**
 * Creates no account: name and password wait in the token, so that strangers cannot set a password for an address.
 * A known address costs the same work and gets the same response.
 */
export async function register(ctx: Context, { email, password, name }: Register, facts: RequestInfo) {
  validatePassword(password, { email, name });
  const limited = {
    subject: email,
    account: () => findSignInAccountByEmail(ctx.db, email),
    source: facts.source,
  };
  await runWithinLimits(ctx, limited, (tx) =>
    countAttempts(ctx, tx, [
      ["registration of an address", email],
      ["emails for a network", networkUnlessLoopback(facts.source.ip)],
    ]),
  );
  const passwordHash = await hashPassword(password);
  const { cookie, secret, browser } = issueRegistrationSecret(facts, LINK_LIFETIME_SECONDS);
  await ctx.db.transaction().execute(async (tx) => {
    const isKnown = (await findSignInAccountByEmail(tx, email)) !== undefined;
    const link = isKnown
      ? await createSignInLink(ctx, tx, { purpose: "magic-link", email })
      : await createSignInLink(ctx, tx, {
          purpose: "registration",
          email,
          data: { name, passwordHash, browser },
        });
    await queueEmail(ctx, tx, email, isKnown ? accountExistsEmail(link) : registrationEmail(link));
  });
  const message = "An email is on its way to this address: its link finishes the registration.";
  const data = { message, lifetimeSeconds: LINK_LIFETIME_SECONDS, registrationSecret: secret };
  return new DataResponse(data, { cookies: [cookie] });
}
