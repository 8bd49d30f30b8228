import type { Context } from "../../core/context.ts";
import type { Queries } from "../../platform/db/database.ts";
import { type Email, renderEmail } from "../../platform/email/render-email.ts";
import { mintOneTimeToken } from "./one-time-tokens.ts";
import type { RevokedAccess } from "./password.ts";

/** As the specification says of magic links. Registrations use the same link. */
export const LINK_LIFETIME_SECONDS = 600;

const LINK_LIMITS = "The link works once, and for 10 minutes.";
const NOT_REQUESTED = "If this was not you, ignore this email: without the link nobody can sign in.";

interface SignInLinkInput {
  purpose: "magic-link" | "registration";
  email: string;
  data?: Record<string, unknown>;
}

/** The token is in the fragment, which browsers do not send: no log, proxy or mail scanner sees it. */
export async function createSignInLink(ctx: Context, tx: Queries, input: SignInLinkInput): Promise<string> {
  const token = await mintOneTimeToken(ctx, tx, { ...input, lifetimeMs: LINK_LIFETIME_SECONDS * 1000 });
  return `${ctx.links.origin()}/auth/verify#token=${token}`;
}

export const signInEmail = (url: string): Email =>
  renderEmail({
    subject: "Your sign-in link for Stoa",
    paragraphs: ["Use this link to sign in to Stoa."],
    action: { label: "Sign in", url },
    footnotes: [LINK_LIMITS, NOT_REQUESTED],
  });

// The email must not contain the name from the form: strangers could send any text to any address.
export const registrationEmail = (url: string): Email =>
  renderEmail({
    subject: "Confirm your registration at Stoa",
    paragraphs: [
      "Someone, hopefully you, registered at Stoa with this address and a password. Confirm it to activate the account.",
    ],
    action: { label: "Confirm and sign in", url },
    footnotes: [
      LINK_LIMITS,
      "Open it in the browser in which you chose the password. In another browser, the password is not saved.",
      "If you did not register just now, do nothing.",
    ],
  });

export const passwordNotSetEmail = (ctx: Context): Email =>
  renderEmail({
    subject: "Your account at Stoa has no password yet",
    paragraphs: [
      "You confirmed the registration in a different browser from the one in which the password was chosen. To protect your account, the password was not saved.",
      `Sign in with a mailed link at ${ctx.links.origin()}/auth/sign-in; a password can be set in the settings then.`,
    ],
  });

export const accountExistsEmail = (url: string): Email =>
  renderEmail({
    subject: "You have an account at Stoa already",
    paragraphs: [
      "Someone, hopefully you, tried to register at Stoa with this address, which already has an account. Nothing was changed. This link signs you in; you can then set a new password in your account.",
    ],
    action: { label: "Sign in", url },
    footnotes: [LINK_LIMITS, NOT_REQUESTED],
  });

export const passwordChangedEmail = (
  ctx: Context,
  { keysRevoked, grantsRevoked, clientSecretsRevoked }: RevokedAccess,
): Email =>
  renderEmail({
    subject: "Your password at Stoa was changed",
    paragraphs: [
      "The password of your account was changed, and all other sessions were ended.",
      keysRevoked + grantsRevoked + clientSecretsRevoked > 0
        ? `Revoked with it: ${keysRevoked} API keys, ${grantsRevoked} applications that could act for you, and the secrets of ${clientSecretsRevoked} OAuth clients.`
        : "API keys and applications that act for you go on.",
    ],
    footnotes: [
      `If this was not you, sign in with a mailed link at ${ctx.links.origin()}/auth/sign-in, set another password at once, and revoke API keys and applications with it.`,
    ],
  });
