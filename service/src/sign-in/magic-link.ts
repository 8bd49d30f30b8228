import type { Context, Source } from "../context.ts";
import { sendMail } from "../mail/mail.ts";
import { networkOfStranger } from "../network.ts";
import { countAttempts } from "./attempts.ts";
import { LINK_LIFETIME_SECONDS, mintLink, signInLetter } from "./letters.ts";

/** Sends a link to any address. Accounts are not even looked at, so that nothing can tell who has one. */
export async function sendMagicLink(ctx: Context, email: string, { ip }: Source) {
  await ctx.db.transaction().execute(async (tx) => {
    await countAttempts(ctx, tx, [
      ["magic-link of an address", email],
      ["letters for a network", networkOfStranger(ip)],
    ]);
    await sendMail(ctx, tx, email, signInLetter(await mintLink(ctx, tx, { purpose: "magic-link", email })));
  });
  return { message: "A link is on its way to this address.", lifetimeSeconds: LINK_LIFETIME_SECONDS };
}
