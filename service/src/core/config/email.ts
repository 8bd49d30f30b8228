import { parseMailbox } from "../mailbox.ts";
import type { Environment } from "./config.ts";
import type { SettingsReader } from "./settings-reader.ts";
import { parseSmtpUrl } from "./smtp-url.ts";

export function readEmailSettings(read: SettingsReader, environment: Environment) {
  const smtpUrl = read.text("SMTP_URL");
  const mail = read.choice(
    "STOA_MAIL",
    ["smtp", "dev", "off"],
    smtpUrl || environment === "production" ? "smtp" : "dev",
  );
  if (mail === "smtp" && !smtpUrl)
    read.problems.push(
      read.text("STOA_MAIL")
        ? "STOA_MAIL=smtp needs SMTP_URL"
        : "SMTP_URL must be set in production, or STOA_MAIL=off: then nobody can sign in by email",
    );
  if (mail === "dev" && environment === "production")
    read.problems.push("STOA_MAIL=dev shows everybody's mail: it is for the test environment");
  if (smtpUrl) checkSmtpUrl(read, smtpUrl);
  return { mail, smtpUrl, mailFrom: readMailFrom(read, mail === "smtp" && environment === "production") };
}

function checkSmtpUrl(read: SettingsReader, smtpUrl: string): void {
  try {
    parseSmtpUrl(smtpUrl);
  } catch (error) {
    read.problems.push(`SMTP_URL ${(error as Error).message}`);
  }
}

function readMailFrom(read: SettingsReader, isRequired: boolean): string {
  const mailFrom = read.text("STOA_MAIL_FROM");
  if (mailFrom === null && isRequired)
    read.problems.push("STOA_MAIL_FROM must be set in production: an address that SMTP_URL may send from");
  if (mailFrom !== null && !parseMailbox(mailFrom))
    read.problems.push('STOA_MAIL_FROM is no address such as "Stoa <stoa@example.com>"');
  return mailFrom ?? "Stoa <stoa@localhost>";
}
