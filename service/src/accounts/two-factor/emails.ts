import type { Context } from "../../core/context.ts";
import { type Email, renderEmail } from "../../platform/email/render-email.ts";
import { securityFootnote } from "../../platform/email/security-footnote.ts";

export const twoFactorEnabledEmail = (ctx: Context): Email =>
  renderEmail({
    subject: "Two-factor authentication is on",
    paragraphs: [
      "From now on, signing in to your account needs a code of your authenticator app.",
      "Keep your backup codes where you find them without your phone. All your other sessions were ended.",
    ],
    footnotes: [securityFootnote(ctx)],
  });

export const twoFactorDisabledEmail = (ctx: Context): Email =>
  renderEmail({
    subject: "Two-factor authentication is off",
    paragraphs: [
      "Signing in to your account no longer needs a code. Your backup codes are worth nothing now.",
    ],
    footnotes: [securityFootnote(ctx)],
  });

export const backupCodeUsedEmail = (ctx: Context, left: number): Email =>
  renderEmail({
    subject: "A backup code was used",
    paragraphs: [
      "A backup code was given in the place of a code of your authenticator app. It will not work again.",
      left === 0
        ? "It was the last one: make new ones in your account."
        : `You have ${left} left. You can make new ones in your account.`,
    ],
    footnotes: [securityFootnote(ctx)],
  });

export const backupCodesRenewedEmail = (ctx: Context): Email =>
  renderEmail({
    subject: "You have new backup codes",
    paragraphs: ["Ten new backup codes were made for your account. The ones before them no longer work."],
    footnotes: [securityFootnote(ctx)],
  });
