import { toVisibleLine } from "@stoa/contract";
import { renderEmailHtml } from "./email-html.ts";
import { renderEmailText } from "./email-text.ts";

/** A message as it is sent: readable as text and as HTML. */
export interface Email {
  subject: string;
  text: string;
  html: string;
  /** Where its button leads. */
  link?: string;
}

export interface EmailInput {
  subject: string;
  /** Plain text, a paragraph each. */
  paragraphs: string[];
  /** One thing to do. */
  action?: { label: string; url: string };
  /** Smaller, below: why this came, and what to do if it should not have. */
  footnotes?: string[];
}

/** One template for every email: text first, and the same words as HTML. */
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

/** What is in an email, each text a line. */
export interface EmailContent {
  subject: string;
  paragraphs: string[];
  action: { label: string; url: string } | undefined;
  footnotes: string[];
}
