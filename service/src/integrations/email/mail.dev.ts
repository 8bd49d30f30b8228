import { toVisibleLine } from "@stoa/contract";
import type { Mail } from "./mail.ts";

/** Mail of the test environment goes nowhere: one line tells of each letter, with the link that it was sent for. */
export const devMail = (print: (line: string) => void): Mail => ({
  async carry({ recipient, subject, link }) {
    print(toVisibleLine(`Mail to ${recipient}: ${subject}${link ? ` → ${link}` : ""}`));
    return { state: "taken" };
  },
  check: async () => "kept for a week and shown at /dev/mail",
});
