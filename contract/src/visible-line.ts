import { z } from "zod";

/**
 * Neither control characters, line breaks and lone surrogates, nor format characters: bidirectional marks change the order of what
 * is read, and tag characters carry text that models read and people do not see. The two joiners stay: emoji and Persian need them.
 */
const VISIBLE_LINE = /^(?:[^\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]|[\u200c\u200d])*$/u;

/** One line that shows all that it holds: names, titles, tags and labels. */
export const visibleLine = (max: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(max)
    .regex(VISIBLE_LINE, "must be one line without control, bidirectional or other invisible characters");
