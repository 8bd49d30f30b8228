import { toVisibleLine } from "@stoa/contract";
import { renderEmailHtml } from "./email-html.ts";
import { renderEmailText } from "./email-text.ts";

/** Both forms of one message. */
export interface Email {
  subject: string;
  text: string;
  html: string;
  /** The target of its button. */
  link?: string;
}

export interface EmailInput {
  subject: string;
  /** One plain text per paragraph. */
  paragraphs: string[];
  /** The email's button. */
  action?: { label: string; url: string };
  /** In small print: why the email was sent, and what to do if it is unexpected. */
  footnotes?: string[];
}

/** The template of every email. */
export function renderEmail({ subject, paragraphs, action, footnotes = [] }: EmailInput): Email {
  const words = {
    subject: toVisibleLine(subject),
    paragraphs: paragraphs.map(toVisibleLine),
    action: action && { label: toVisibleLine(action.label), url: action.url },
    footnotes: footnotes.map(toVisibleLine),
  };
  return {
    subject: words.subject,
    text: renderEmailText(words),
    html: renderEmailHtml(words),
    ...(action && { link: action.url }),
  };
}

/** Each text is one line. */
export interface EmailContent {
  subject: string;
  paragraphs: string[];
  action: { label: string; url: string } | undefined;
  footnotes: string[];
}
