import type { EmailSender } from "./email-sender.ts";

/** Mail is off: what waited from a time when it was not is refused, and so not kept either. */
export const noEmailSender: EmailSender = {
  send: async () => ({ state: "refused", why: "mail is off" }),
  check: async () => "off: nobody can sign in by email",
};
