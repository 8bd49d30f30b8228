const MAX_CHARACTERS = 500;

/** A seller's description, no longer than a model should have to read for each of a hundred tools. */
export const shortened = (text: string): string =>
  text.length <= MAX_CHARACTERS ? text : `${text.slice(0, MAX_CHARACTERS).toWellFormed()}…`;
