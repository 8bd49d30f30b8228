import { Readable } from "node:stream";
import { FileResponse } from "../../platform/http/route.ts";
import type { DateRange } from "./date-range.ts";

export type Cell = string | number | null;

/**
 * Matches where a spreadsheet starts a formula (https://owasp.org/www-community/attacks/CSV_Injection). Cells may also start after a
 * semicolon or tab, depending on the locale; operators may follow blanks or be full-width.
 */
const FORMULA = /(?<=^|[;\t\r\n])(?=\s*[=+\-@＝＋－＠])|^(?=[\t\r\n])/g;

/** An apostrophe turns a formula into text. Numbers come from our own sums and may be negative. */
function formatCell(cell: Cell): string {
  if (cell === null || typeof cell === "number") return String(cell ?? "");
  const text = cell.replace(FORMULA, "'");
  return /[",;\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** CSV as in RFC 4180. */
export async function* csvLines(
  names: string[],
  rows: AsyncIterable<Cell[]> | Iterable<Cell[]>,
): AsyncGenerator<string> {
  yield `${names.join(",")}\r\n`;
  for await (const row of rows) yield `${row.map(formatCell).join(",")}\r\n`;
}

export const csvFile = (
  what: string,
  { startDate, endDate }: Pick<DateRange, "startDate" | "endDate">,
  lines: AsyncIterable<string>,
): FileResponse =>
  new FileResponse({
    name: `${what}-${startDate}-to-${endDate}.csv`,
    type: "text/csv; charset=utf-8",
    bytes: Readable.from(lines, { objectMode: false }),
  });
