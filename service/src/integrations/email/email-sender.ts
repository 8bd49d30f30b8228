/** The port for mail: what the service asks of whoever carries its emails. */

declare module "../../core/context.ts" {
  interface Integrations {
    emailSender: EmailSender;
  }
}

export interface OutgoingEmail {
  /** Our row's id, and so the Message-ID: an email that is carried twice can be known for one. */
  id: string;
  recipient: string;
  subject: string;
  text: string;
  html: string;
  /** The address behind its button. */
  link?: string | undefined;
}

export type SendResult =
  | { state: "taken" }
  /** For good: this recipient, or this email, will not be taken later either. */
  | { state: "refused"; why: string };

export interface EmailSender {
  /** Throws MailUnavailable when the same email may be taken later. */
  send(message: OutgoingEmail, signal: AbortSignal): Promise<SendResult>;
  /** Says who would take emails now; throws MailUnavailable when nobody would. */
  check(): Promise<string>;
}

/** No email can be handed over now. Its message names no recipient. */
export class EmailUnavailable extends Error {
  constructor(message: string) {
    super(message);
    this.name = "MailUnavailable";
  }
}
