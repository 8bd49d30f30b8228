import type { Context } from "../../core/context.ts";
import { type Email, renderEmail } from "../../platform/email/render-email.ts";
import { securityFootnote } from "../../platform/email/security-footnote.ts";

/** The owner knows a key by its name, and finds it in code by its prefix. */
interface NamedKey {
  name: string;
  prefix: string;
}

const describeKey = ({ name, prefix }: NamedKey) => `“${name}” (${prefix}…)`;

export const keyCreatedEmail = (ctx: Context, key: NamedKey & { canSpend: boolean }): Email =>
  renderEmail({
    subject: key.canSpend ? "A new API key can spend money for you" : "A new API key was created",
    paragraphs: [
      `The API key ${describeKey(key)} was created in your account.${key.canSpend ? " It can buy and run things at your cost." : ""}`,
    ],
    footnotes: [securityFootnote(ctx)],
  });

export const keyRotatedEmail = (ctx: Context, old: NamedKey & { expiresAt: Date }): Email =>
  renderEmail({
    subject: "An API key was replaced",
    paragraphs: [
      `The API key ${describeKey(old)} was replaced by a new one with the same name and permissions.`,
      `The old key stops working on ${old.expiresAt.toUTCString()}. Until then, give the new one to everything that uses it.`,
    ],
    footnotes: [securityFootnote(ctx)],
  });

export const keyExpiringEmail = (key: NamedKey & { expiresAt: Date }): Email =>
  renderEmail({
    subject: "An API key is about to expire",
    paragraphs: [
      `The API key ${describeKey(key)} stops working on ${key.expiresAt.toUTCString()}.`,
      "If something still uses it, replace it: the new key works at once, and the old one as long as you say.",
    ],
    footnotes: ["If nothing uses this key any more, you can ignore this email."],
  });

export const keyRevokedEmail = (key: NamedKey): Email =>
  renderEmail({
    subject: "An API key was revoked",
    paragraphs: [
      `The API key ${describeKey(key)} was revoked by the operator of this marketplace and no longer works.`,
      "The operator revokes keys that were found in public. Check what it was used for, and create a new key.",
    ],
  });
