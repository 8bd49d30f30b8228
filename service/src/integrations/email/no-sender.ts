import type { EmailSender } from "./email-sender.ts";

/** Email is disabled: emails that were queued before are refused and not stored. */
export const noEmailSender: EmailSender = {
  send: async () => ({ state: "refused", why: "mail is off" }),
  check: async () => "off: nobody can sign in by email",
};
