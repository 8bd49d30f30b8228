import { useMemo, useState } from "react";
import { TextWithHidden } from "../../components/hidden-characters.tsx";
import { formatCount } from "../../lib/format.ts";
import { type DiffLine, type DiffRow, diffTexts } from "../../lib/text-diff.ts";

interface TextDiffProps {
  name: string;
  /** null: there is nothing to compare with, and the whole text stands there. */
  before: string | null;
  after: string;
  form: "words" | "lines";
}

export function TextDiff({ name, before, after, form }: TextDiffProps) {
  const [isWhole, setWhole] = useState(false);
  const rows = useMemo(() => diffTexts(before ?? after, after, form), [before, after, form]);
  if (before === after) return <p className="sm soft">{name} unchanged</p>;
  const shown: DiffRow[] = before === null || isWhole ? wholeOf(rows, after) : rows;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls needs the focus to be scrolled by keys
    <section className="text-diff" aria-label={name} tabIndex={0}>
      {shown.map((row, at) =>
        row.kind === "gap" ? (
          <button key={`gap ${row.line}`} type="button" onClick={() => setWhole(true)}>
            {formatCount(row.count)} unchanged {row.count === 1 ? "line" : "lines"}
          </button>
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: a line has no other name
          <Line key={at} line={row} />
        ),
      )}
    </section>
  );
}

/** The rows with the lines that a gap leaves out. */
function wholeOf(rows: DiffRow[], after: string): DiffRow[] {
  const lines = after.split("\n");
  return rows.flatMap((row): DiffRow[] =>
    row.kind === "gap"
      ? lines.slice(row.line - 1, row.line - 1 + row.count).map((text, at) => ({
          kind: "same",
          line: row.line + at,
          parts: [{ text, isChanged: false }],
        }))
      : [row],
  );
}

const SIGNS = { same: "", added: "+", removed: "−" };
const SIGN_NAMES = { same: "", added: "Added: ", removed: "Removed: " };

const Line = ({ line: { kind, line, parts } }: { line: DiffLine }) => {
  const Changed = kind === "removed" ? "del" : "ins";
  return (
    <div className={kind}>
      <span aria-hidden="true">{line}</span>
      <span>
        <span aria-hidden="true">{SIGNS[kind]}</span>
        <span className="hidden">{SIGN_NAMES[kind]}</span>
      </span>
      <span dir="auto">
        {parts.map(({ text, isChanged }, at) => {
          const Part = isChanged ? Changed : "span";
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: a part has no other name
            <Part key={at}>
              <TextWithHidden text={text} />
            </Part>
          );
        })}
      </span>
    </div>
  );
};
