import fc from "fast-check";
import { anyCharacter } from "./any-character.ts";

/** Parts of texts that an incorrect reader or writer changes: line ends, fences, signs of YAML, right-to-left, emoji. */
const parts =
  "\n|\r\n|\r|---|- |: |#|'|\"|>| |\t|{{a}}|…|é|&x|*x|!!str|\\|%|@|`|x|\u2028|\u0085|\ufeff|\u202e|\x07|עברית|👩‍👩‍👧"
    .split("|")
    .concat("|");

/** Texts that YAML reads as something else. */
const yamlKeywords = "null ~ true no 1.0 0x1f 2026-01-01 << = {} [] ---".split(" ");

/** Any text that the database can store, often one that an incorrect reader or writer changes. */
export const storableText = fc
  .oneof(
    fc.string({ unit: "grapheme", maxLength: 100 }),
    fc.string({ unit: anyCharacter, maxLength: 60 }),
    fc.array(fc.constantFrom(...parts), { maxLength: 20 }).map((some) => some.join("")),
    fc.constantFrom(...yamlKeywords, "\n\n"),
  )
  .map((text) => text.replaceAll("\0", "").toWellFormed());
