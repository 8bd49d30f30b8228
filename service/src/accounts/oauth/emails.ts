import type { Context } from "../../core/context.ts";
import { ifNotYou } from "../../platform/email/if-not-you.ts";
import { composeLetter, type Letter } from "../../platform/email/letter.ts";

export const clientCreatedEmail = (
  ctx: Context,
  { name, actsAlone }: { name: string; actsAlone: boolean },
): Letter =>
  composeLetter({
    subject: "A new OAuth client was created",
    paragraphs: [
      `The OAuth client “${name}” was created in your account.${actsAlone ? " Its secret alone acts as your account (client credentials)." : ""}`,
    ],
    footnotes: [ifNotYou(ctx)],
  });

export const clientSecretRotatedEmail = (ctx: Context, { name }: { name: string }): Letter =>
  composeLetter({
    subject: "An OAuth client has a new secret",
    paragraphs: [`The OAuth client “${name}” of your account has a new secret. The old one works no longer.`],
    footnotes: [ifNotYou(ctx)],
  });

export const grantCreatedEmail = (
  ctx: Context,
  { name, host, scopes }: { name: string; host: string; scopes: string[] },
): Letter =>
  composeLetter({
    subject: "An application may act for you",
    paragraphs: [
      `You allowed the application “${name}” (${host}) to act in your name, with these scopes: ${scopes.join(", ")}.`,
      `You can take this back at any time, at ${ctx.links.origin()}/auth/signed-in.`,
    ],
    footnotes: [ifNotYou(ctx)],
  });
