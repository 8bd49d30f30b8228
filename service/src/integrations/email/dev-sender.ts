import { toVisibleLine } from "@stoa/contract";
import type { EmailSender } from "./email-sender.ts";

/** Prints one line for each email of the test environment, with its link, and sends nothing. */
export const createDevEmailSender = (print: (line: string) => void): EmailSender => ({
  async send({ recipient, subject, link }) {
    print(toVisibleLine(`Mail to ${recipient}: ${subject}${link ? ` → ${link}` : ""}`));
    return { state: "taken" };
  },
  check: async () => "kept for a week and shown at /dev/mail",
});
