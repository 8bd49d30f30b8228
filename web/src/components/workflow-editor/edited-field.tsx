import type { ReactNode } from "react";
import type { FieldPath } from "../../lib/workflow-document.ts";
import { problemAt } from "../../lib/workflow-problems.ts";
import { type ControlProps, Field } from "../field.tsx";
import { useEditor } from "./editor-context.ts";

export const fieldName = (path: FieldPath): string => path.join("/");

interface EditedFieldProps {
  /** Within the step; of the workflow with `stepId` null. */
  stepId: string | null;
  path: FieldPath;
  label: ReactNode;
  hint?: ReactNode;
  children: (control: ControlProps) => ReactNode;
}

/** A field of the form with the problem that the service finds there. */
export function EditedField({ stepId, path, label, hint, children }: EditedFieldProps) {
  const { problems } = useEditor();
  const problem = problemAt(problems, stepId, path);
  return (
    <div data-field={fieldName(path)}>
      <Field label={label} hint={hint} error={problem?.sentence}>
        {children}
      </Field>
    </div>
  );
}

interface TextFieldProps extends Omit<EditedFieldProps, "children" | "stepId"> {
  stepId: string;
  value: unknown;
  /** An empty text removes the field. */
  onChange: (text: string) => void;
  rows?: number;
  list?: string;
  isNumber?: boolean;
}

export const TextField = ({ value, onChange, rows, list, isNumber = false, ...field }: TextFieldProps) => (
  <EditedField {...field}>
    {(control) =>
      rows === undefined ? (
        <input
          {...control}
          className={isNumber ? "input num" : "input"}
          inputMode={isNumber ? "numeric" : undefined}
          autoComplete="off"
          dir="auto"
          list={list}
          value={toText(value)}
          onChange={({ target }) => onChange(target.value)}
        />
      ) : (
        <textarea
          {...control}
          className="input area mono"
          rows={rows}
          dir="auto"
          value={toText(value)}
          onChange={({ target }) => onChange(target.value)}
        />
      )
    }
  </EditedField>
);

const toText = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value);

/** What is not a number stays as it was typed: the service says what is wrong with it. */
export const toNumber = (text: string): unknown => {
  if (text.trim() === "") return undefined;
  const number = Number(text);
  return Number.isFinite(number) ? number : text;
};
