import "./workflow-diff.css";
import { diffWorkflows, type FieldChange, isSame } from "../../lib/workflow-diff.ts";
import { PlusIcon } from "../icons.tsx";
import { STEP_ICONS } from "./step-types.tsx";

interface WorkflowDiffViewProps {
  before: string;
  after: string;
}

const KINDS = { added: "good", removed: "bad", changed: "accent" } as const;

/** What differs between two definitions, by step and field. */
export function WorkflowDiffView({ before, after }: WorkflowDiffViewProps) {
  const diff = diffWorkflows(before, after);
  if (!diff)
    return <p className="sm warning">One of the two is no valid JSON: compare them in the source.</p>;
  if (isSame(diff)) return <p className="sm soft">No difference.</p>;
  return (
    <ul className="workflow-diff">
      {diff.workflow.length > 0 && (
        <li>
          <p className="row">
            <b className="b">Workflow</b> <span className="tag accent">changed</span>
          </p>
          <Fields changes={diff.workflow} />
        </li>
      )}
      {diff.steps.map(({ id, type, kind, fields }) => (
        <li key={`${kind} ${id}`}>
          <p className="row">
            {STEP_ICONS[type] ?? <PlusIcon />}
            <b className="b">{id}</b> <span className={`tag ${KINDS[kind]}`}>{kind}</span>
          </p>
          <Fields changes={fields} />
        </li>
      ))}
    </ul>
  );
}

const Fields = ({ changes }: { changes: FieldChange[] }) => (
  <dl>
    {changes.map(({ field, before, after }) => (
      <div key={field}>
        <dt className="mono soft">{field}</dt>
        <dd>
          {before !== null && <del>{before}</del>}
          {after !== null && <ins>{after}</ins>}
        </dd>
      </div>
    ))}
  </dl>
);
