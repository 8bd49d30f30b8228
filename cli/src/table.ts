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

/** As wide as the terminal shows it: letters of East Asia take two cells, marks none. */
function fit(text: string, width: number): string {
  const { index, truncated, width: shown } = measure(text, { limit: width, ellipsis: "…", ellipsisWidth: 1 });
  const cut = truncated ? `${text.slice(0, index)}…` : text;
  return cut + " ".repeat(Math.max(0, width - shown - (truncated ? 1 : 0)));
}
