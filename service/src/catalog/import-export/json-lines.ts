import { type ApiError, fieldError, fieldProblemsOf, invalidRequest } from "../../core/errors.ts";
import { parseJsonBody } from "../../platform/http/json-body.ts";
import { MAX_ITEM_BYTES, MAX_ITEM_MEMBERS, type ReadItem } from "./import-items.ts";
import { WHOLE_PRODUCT } from "./import-problems.ts";

const BOM = Buffer.from("\ufeff");
const NEWLINE = 0x0a;
const isBlankByte = (byte: number) => byte === 0x20 || byte === 0x09 || byte === 0x0d;
/** Blank lines count: a file of blank lines must not occupy the process. */
const MAX_LINES = 100_000;

/** One product per line; blank lines are skipped. */
export function* readJsonLines(bytes: Buffer): Generator<ReadItem> {
  let start = bytes.subarray(0, BOM.length).equals(BOM) ? BOM.length : 0;
  for (let line = 1; start < bytes.length; line++) {
    if (line > MAX_LINES)
      throw invalidRequest("body", `has more than ${MAX_LINES.toLocaleString("en")} lines`);
    const newline = bytes.indexOf(NEWLINE, start);
    const end = newline < 0 ? bytes.length : newline;
    const text = bytes.subarray(start, end);
    start = end + 1;
    if (!isBlank(text)) yield readLine(text, line);
  }
}

/** A loop, since a file may be 20 MiB of blanks: Buffer.some() needs half a second for it. */
function isBlank(text: Buffer): boolean {
  for (let at = 0; at < text.length; at++) if (!isBlankByte(text[at] ?? 0)) return false;
  return true;
}

function readLine(text: Buffer, line: number): ReadItem {
  if (text.length > MAX_ITEM_BYTES)
    return { line, error: invalidRequest(WHOLE_PRODUCT, `is larger than ${MAX_ITEM_BYTES} bytes`) };
  try {
    return { line, value: parseJsonBody(text, "application/json", MAX_ITEM_MEMBERS), lineOf: () => line };
  } catch (error) {
    return { line, error: toProductError(error as ApiError) };
  }
}

/** Reports a problem of the body as a problem of the product. */
const toProductError = (error: ApiError): ApiError =>
  fieldError(
    "INVALID_REQUEST",
    fieldProblemsOf(error, WHOLE_PRODUCT).map(({ field, reason }) => ({
      field: field === "body" ? WHOLE_PRODUCT : field,
      reason,
    })),
  );

export const toJsonLine = (product: object): string => `${JSON.stringify(product)}\n`;
