import "./output-text.css";
import { Markdown } from "../markdown.tsx";

/** Formatting more would block the page for seconds. */
const MOST_FORMATTED = 150_000;

interface OutputTextProps {
  text: string;
  isSource: boolean;
  /** Characters above which the source is shown. */
  most?: number;
}

/** What a model wrote: its Markdown, without anything that could run or load, or its source. */
export function OutputText({ text, isSource, most = MOST_FORMATTED }: OutputTextProps) {
  if (!isSource && text.length <= most) return <Markdown text={text} />;
  const isLong = text.length > MOST_FORMATTED;
  return (
    <>
      {!isSource && isLong && <p className="sm soft">This output is long, so it is not formatted.</p>}
      {isLong ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard
        <pre className="source-text is-long" tabIndex={0}>
          {text}
        </pre>
      ) : (
        <pre className="source-text">{text}</pre>
      )}
    </>
  );
}

interface ViewSwitchProps {
  isSource: boolean;
  onChange: (isSource: boolean) => void;
}

export const ViewSwitch = ({ isSource, onChange }: ViewSwitchProps) => (
  <fieldset className="seg s" aria-label="View of the output">
    <button type="button" aria-pressed={!isSource} onClick={() => onChange(false)}>
      Formatted
    </button>
    <button type="button" aria-pressed={isSource} onClick={() => onChange(true)}>
      Source
    </button>
  </fieldset>
);
