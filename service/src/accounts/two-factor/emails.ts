import type { Context } from "../../core/context.ts";
import { ifNotYou } from "../../platform/email/if-not-you.ts";
import { composeLetter, type Letter } from "../../platform/email/letter.ts";

export const twoFactorEnabledEmail = (ctx: Context): Letter =>
  composeLetter({
    subject: "Two-factor authentication is on",
    paragraphs: [
      "From now on, signing in to your account needs a code of your authenticator app.",
      "Keep your backup codes where you find them without your phone. All your other sessions were ended.",
    ],
    footnotes: [ifNotYou(ctx)],
  });

export const twoFactorDisabledEmail = (ctx: Context): Letter =>
  composeLetter({
    subject: "Two-factor authentication is off",
    paragraphs: [
      "Signing in to your account no longer needs a code. Your backup codes are worth nothing now.",
    ],
    footnotes: [ifNotYou(ctx)],
  });

export const backupCodeUsedEmail = (ctx: Context, left: number): Letter =>
  composeLetter({
    subject: "A backup code was used",
    paragraphs: [
      "A backup code was given in the place of a code of your authenticator app. It will not work again.",
      left === 0
        ? "It was the last one: make new ones in your account."
        : `You have ${left} left. You can make new ones in your account.`,
    ],
    footnotes: [ifNotYou(ctx)],
  });

export const backupCodesRenewedEmail = (ctx: Context): Letter =>
  composeLetter({
    subject: "You have new backup codes",
    paragraphs: ["Ten new backup codes were made for your account. The ones before them no longer work."],
    footnotes: [ifNotYou(ctx)],
  });
