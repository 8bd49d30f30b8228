import { diffWordsWithSpace } from "diff";
import { useMemo } from "react";

/** Two texts with little in common would block the page. */
const DIFF_MS = 400;

/** What changed between two texts, word by word. */
export function WordDiff({ before, after }: { before: string; after: string }) {
  const parts = useMemo(() => diffWordsWithSpace(before, after, { timeout: DIFF_MS }), [before, after]);
  if (!parts)
    return (
      <>
        <p className="sm soft">These texts differ too much to compare them by words.</p>
        <pre className="editor-diff">{after}</pre>
      </>
    );
  return (
    <pre className="editor-diff" dir="auto">
      {parts.map(({ value, added, removed }, at) => {
        // biome-ignore lint/suspicious/noArrayIndexKey: the parts are made anew together
        if (added) return <ins key={at}>{value}</ins>;
        // biome-ignore lint/suspicious/noArrayIndexKey: the parts are made anew together
        if (removed) return <del key={at}>{value}</del>;
        // biome-ignore lint/suspicious/noArrayIndexKey: the parts are made anew together
        return <span key={at}>{value}</span>;
      })}
    </pre>
  );
}
