import { toVisibleLine } from "@stoa/contract";
import type { EmailSender } from "./email-sender.ts";

/** Mail of the test environment goes nowhere: one line tells of each email, with the link that it was sent for. */
export const createDevEmailSender = (print: (line: string) => void): EmailSender => ({
  async send({ recipient, subject, link }) {
    print(toVisibleLine(`Mail to ${recipient}: ${subject}${link ? ` → ${link}` : ""}`));
    return { state: "taken" };
  },
  check: async () => "kept for a week and shown at /dev/mail",
});
