import { useState } from "react";
import { layoutGraph } from "../../lib/graph-layout.ts";
import { needsOf, textOf } from "../../lib/workflow-document.ts";
import { AlertIcon, PlusIcon } from "../icons.tsx";
import { AddStepDialog } from "./add-step-dialog.tsx";
import { INPUT, RESULT, useEditor } from "./editor-context.ts";
import { StepForm } from "./step-form.tsx";
import { StepResult } from "./step-run.tsx";
import { detailOf, STEP_ICONS } from "./step-types.tsx";
import { InputForm, ResultForm } from "./workflow-fields.tsx";

/** On narrow screens: the steps in the order of a run, each with its form below it. */
export function StepList() {
  const { steps, problems, selection, select, addStep } = useEditor();
  const [isAdding, add] = useState(false);
  const { nodes } = layoutGraph(
    steps.map((step) => ({ id: step.id, needs: needsOf(step) })),
    0,
  );
  const rankOf = (id: string) => nodes.get(id)?.rank ?? 0;
  const toggle = (id: string) => select(selection === id ? null : id);
  return (
    <section className="workflow-list" aria-label="Steps">
      <ListRow isOpen={selection === INPUT} title="Input" detail="" onToggle={() => toggle(INPUT)} />
      {selection === INPUT && <InputForm />}
      {steps
        .toSorted((a, b) => rankOf(a.id) - rankOf(b.id))
        .map((step) => {
          const problem = problems.find(({ stepId }) => stepId === step.id);
          return (
            <div key={step.id}>
              <ListRow
                isOpen={selection === step.id}
                icon={STEP_ICONS[textOf(step["type"])]}
                title={step.id}
                detail={detailOf(step)}
                {...(problem && { problem: problem.sentence })}
                onToggle={() => toggle(step.id)}
              />
              {selection === step.id && (
                <>
                  <StepForm step={step} />
                  <StepResult step={step} />
                </>
              )}
            </div>
          );
        })}
      <ListRow isOpen={selection === RESULT} title="Result" detail="" onToggle={() => toggle(RESULT)} />
      {selection === RESULT && <ResultForm />}
      <button type="button" className="btn" onClick={() => add(true)}>
        <PlusIcon /> Add a step
      </button>
      {isAdding && <AddStepDialog onAdd={(type) => addStep(type)} onClose={() => add(false)} />}
    </section>
  );
}

interface ListRowProps {
  isOpen: boolean;
  icon?: React.ReactNode;
  title: string;
  detail: string;
  problem?: string;
  onToggle: () => void;
}

const ListRow = ({ isOpen, icon, title, detail, problem, onToggle }: ListRowProps) => (
  <>
    <button
      type="button"
      className={`workflow-row${problem ? " is-bad" : ""}`}
      aria-expanded={isOpen}
      onClick={onToggle}
    >
      {icon}
      <b className="b cut">{title}</b>
      <span className="soft sm cut">{detail}</span>
    </button>
    {problem && (
      <p className="ferr">
        <AlertIcon /> {problem}
      </p>
    )}
  </>
);
