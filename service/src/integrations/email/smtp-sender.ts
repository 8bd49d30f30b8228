import { createTransport } from "nodemailer";
import type { NodemailerError } from "nodemailer/lib/errors";
import { parseSmtpUrl } from "../../core/config/smtp-url.ts";
import { isEmailAddress, type Mailbox } from "../../core/mailbox.ts";
import { type EmailSender, EmailUnavailable, type OutgoingEmail } from "./email-sender.ts";

const CONNECT_MS = 10_000;
const SOCKET_IDLE_MS = 30_000;
/** Shorter than an attempt of the job, so that no other worker starts while this one may still succeed. */
const SEND_MS = 60_000;

/** Sends each email over a new connection: a pooled one may be dead when it is needed. */
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
      const deadline = AbortSignal.any([signal, AbortSignal.timeout(SEND_MS)]);
      try {
        await transport.sendMail({ ...messageOf(message, from), signal: deadline });
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

/** Addresses as objects: in text a comma or line break could make two of one. */
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

/** The server refused the recipient or the email. If it refuses us, the operator can fix that, and the emails wait. */
const isPermanent = ({ permanent, command }: NodemailerError) =>
  permanent === true && (command === "RCPT TO" || command === "DATA");

/** The server's text may quote the recipient, so only codes are reported. */
function describeError(error: unknown): string {
  const { code, command, responseCode, response, originalCode } = error as NodemailerError;
  const enhanced = /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})\b/.exec(response ?? "")?.[1];
  return [code ?? "unknown", originalCode, command, responseCode, enhanced].filter(Boolean).join(" ");
}
