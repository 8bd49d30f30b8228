import { createTransport } from "nodemailer";
import type { NodemailerError } from "nodemailer/lib/errors";
import { parseSmtpUrl } from "../../core/config/smtp-url.ts";
import { isEmailAddress, type Mailbox } from "../../core/mailbox.ts";
import { type EmailSender, EmailUnavailable, type OutgoingEmail } from "./email-sender.ts";

const CONNECT_MS = 10_000;
const SOCKET_IDLE_MS = 30_000;
/** All of one email: shorter than an attempt of its job, so that no other worker begins while this one still may end well. */
const SEND_MS = 60_000;

/** Hands emails to a mail server. A connection each: one that was kept may be dead when it is needed. */
export function createSmtpSender(url: string, from: Mailbox): EmailSender {
  const { auth, ...server } = parseSmtpUrl(url);
  const transport = createTransport({
    ...server,
    ...(auth && { auth }),
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    dnsTimeout: CONNECT_MS,
    socketTimeout: SOCKET_IDLE_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return {
    async send(message, signal) {
      if (!isEmailAddress(message.recipient)) return { state: "refused", why: "no address" };
      const patience = AbortSignal.any([signal, AbortSignal.timeout(SEND_MS)]);
      try {
        await transport.sendMail({ ...messageOf(message, from), signal: patience });
        return { state: "taken" };
      } catch (error) {
        if (isPermanent(error as NodemailerError)) return { state: "refused", why: describeError(error) };
        throw new EmailUnavailable(describeError(error));
      }
    },
    async check() {
      try {
        await transport.verify();
        return `${server.host}:${server.port} takes emails`;
      } catch (error) {
        throw new EmailUnavailable(`${server.host}:${server.port} takes no emails: ${describeError(error)}`);
      }
    },
  };
}

/** Addresses as objects, never as text in which a comma or a line break could make two of one. */
const messageOf = ({ id, recipient, subject, text, html }: OutgoingEmail, from: Mailbox) => ({
  from,
  to: { name: "", address: recipient },
  envelope: { from: from.address, to: [recipient] },
  messageId: `<${id}@${from.address.split("@")[1]}>`,
  subject,
  text,
  html,
  headers: { "Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All" },
});

/** The server refused this recipient or this email. When it refuses us, somebody may mend that: then emails wait. */
const isPermanent = ({ permanent, command }: NodemailerError) =>
  permanent === true && (command === "RCPT TO" || command === "DATA");

/** What a server says may quote the recipient: its codes are enough to look it up by. */
function describeError(error: unknown): string {
  const { code, command, responseCode, response, originalCode } = error as NodemailerError;
  const enhanced = /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})\b/.exec(response ?? "")?.[1];
  return [code ?? "unknown", originalCode, command, responseCode, enhanced].filter(Boolean).join(" ");
}
