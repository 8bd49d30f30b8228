import { useMemo } from "react";
import { InfoIcon, WarningIcon } from "../../components/icons.tsx";
import { useEditor } from "./editor-context.tsx";
import { type Finding, lineOf, lintPrompt } from "./lint.ts";

interface LintListProps {
  onShow: (place: { from: number; to: number }) => void;
  onDescribe: (variable: string) => void;
}

/** What to look at before buyers do, each with the way to fix it. */
export function LintList({ onShow, onDescribe }: LintListProps) {
  const { draft, change } = useEditor();
  const findings = useMemo(() => lintPrompt(draft), [draft]);
  if (findings.length === 0) return null;
  return (
    <ul className="editor-lint" aria-label="Advice about the prompt">
      {findings.map((finding) => (
        <li key={`${finding.kind} ${finding.place?.from} ${finding.variable}`}>
          {finding.severity === "warning" ? (
            <WarningIcon className="warning" />
          ) : (
            <InfoIcon className="soft" />
          )}
          <span>
            <b className={finding.severity === "warning" ? "warning" : ""}>
              {placeOf(finding, draft.content)}
              {finding.fact}
            </b>{" "}
            <span className="soft">{finding.advice}</span>
          </span>
          <span className="row wrap">
            {finding.place && (
              <button type="button" className="link" onClick={() => finding.place && onShow(finding.place)}>
                Show
              </button>
            )}
            {finding.fix && (
              <button type="button" className="link" onClick={() => change(finding.fix?.apply(draft) ?? {})}>
                {finding.fix.label}
              </button>
            )}
            {finding.variable && !finding.fix && (
              <button type="button" className="link" onClick={() => onDescribe(finding.variable ?? "")}>
                Describe it
              </button>
            )}
          </span>
        </li>
      ))}
    </ul>
  );
}

const placeOf = ({ place }: Finding, content: string): string =>
  place ? `Line ${lineOf(content, place.from)}: ` : "";
