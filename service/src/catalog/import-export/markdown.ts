import { ApiError, invalidRequest } from "../../core/errors.ts";
import { mustBeStorable } from "../../platform/http/json-body.ts";
import { FrontMatterError, readFrontMatter, writeFrontMatter } from "./front-matter.ts";
import { MAX_ITEM_BYTES, type ReadItem } from "./import-items.ts";
import { WHOLE_PRODUCT } from "./import-problems.ts";

const FENCE = "---";

/** Front matter and content, with the line at which the content starts. */
interface Parts {
  front: string;
  body: string;
  bodyLine: number;
}

/**
 * The format: front matter between two lines `---`, an empty line, the content, a line end. Everything between that
 * empty line and that line end is content, unchanged.
 */
export const toMarkdown = async ({ content, ...front }: { content: string }): Promise<string> =>
  `${FENCE}\n${await writeFrontMatter(front)}${FENCE}\n\n${content}\n`;

/** The front matter starts at the second line. */
const FENCES_ABOVE = 1;

export async function readMarkdown(bytes: Buffer, file?: string): Promise<ReadItem> {
  const place = { line: 1, ...(file !== undefined && { file }) };
  try {
    const { front, body, bodyLine } = partsOf(decode(bytes));
    const { value, lineOf } = await readFrontMatter(front);
    if (Object.hasOwn(value, "content"))
      throw new FrontMatterError(lineOf("content"), "is below the front matter", "content");
    const product = { ...value, content: body };
    mustBeStorable(product, WHOLE_PRODUCT);
    return {
      ...place,
      value: product,
      lineOf: (field) => (/^content(\W|$)/.test(field) ? bodyLine : lineOf(field) + FENCES_ABOVE),
    };
  } catch (error) {
    if (error instanceof FrontMatterError)
      return { ...place, line: error.line + FENCES_ABOVE, error: error.problem };
    if (error instanceof ApiError) return { ...place, error };
    throw error;
  }
}

function decode(bytes: Buffer): string {
  if (bytes.length > MAX_ITEM_BYTES)
    throw invalidRequest(WHOLE_PRODUCT, `is larger than ${MAX_ITEM_BYTES} bytes`);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw invalidRequest(WHOLE_PRODUCT, "is not valid UTF-8");
  }
}

/** Windows line ends in the first line: the whole file is converted. */
function partsOf(text: string): Parts {
  const lines = /^---[ \t]*\r\n/.test(text) ? text.replaceAll("\r\n", "\n") : text;
  const opening = /^---[ \t]*\n/.exec(lines);
  if (!opening) throw invalidRequest(WHOLE_PRODUCT, `must begin with front matter: a line ${FENCE}`);
  const rest = lines.slice(opening[0].length);
  const closing = /^---[ \t]*(\n|$)/m.exec(rest);
  if (!closing)
    throw invalidRequest(WHOLE_PRODUCT, `has front matter without an end: a second line ${FENCE}`);
  const front = rest.slice(0, closing.index);
  const below = rest.slice(closing.index + closing[0].length);
  const hasEmptyLine = below.startsWith("\n");
  return {
    front,
    body: (hasEmptyLine ? below.slice(1) : below).replace(/\n$/, ""),
    bodyLine: front.split("\n").length + 2 + (hasEmptyLine ? 1 : 0),
  };
}
