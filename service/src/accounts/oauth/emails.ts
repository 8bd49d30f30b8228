import type { Context } from "../../core/context.ts";
import { type Email, renderEmail } from "../../platform/email/render-email.ts";
import { securityFootnote } from "../../platform/email/security-footnote.ts";

export const clientCreatedEmail = (
  ctx: Context,
  { name, actsAlone }: { name: string; actsAlone: boolean },
): Email =>
  renderEmail({
    subject: "A new OAuth client was created",
    paragraphs: [
      `The OAuth client “${name}” was created in your account.${actsAlone ? " Its secret alone acts as your account (client credentials)." : ""}`,
    ],
    footnotes: [securityFootnote(ctx)],
  });

export const clientSecretRotatedEmail = (ctx: Context, { name }: { name: string }): Email =>
  renderEmail({
    subject: "An OAuth client has a new secret",
    paragraphs: [`The OAuth client “${name}” of your account has a new secret. The old one works no longer.`],
    footnotes: [securityFootnote(ctx)],
  });

export const grantCreatedEmail = (
  ctx: Context,
  { name, host, scopes }: { name: string; host: string; scopes: string[] },
): Email =>
  renderEmail({
    subject: "An application may act for you",
    paragraphs: [
      `You allowed the application “${name}” (${host}) to act in your name, with these scopes: ${scopes.join(", ")}.`,
      `You can revoke this at any time at ${ctx.links.origin()}/account/connected-apps.`,
    ],
    footnotes: [securityFootnote(ctx)],
  });
