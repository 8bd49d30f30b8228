import { Lexer } from "yaml";

export const MAX_TOKENS = 200_000;
export const MAX_DEPTH = 100;

/** The lexer is fast and stops early; the parser needs seconds for a megabyte of brackets. */
export function isTooLarge(text: string): boolean {
  let [tokens, brackets, indicators] = [0, 0, 0];
  for (const token of new Lexer().lex(text)) {
    tokens++;
    if (token === "[" || token === "{") brackets++;
    if (token === "]" || token === "}") brackets--;
    // As in "- - - x", which nests on one line.
    indicators = token === "-" || token === "?" ? indicators + 1 : token === "\n" ? 0 : indicators;
    if (tokens > MAX_TOKENS || brackets > MAX_DEPTH || indicators > MAX_DEPTH) return true;
  }
  return false;
}
