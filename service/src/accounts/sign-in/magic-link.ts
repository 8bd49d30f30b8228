import type { Context } from "../../core/context.ts";
import { networkUnlessLoopback } from "../../core/network.ts";
import { queueEmail } from "../../platform/email/email-queue.ts";
import type { RequestInfo } from "../../platform/http/route.ts";
import { findSignInAccountByEmail } from "../people/credentials.ts";
import { countAttempts, runWithinLimits } from "./attempts.ts";
import { readDeviceId } from "./device-cookie.ts";
import { createSignInLink, LINK_LIFETIME_SECONDS, signInEmail } from "./emails.ts";

/**
 * Accounts are not read before a limit is reached, so that the response reveals nothing about them. A browser in which
 * the owner signed in before has a quota of its own: strangers cannot use it up.
 */
export async function sendMagicLink(
  ctx: Context,
  email: string,
  { source, cookies }: Pick<RequestInfo, "source" | "cookies">,
) {
  const browser = readDeviceId(ctx, cookies, email);
  const limited = { subject: email, account: () => findSignInAccountByEmail(ctx.db, email), source };
  await runWithinLimits(ctx, limited, async (tx) => {
    await countAttempts(ctx, tx, [
      browser ? ["magic-link in a known browser", browser] : ["magic-link of an address", email],
      ["emails for a network", networkUnlessLoopback(source.ip)],
    ]);
    await queueEmail(
      ctx,
      tx,
      email,
      signInEmail(await createSignInLink(ctx, tx, { purpose: "magic-link", email })),
    );
  });
  return { message: "A link is on its way to this address.", lifetimeSeconds: LINK_LIFETIME_SECONDS };
}
