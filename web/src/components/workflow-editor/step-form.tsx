import { useEffect, useState } from "react";
import { formatCount } from "../../lib/format.ts";
import {
  type EditedStep,
  type FieldPath,
  freeId,
  isObject,
  type Json,
  needsOf,
  textOf,
} from "../../lib/workflow-document.ts";
import { TrashIcon } from "../icons.tsx";
import { EditedField, TextField, toNumber } from "./edited-field.tsx";
import { useEditor } from "./editor-context.ts";
import { ExpressionField } from "./expression-field.tsx";
import { StepRun } from "./step-run.tsx";
import { STEP_ICONS } from "./step-types.tsx";
import { WorkFields } from "./work-fields.tsx";

/** All fields of a step. What has no field here can be changed in the source. */
export function StepForm({ step }: { step: EditedStep }) {
  const { execute, select, steps, problems } = useEditor();
  const { id } = step;
  const set = (path: FieldPath, value: Json) =>
    execute({ kind: "set-field", id, path, value }, `${id}/${path.join("/")}`);
  const whole = problems.filter(({ stepId, path }) => stepId === id && path.length === 0);
  return (
    <section className="workflow-form" aria-label={`Step ${id}`} key={id}>
      <div className="workflow-form-head">
        {STEP_ICONS[textOf(step["type"])]}
        <h2 className="h3 grow cut">{id}</h2>
        <StepRun step={step} />
        <button
          type="button"
          className="btn s"
          onClick={() => {
            const to = freeId(steps, id);
            execute({ kind: "duplicate-step", id, to });
            select(to);
          }}
        >
          Duplicate
        </button>
        <button
          type="button"
          className="iconb"
          aria-label={`Remove ${id}`}
          onClick={() => {
            execute({ kind: "remove-steps", ids: [id] });
            select(null);
          }}
        >
          <TrashIcon />
        </button>
      </div>
      <div className="workflow-form-body">
        {whole.map(({ key, sentence }) => (
          <p className="ferr" key={key}>
            {sentence}
          </p>
        ))}
        <IdField step={step} />
        <Needs step={step} />
        <WorkFields stepId={id} work={step} path={[]} set={set} />
        <ExpressionField
          stepId={id}
          path={["when"]}
          label="Run only when"
          isOptional
          value={step["when"]}
          onChange={(value) => set(["when"], value)}
        />
        <OnError step={step} />
      </div>
    </section>
  );
}

/** A name that others read: it changes when it is complete. */
function IdField({ step: { id } }: { step: EditedStep }) {
  const { execute, select, steps } = useEditor();
  const [typed, setTyped] = useState(id);
  useEffect(() => setTyped(id), [id]);
  const isTaken = typed !== id && steps.some((step) => step.id === typed);
  const rename = () => {
    const to = typed.trim();
    if (to === id || to === "" || isTaken) return setTyped(id);
    execute({ kind: "rename-step", id, to });
    select(to);
  };
  return (
    <EditedField
      stepId={id}
      path={["id"]}
      label="Name"
      hint={isTaken ? `Another step is called ${typed}.` : "Letters, digits and _. References follow."}
    >
      {(control) => (
        <input
          {...control}
          className="input mono"
          autoComplete="off"
          spellCheck={false}
          value={typed}
          onChange={({ target }) => setTyped(target.value)}
          onBlur={rename}
          onKeyDown={(event) => event.key === "Enter" && rename()}
        />
      )}
    </EditedField>
  );
}

/** Fields of all steps of a large workflow would make the form of each step slow. */
const MOST_LISTED = 12;

/** The lines of the canvas, for those who do not draw. */
function Needs({ step }: { step: EditedStep }) {
  const [isOpen, setOpen] = useState(false);
  const { execute, steps, problems } = useEditor();
  const needs = needsOf(step);
  const others = steps.filter(({ id }) => id !== step.id);
  const problem = problems.find(({ stepId, path }) => stepId === step.id && path[0] === "needs");
  if (others.length === 0 && needs.length === 0) return null;
  const unknown = needs.filter((need) => !steps.some(({ id }) => id === need));
  const isLong = others.length > MOST_LISTED;
  const listed = isLong && !isOpen ? others.filter(({ id }) => needs.includes(id)) : others;
  return (
    <fieldset className="plain field" data-field="needs">
      <legend className="m">Runs after</legend>
      <div className="workflow-needs">
        {[...listed.map(({ id }) => id), ...unknown].map((id) => (
          <label className="check-row" key={id}>
            <input
              type="checkbox"
              className="check"
              checked={needs.includes(id)}
              onChange={({ target }) =>
                execute({ kind: target.checked ? "connect" : "disconnect", from: id, to: step.id })
              }
            />
            <span className="cut">{id}</span>
          </label>
        ))}
      </div>
      {isLong && (
        <button type="button" className="btn quiet s" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? "Show only the chosen steps" : `Choose from ${formatCount(others.length)} steps`}
        </button>
      )}
      {problem && <p className="ferr">{problem.sentence}</p>}
    </fieldset>
  );
}

const CHOICES = ["Stop", "Go on", "Retry 2×"] as const;

function OnError({ step }: { step: EditedStep }) {
  const { execute } = useEditor();
  /** What belongs to one choice is undone together. */
  const set = (field: string, value: Json, group = field) =>
    execute({ kind: "set-field", id: step.id, path: [field], value }, `${step.id}/${group}`);
  const chosen = isObject(step["retry"])
    ? `Retry ${String(step["retry"]["max"])}×`
    : step["onError"] === "continue"
      ? "Go on"
      : "Stop";
  if (["approval", "delay"].includes(textOf(step["type"]))) return null;
  const choose = (choice: (typeof CHOICES)[number]) => {
    set("retry", choice === "Retry 2×" ? { max: 2 } : undefined, "onError");
    set("onError", choice === "Go on" ? "continue" : undefined);
  };
  return (
    <>
      <fieldset className="plain row between sm" data-field="onError">
        <legend className="hidden">If it fails</legend>
        <span className="m" aria-hidden="true">
          If it fails
        </span>
        <span className="seg s">
          {CHOICES.map((choice) => (
            <button
              key={choice}
              type="button"
              aria-pressed={choice === chosen || (choice === "Retry 2×" && chosen.startsWith("Retry"))}
              onClick={() => choose(choice)}
            >
              {choice === "Retry 2×" && chosen.startsWith("Retry") ? chosen : choice}
            </button>
          ))}
        </span>
      </fieldset>
      <TextField
        stepId={step.id}
        path={["timeoutSeconds"]}
        label="Time limit in seconds"
        isNumber
        value={step["timeoutSeconds"]}
        onChange={(text) => set("timeoutSeconds", toNumber(text))}
      />
    </>
  );
}
