import { z } from "zod";
import { toVisibleText, VISIBLE_LINE } from "./invisible-characters.ts";

export { hasInvisible, toVisibleLine, toVisibleText } from "./invisible-characters.ts";

/**
 * One visible line, for names, titles, tags and labels. A check instead of a `pattern`: generated clients would compile
 * that, and most languages' regular expressions lack these character classes.
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

/** Text of any number of lines, stored without the invisible characters that pasting adds. */
export const visibleText = (max: number) => z.string().overwrite(toVisibleText).trim().max(max);
