import type { Context } from "../../core/context.ts";

/** The last line of each email about lasting access: setting a password ends all other sessions and offers to revoke the rest. */
export const securityFootnote = ({ links }: Pick<Context, "links">): string =>
  `If this was not you, someone else is signed in to your account: set another password at ${links.origin()}/auth/password, and revoke API keys and applications with it.`;
