import type { Variable } from "@stoa/sdk";
import { useEffect, useRef } from "react";
import { Field } from "../../components/field.tsx";
import { AlertIcon } from "../../components/icons.tsx";
import { deriveVariables } from "../../lib/prompt-variables.ts";
import { useEditor } from "./editor-context.tsx";

interface VariableListProps {
  open: string | null;
  onOpen: (name: string | null) => void;
}

/** What the form of a run says about each variable. */
export function VariableList({ open, onOpen }: VariableListProps) {
  const { draft, state } = useEditor();
  if (draft.variables.length === 0) return null;
  const inContent = deriveVariables(draft.content, draft.contentFormat);
  return (
    <div className="editor-variables" data-field="variables">
      <h3 className="h3">Variables</h3>
      {state.errors.variables !== undefined && (
        <p className="ferr" role="alert">
          <AlertIcon /> {state.errors.variables}
        </p>
      )}
      {draft.variables.map((variable) => (
        <VariableDetails
          key={variable.name}
          variable={variable}
          contentDefault={inContent.find(({ name }) => name === variable.name)?.default}
          isOpen={open === variable.name}
          onOpen={(isOpen) => onOpen(isOpen ? variable.name : null)}
        />
      ))}
    </div>
  );
}

interface VariableDetailsProps {
  variable: Variable;
  contentDefault: string | undefined;
  isOpen: boolean;
  onOpen: (isOpen: boolean) => void;
}

function VariableDetails({ variable, contentDefault, isOpen, onOpen }: VariableDetailsProps) {
  const { draft, change } = useEditor();
  const place = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    if (isOpen) place.current?.querySelector<HTMLElement>("input")?.focus();
  }, [isOpen]);
  const { name, description = "", required, default: standard, enum: choices, maxLength } = variable;
  const set = (part: { [field in keyof Variable]?: Variable[field] | undefined }) => {
    const entries = Object.entries({ ...variable, ...part }).filter(([, value]) => value !== undefined);
    const changed = Object.fromEntries(entries) as unknown as Variable;
    change({ variables: draft.variables.map((one) => (one.name === name ? changed : one)) });
  };
  return (
    <details
      ref={place}
      open={isOpen}
      onToggle={({ currentTarget }) => currentTarget.open !== isOpen && onOpen(currentTarget.open)}
      data-field={`variable ${name}`}
    >
      <summary>
        <code>{name}</code>
        <span className="sm soft cut" dir="auto">
          {summaryOf(variable)}
        </span>
      </summary>
      {isOpen && (
        <div className="stack form">
          <Field label="Description" hint="Buyers read it beside the field.">
            {(control) => (
              <input
                {...control}
                className="input"
                dir="auto"
                maxLength={500}
                value={description}
                onChange={({ target }) => set({ description: target.value || undefined })}
              />
            )}
          </Field>
          <Field
            label="Default"
            hint={
              contentDefault === undefined
                ? "Runs without a value use it."
                : "Written in the prompt. Change it there."
            }
          >
            {(control) => (
              <input
                {...control}
                className="input"
                dir="auto"
                readOnly={contentDefault !== undefined}
                value={standard ?? ""}
                onChange={({ target }) => set({ default: target.value || undefined })}
              />
            )}
          </Field>
          <Field label="Choices, one a line" hint="Empty: any text">
            {(control) => (
              <textarea
                {...control}
                className="input"
                rows={choices ? Math.min(choices.length + 1, 8) : 2}
                dir="auto"
                value={choices?.join("\n") ?? ""}
                onChange={({ target }) =>
                  set({ enum: target.value === "" ? undefined : target.value.split("\n") })
                }
              />
            )}
          </Field>
          <Field
            label="Most characters"
            hint="Empty: no limit of its own. Up to 120 gets a field of one line."
          >
            {(control) => (
              <input
                {...control}
                className="input"
                type="number"
                min={1}
                max={32_768}
                value={maxLength ?? ""}
                onChange={({ target }) =>
                  set({
                    maxLength:
                      target.value === "" ? undefined : Math.max(1, Math.trunc(Number(target.value))),
                  })
                }
              />
            )}
          </Field>
          <label className="choice">
            <input
              type="checkbox"
              className="check"
              checked={required}
              onChange={({ target }) => set({ required: target.checked })}
            />
            <span>A run needs a value</span>
          </label>
        </div>
      )}
    </details>
  );
}

const summaryOf = ({ description, required, default: standard, enum: choices }: Variable): string =>
  [
    description,
    choices && `one of ${choices.length}`,
    standard !== undefined ? `default “${standard}”` : required ? "required" : "optional",
  ]
    .filter(Boolean)
    .join(", ");
