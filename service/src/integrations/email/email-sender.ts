/** The port for email senders. */

declare module "../../core/context.ts" {
  interface Integrations {
    emailSender: EmailSender;
  }
}

export interface OutgoingEmail {
  /** The id of the row, used in the Message-ID, so that receivers can detect a repeated email. */
  id: string;
  recipient: string;
  subject: string;
  text: string;
  html: string;
  /** The link of the email's button. */
  link?: string | undefined;
}

export type SendResult =
  | { state: "taken" }
  /** Permanent: a retry would be refused, too. */
  | { state: "refused"; why: string };

export interface EmailSender {
  /** Throws EmailUnavailable when a retry may succeed. */
  send(message: OutgoingEmail, signal: AbortSignal): Promise<SendResult>;
  /** Describes the working sender; throws EmailUnavailable when none works. */
  check(): Promise<string>;
}

/** Temporary failure. The message names no recipient. */
export class EmailUnavailable extends Error {
  constructor(message: string) {
    super(message);
    this.name = "EmailUnavailable";
  }
}
