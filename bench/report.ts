import { readFile, writeFile } from "node:fs/promises";

export interface Report {
  columns: string[];
  rows: string[][];
  /** Sentences under the table. */
  notes: string[];
}

const README = new URL("./README.md", import.meta.url);

export const comparedWithAim = (figure: string, aim: string, met: boolean) => [
  figure,
  aim,
  met ? "yes" : "**no**",
];

export const ms = (value: number) => (value < 10 ? value.toFixed(2) : value.toFixed(0));
export const megabytes = (bytes: number) => (bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0);

export function toMarkdown({ columns, rows, notes }: Report): string {
  const widths = columns.map((column, at) => Math.max(column.length, ...rows.map((row) => row[at]!.length)));
  const line = (cells: string[]) => `| ${cells.map((cell, at) => cell.padEnd(widths[at]!)).join(" | ")} |`;
  const table = [
    line(columns),
    `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`,
    ...rows.map(line),
  ];
  return [table.join("\n"), ...notes].join("\n\n");
}

/** Replaces a scenario's results between its markers. */
export async function writeReport(scenario: string, text: string, file = README): Promise<void> {
  const readme = await readFile(file, "utf8");
  const [begin, end] = [`<!-- ${scenario}: begin -->`, `<!-- ${scenario}: end -->`];
  const [before, rest] = readme.split(begin);
  const after = rest?.split(end)[1];
  if (after === undefined)
    throw new Error(`${file.pathname} has no place for ${scenario}: ${begin} … ${end}`);
  await writeFile(file, `${before}${begin}\n${text}\n${end}${after}`);
}
