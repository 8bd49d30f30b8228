import { formatCount } from "../../lib/format.ts";
import type { WorkflowProblem } from "../../lib/workflow-problems.ts";
import { AlertIcon, DoneIcon } from "../icons.tsx";
import { fieldName } from "./edited-field.tsx";
import { INPUT, RESULT, useEditor, type WorkflowEditor } from "./editor-context.ts";
import { fixOf } from "./problem-fix.ts";

const SHOWN = 3;

/** Shows the problem on the canvas, in the form and in the source. */
export function showProblem({ select }: WorkflowEditor, { stepId, path }: WorkflowProblem): void {
  const root = path[0];
  const selection = stepId ?? (root === "input" ? INPUT : root === "result" ? RESULT : null);
  select(selection, { field: fieldName(path.slice(0, fieldDepth(path))) });
}

/** A field holds all that is below it: a message has one for its text. */
const fieldDepth = (path: WorkflowProblem["path"]): number => (path[0] === "needs" ? 1 : path.length);

export const placeLabel = ({ stepId, path }: WorkflowProblem): string =>
  stepId ?? (typeof path[0] === "string" ? path[0] : "workflow");

export function ProblemBar({ note, isChecked }: { note: string; isChecked: boolean }) {
  const editor = useEditor();
  const { problems } = editor;
  return (
    <section className="workflow-problems" aria-label="Problems">
      {problems.length === 0 ? (
        <span className="row sm good">
          {isChecked && (
            <>
              <DoneIcon /> <b className="b">No problems</b>
            </>
          )}
        </span>
      ) : (
        <b className="b nowrap bad" role="status">
          {formatCount(problems.length)} {problems.length === 1 ? "problem" : "problems"}
        </b>
      )}
      <ul>
        {problems.slice(0, SHOWN).map((problem) => (
          <li key={problem.key}>
            <AlertIcon className="bad" />
            <button type="button" className="cut" onClick={() => showProblem(editor, problem)}>
              <b className="b">{placeLabel(problem)}</b>: {problem.sentence}
            </button>
          </li>
        ))}
      </ul>
      {note !== "" && <span className="sm soft desk">{note}</span>}
    </section>
  );
}

/** All of them, beside the source, with what would mend them. */
export function ProblemList() {
  const editor = useEditor();
  const { problems, execute } = editor;
  return (
    <section className="workflow-form" aria-label="Problems of the source">
      <div className="workflow-form-head">
        <h2 className="h3">Problems</h2>
        <span className="faint num">{formatCount(problems.length)}</span>
      </div>
      {problems.length === 0 && <p className="sm soft workflow-form-body">None.</p>}
      <ul className="workflow-problem-list">
        {problems.map((problem) => {
          const fix = fixOf(problem);
          return (
            <li key={problem.key}>
              <AlertIcon className="bad" />
              <span>
                <button type="button" onClick={() => showProblem(editor, problem)}>
                  <b className="b">
                    Line {problem.line}, {placeLabel(problem)}:
                  </b>{" "}
                  {problem.sentence}.
                </button>{" "}
                {fix && (
                  <button type="button" className="link" onClick={() => execute(fix.command)}>
                    {fix.label}
                  </button>
                )}
              </span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
