import { type ReactNode, useState } from "react";

const FOLDED_LINES = 40;
/** A key with its colon, a text, a number, or a word. */
const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|\b(true|false|null)\b/g;

/** Indented if it is JSON, else as it is. */
export function toReadable(text: string): { text: string; isJson: boolean } {
  try {
    return { text: JSON.stringify(JSON.parse(text), null, 2), isJson: true };
  } catch {
    return { text, isJson: false };
  }
}

/** JSON with colored keys, texts and numbers; any other text as it is. More than 40 lines are folded. */
export function JsonText({ text }: { text: string }) {
  const [isOpen, open] = useState(false);
  const readable = toReadable(text);
  const lines = readable.text.split("\n");
  const isFolded = lines.length > FOLDED_LINES && !isOpen;
  const shown = isFolded ? lines.slice(0, FOLDED_LINES).join("\n") : readable.text;
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it may scroll */}
      <pre className="codeblock wrap" tabIndex={0} dir="auto">
        {readable.isJson ? colored(shown) : shown}
      </pre>
      {isFolded && (
        <button type="button" className="btn s" onClick={() => open(true)}>
          Show all {lines.length} lines
        </button>
      )}
    </>
  );
}

function colored(json: string): ReactNode[] {
  const parts: ReactNode[] = [];
  let end = 0;
  for (const match of json.matchAll(TOKENS)) {
    const [all, text, colon, number] = match;
    parts.push(json.slice(end, match.index));
    const className =
      colon !== undefined ? "k" : text !== undefined ? "st" : number !== undefined ? "nu" : "k";
    parts.push(
      <span className={className} key={match.index}>
        {all}
      </span>,
    );
    end = match.index + all.length;
  }
  parts.push(json.slice(end));
  return parts;
}
