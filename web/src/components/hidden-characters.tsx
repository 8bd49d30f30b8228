import "./hidden-characters.css";
import { INVISIBLE_IN_TEXT } from "@stoa/contract/invisible-characters";
import { Fragment } from "react";

const codePointOf = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;

interface TextPiece {
  /** Where it begins. */
  at: number;
  text: string;
  isHidden: boolean;
}

/** The text between hidden characters, and each of these. */
function piecesOf(text: string): TextPiece[] {
  const pieces: TextPiece[] = [];
  let end = 0;
  for (const { 0: character, index } of text.matchAll(INVISIBLE_IN_TEXT)) {
    if (index > end) pieces.push({ at: end, text: text.slice(end, index), isHidden: false });
    pieces.push({ at: index, text: character, isHidden: true });
    end = index + character.length;
  }
  if (end < text.length) pieces.push({ at: end, text: text.slice(end), isHidden: false });
  return pieces;
}

/** A text whose characters that people do not see stand there as chips with their code points. */
export const TextWithHidden = ({ text }: { text: string }) =>
  piecesOf(text).map(({ at, text, isHidden }) =>
    isHidden ? (
      <span key={at} className="hidden-character" title="A character that nobody sees">
        {codePointOf(text)}
      </span>
    ) : (
      <Fragment key={at}>{text}</Fragment>
    ),
  );

/** The hidden characters of a text by code point, with the lines that have them. */
export function listHidden(text: string): { code: string; count: number; lines: number[] }[] {
  const found = new Map<string, { count: number; lines: Set<number> }>();
  for (const [at, line] of text.split("\n").entries())
    for (const [character] of line.matchAll(INVISIBLE_IN_TEXT)) {
      const entry = found.get(character) ?? { count: 0, lines: new Set<number>() };
      found.set(character, { count: entry.count + 1, lines: entry.lines.add(at + 1) });
    }
  return [...found].map(([character, { count, lines }]) => ({
    code: codePointOf(character),
    count,
    lines: [...lines],
  }));
}
