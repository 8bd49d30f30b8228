/** A message as it is sent: readable as text and as HTML. */
export interface Letter {
  subject: string;
  text: string;
  html: string;
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

const escapeHtml = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

/** One template for every letter: text first, and the same words as HTML. */
export function composeLetter({ subject, paragraphs, action, footnotes = [] }: LetterWish): Letter {
  const text = [...paragraphs, ...(action ? [`${action.label}:\n${action.url}`] : []), ...footnotes].join(
    "\n\n",
  );
  const html = [
    ...paragraphs.map((paragraph) => `<p>${escapeHtml(paragraph)}</p>`),
    ...(action ? [`<p><a href="${escapeHtml(action.url)}">${escapeHtml(action.label)}</a></p>`] : []),
    ...footnotes.map((footnote) => `<p><small>${escapeHtml(footnote)}</small></p>`),
  ].join("\n");
  return { subject, text: `${text}\n`, html };
}
