import { toVisibleLine } from "@stoa/contract";
import { letterHtml } from "./letter-html.ts";
import { letterText } from "./letter-text.ts";

/** A message as it is sent: readable as text and as HTML. */
export interface Letter {
  subject: string;
  text: string;
  html: string;
  /** Where its button leads. */
  link?: string;
}

export interface LetterWish {
  subject: string;
  /** Plain text, a paragraph each. */
  paragraphs: string[];
  /** One thing to do. */
  action?: { label: string; url: string };
  /** Smaller, below: why this came, and what to do if it should not have. */
  footnotes?: string[];
}

/** One template for every letter: text first, and the same words as HTML. */
export function composeLetter({ subject, paragraphs, action, footnotes = [] }: LetterWish): Letter {
  const words = {
    subject: toVisibleLine(subject),
    paragraphs: paragraphs.map(toVisibleLine),
    action: action && { label: toVisibleLine(action.label), url: action.url },
    footnotes: footnotes.map(toVisibleLine),
  };
  return {
    subject: words.subject,
    text: letterText(words),
    html: letterHtml(words),
    ...(action && { link: action.url }),
  };
}

/** What is in a letter, each text a line. */
export interface Words {
  subject: string;
  paragraphs: string[];
  action: { label: string; url: string } | undefined;
  footnotes: string[];
}
