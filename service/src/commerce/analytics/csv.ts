import { Readable } from "node:stream";
import { FileResponse } from "../../platform/http/route.ts";
import type { DateRange } from "./date-range.ts";

export type Cell = string | number | null;

/**
 * Where a spreadsheet would begin to reckon, quoted or not (https://owasp.org/www-community/attacks/CSV_Injection): at the beginning,
 * also behind blanks and in full width, and behind what a spreadsheet of another country takes for the end of a cell.
 */
const FORMULA = /(?<=^|[;\t\r\n])(?=\s*[=+\-@＝＋－＠])|^(?=[\t\r\n])/g;

/** What would be a formula gets an apostrophe in front, as a person would type it. Numbers are ours, and may begin with a minus. */
function formatCell(cell: Cell): string {
  if (cell === null || typeof cell === "number") return String(cell ?? "");
  const text = cell.replace(FORMULA, "'");
  return /[",;\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Lines as RFC 4180 has them, those that `rows` gives after one of names. */
export async function* csvLines(
  names: string[],
  rows: AsyncIterable<Cell[]> | Iterable<Cell[]>,
): AsyncGenerator<string> {
  yield `${names.join(",")}\r\n`;
  for await (const row of rows) yield `${row.map(formatCell).join(",")}\r\n`;
}

/** Under a name that says what it is, and of which days. */
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
