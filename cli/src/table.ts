import measure from "fast-string-truncated-width";

const GAP = "  ";
const MIN_COLUMN = 8;

/** Columns without lines between them. The widest ones are cut until the table fits. */
export function toTable(titles: readonly string[], rows: readonly string[][], width = 120): string {
  const lines = [titles, ...rows];
  const widths = titles.map((_, at) => Math.max(...lines.map((line) => measure(line[at] ?? "").width)));
  const room = width - GAP.length * (widths.length - 1);
  while (widths.reduce((sum, each) => sum + each, 0) > room) {
    const widest = Math.max(...widths);
    if (widest <= MIN_COLUMN) break;
    widths[widths.indexOf(widest)] = widest - 1;
  }
  return lines
    .map((line) =>
      line
        .map((text, at) => fit(text, widths[at] ?? 0))
        .join(GAP)
        .trimEnd(),
    )
    .join("\n");
}

function fit(text: string, width: number): string {
  const shown = cut(text, width);
  return shown.text + " ".repeat(Math.max(0, width - shown.width));
}

/** At most as many cells of the terminal: letters of East Asia take two, combining marks none. */
export function cut(text: string, limit: number): { text: string; width: number } {
  const { index, truncated, width } = measure(text, { limit, ellipsis: "…", ellipsisWidth: 1 });
  return truncated ? { text: `${text.slice(0, index)}…`, width: width + 1 } : { text, width };
}
