import { z } from "zod";

/**
 * Neither control characters, line breaks and lone surrogates, nor format characters: bidirectional marks change the order of what
 * is read, and tag characters carry text that models read and people do not see. The two joiners stay where
 * a script joins: emoji, Persian and Hindi need them. Behind a Latin, Greek or Cyrillic letter or a digit they only make two names look alike.
 */
const VISIBLE_LINE =
  /^(?:[^\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]|(?<=[^\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Nd}\s])[\u200c\u200d])*$/u;

/** One line that shows all that it holds: names, titles, tags and labels. */
export const visibleLine = (max: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(max)
    .regex(VISIBLE_LINE, "must be one line without control, bidirectional or other invisible characters");
