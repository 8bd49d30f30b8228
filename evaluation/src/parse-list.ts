const SEPARATORS = /[\s,]*/y;
const SPACES = /\s*/y;

/**
 * The fields of a text such as `red, "green, dark", blue`, read as promptfoo reads the values of `contains-any` and
 * its relatives: `\"`, `\\` and `""` are escapes inside quotation marks, and repeated commas make no empty fields.
 * @throws {SyntaxError} if a quotation mark has no end, or text follows it before the next comma
 */
export function parseList(text: string): string[] {
  const fields: string[] = [];
  let index = endOf(SEPARATORS, text, 0);
  while (index < text.length) {
    const field = text[index] === '"' ? quotedField(text, index) : plainField(text, index);
    fields.push(field.value);
    index = endOf(SEPARATORS, text, field.end);
  }
  return fields;
}

interface Field {
  value: string;
  end: number;
}

function plainField(text: string, start: number): Field {
  const comma = text.indexOf(",", start);
  const end = comma < 0 ? text.length : comma;
  return { value: text.slice(start, end).trim(), end };
}

function quotedField(text: string, start: number): Field {
  let value = "";
  for (let index = start + 1; index < text.length; index++) {
    const next = text[index + 1];
    const isEscape = text[index] === "\\" && (next === '"' || next === "\\");
    if (isEscape || (text[index] === '"' && next === '"')) value += text[++index];
    else if (text[index] !== '"') value += text[index];
    else return { value, end: endOfQuoted(text, index + 1) };
  }
  throw new SyntaxError("has a quotation mark without an end");
}

function endOfQuoted(text: string, start: number): number {
  const end = endOf(SPACES, text, start);
  if (end < text.length && text[end] !== ",") throw new SyntaxError("needs a comma after a quoted field");
  return end;
}

function endOf(pattern: RegExp, text: string, start: number): number {
  pattern.lastIndex = start;
  pattern.test(text);
  return pattern.lastIndex;
}
