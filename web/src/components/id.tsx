import { useCopy } from "./copy-button.tsx";

const SHOWN_HEAD = 9;
const SHOWN_TAIL = 4;

/** An id, shortened in its middle. A click copies all of it. */
export function Id({ id }: { id: string }) {
  const { isCopied, copy } = useCopy(id);
  const isLong = id.length > SHOWN_HEAD + SHOWN_TAIL + 1;
  const short = isLong ? `${id.slice(0, SHOWN_HEAD)}…${id.slice(-SHOWN_TAIL)}` : id;
  return (
    <button type="button" className="id mono" title={id} onClick={copy}>
      <span className="hidden">Copy </span>
      <span aria-live="polite">{isCopied ? "Copied" : short}</span>
    </button>
  );
}
