/**
 * Characters that are invisible to people but not to models: control, format and default-ignorable characters, private
 * use, lone surrogates, line and paragraph separators. Bidirectional marks change the reading order; tag characters and
 * variation selectors can carry text.
 */
const INVISIBLE = String.raw`\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{DI}`;
/** Emoji, Persian and Hindi need joiners. After a Latin, Greek or Cyrillic letter or a digit, a joiner only makes two names look alike. */
const JOINER = String.raw`(?<=[^${INVISIBLE}\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Nd}\s][\ufe0e\ufe0f]?)[\u200c\u200d]`;
/** One selector changes the form of the character before it; several in a row are hidden data. */
const SELECTOR = String.raw`(?<=[^${INVISIBLE}\s])[\ufe00-\ufe0f]|(?<=\p{Ideographic})[\u{e0100}-\u{e01ef}]`;

export const VISIBLE_LINE = new RegExp(`^(?:[^${INVISIBLE}]|${JOINER}|${SELECTOR})*$`, "u");
const INVISIBLE_IN_LINE = new RegExp(
  String.raw`(?![\p{Cc}\p{Zl}\p{Zp}]|${JOINER}|${SELECTOR})[${INVISIBLE}]`,
  "gu",
);
/** Has the flag `g`: use it with `search`, `replace` and `matchAll`. */
export const INVISIBLE_IN_TEXT = new RegExp(String.raw`(?![\n\t]|${JOINER}|${SELECTOR})[${INVISIBLE}]`, "gu");
const LINE_END = /\r\n?|[\v\f\u0085\u2028\u2029]/g;

/** Removes invisible characters from a text of any number of lines. */
export const toVisibleText = (text: string): string =>
  text.replace(LINE_END, "\n").replace(INVISIBLE_IN_TEXT, "");

/** One line without invisible characters, so that no header, paragraph or terminal command starts within it. */
export const toVisibleLine = (text: string): string =>
  text
    .replace(INVISIBLE_IN_LINE, "")
    .replace(/[\p{Cc}\s]+/gu, " ")
    .trim();

export const hasInvisible = (text: string): boolean => text.search(INVISIBLE_IN_TEXT) !== -1;
