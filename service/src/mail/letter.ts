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

/** One line: what people give us, such as a name, makes no line, header or paragraph of its own. */
const toLine = (text: string) => text.replace(/[\p{Cc}\s]+/gu, " ").trim();

/** One template for every letter: text first, and the same words as HTML. */
export function composeLetter({ subject, paragraphs, action, footnotes = [] }: LetterWish): Letter {
  const words = {
    subject: toLine(subject),
    paragraphs: paragraphs.map(toLine),
    action: action && { label: toLine(action.label), url: action.url },
    footnotes: footnotes.map(toLine),
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
