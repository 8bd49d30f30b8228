import type { Register } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { networkUnlessLoopback } from "../../core/network.ts";
import { sendMail } from "../../platform/email/mail.ts";
import { Answer, type RequestFacts } from "../../platform/http/route.ts";
import { entrantByEmail } from "../people/credentials.ts";
import { hashPassword } from "../people/password-hash.ts";
import { countAttempts, withinLimits } from "./attempts.ts";
import { knownAlreadyLetter, LINK_LIFETIME_SECONDS, mintLink, registrationLetter } from "./letters.ts";
import { mustBeGoodPassword } from "./password-rules.ts";
import { markBrowser } from "./registering-browser.ts";

/**
 * Makes no account: name and password wait in the token of the letter for whoever reads the mailbox, so that nobody can
 * put a password on an address that is not theirs. A known address costs the same work and gets the same answer.
 */
export async function register(ctx: Context, { email, password, name }: Register, facts: RequestFacts) {
  mustBeGoodPassword(password, { email, name });
  const limited = { subject: email, account: () => entrantByEmail(ctx.db, email), source: facts.source };
  await withinLimits(ctx, limited, (tx) =>
    countAttempts(ctx, tx, [
      ["registration of an address", email],
      ["letters for a network", networkUnlessLoopback(facts.source.ip)],
    ]),
  );
  const passwordHash = await hashPassword(password);
  const { cookie, secret, browser } = markBrowser(facts, LINK_LIFETIME_SECONDS);
  await ctx.db.transaction().execute(async (tx) => {
    const isKnown = (await entrantByEmail(tx, email)) !== undefined;
    const link = isKnown
      ? await mintLink(ctx, tx, { purpose: "magic-link", email })
      : await mintLink(ctx, tx, { purpose: "registration", email, data: { name, passwordHash, browser } });
    await sendMail(ctx, tx, email, isKnown ? knownAlreadyLetter(link) : registrationLetter(link));
  });
  const message = "A letter is on its way to this address: its link finishes the registration.";
  const data = { message, lifetimeSeconds: LINK_LIFETIME_SECONDS, registrationSecret: secret };
  return new Answer(data, { cookies: [cookie] });
}
