import { z } from "zod";

/**
 * Characters that people do not see and models read: control, format and default-ignorable characters, private use, lone surrogates,
 * line and paragraph separators. Bidirectional marks change the order of what is read, tag characters and variation selectors carry text.
 */
const INVISIBLE = String.raw`\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{DI}`;
/** Emoji, Persian and Hindi join. Behind a Latin, Greek or Cyrillic letter or a digit a joiner only makes two names look alike. */
const JOINER = String.raw`(?<=[^${INVISIBLE}\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Nd}\s][\ufe0e\ufe0f]?)[\u200c\u200d]`;
/** One selects the form of the character before it; a row of them is hidden data. */
const SELECTOR = String.raw`(?<=[^${INVISIBLE}\s])[\ufe00-\ufe0f]|(?<=\p{Ideographic})[\u{e0100}-\u{e01ef}]`;

const VISIBLE_LINE = new RegExp(`^(?:[^${INVISIBLE}]|${JOINER}|${SELECTOR})*$`, "u");
const INVISIBLE_IN_LINE = new RegExp(
  String.raw`(?![\p{Cc}\p{Zl}\p{Zp}]|${JOINER}|${SELECTOR})[${INVISIBLE}]`,
  "gu",
);
const INVISIBLE_IN_TEXT = new RegExp(String.raw`(?![\n\t]|${JOINER}|${SELECTOR})[${INVISIBLE}]`, "gu");
const LINE_END = /\r\n?|[\v\f\u0085\u2028\u2029]/g;

/** A text of any number of lines without its invisible characters. */
export const toVisibleText = (text: string): string =>
  text.replace(LINE_END, "\n").replace(INVISIBLE_IN_TEXT, "");

/** A text as one line without invisible characters: no header, paragraph or command of a terminal begins in it. */
export const toVisibleLine = (text: string): string =>
  text
    .replace(INVISIBLE_IN_LINE, "")
    .replace(/[\p{Cc}\s]+/gu, " ")
    .trim();

export const hasInvisible = (text: string): boolean => text.search(INVISIBLE_IN_TEXT) !== -1;

/**
 * One line that shows all that it holds: names, titles, tags and labels. Others are refused. A check and no `pattern`, which generated
 * clients would compile: most languages' regular expressions do not know these classes.
 */
export const visibleLine = (max: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(max)
    .refine(
      (text) => VISIBLE_LINE.test(text),
      "must be one line without control, bidirectional or other invisible characters",
    );

/** Text of any number of lines, stored without invisible characters, which come along when text is pasted. */
export const visibleText = (max: number) => z.string().overwrite(toVisibleText).trim().max(max);
