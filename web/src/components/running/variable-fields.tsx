import "./run-form.css";
import type { Variable } from "@stoa/sdk";
import { formatCount } from "../../lib/format.ts";
import { Field } from "../field.tsx";

export type VariableValues = Record<string, string>;

/** Of the service, for one value. */
const MOST_BYTES = 32_768;
/** Longer values get a field of several lines. */
const LINE_CHARACTERS = 120;

const byteLength = (text: string): number => new TextEncoder().encode(text).length;

export const defaultValues = (variables: Variable[]): VariableValues =>
  Object.fromEntries(variables.map((variable) => [variable.name, variable.default ?? ""]));

/** The sentences for values that the service would refuse, by name. */
export function findValueErrors(variables: Variable[], values: VariableValues): Record<string, string> {
  const errors: Record<string, string> = {};
  for (const variable of variables) {
    const value = values[variable.name] ?? "";
    if (value === "" && variable.required && variable.default === undefined)
      errors[variable.name] = variable.enum ? "Choose one." : "Enter a text.";
    else if (variable.maxLength !== undefined && [...value].length > variable.maxLength)
      errors[variable.name] = `Use at most ${formatCount(variable.maxLength)} characters.`;
    else if (byteLength(value) > MOST_BYTES) errors[variable.name] = "Use at most 32,768 bytes.";
  }
  return errors;
}

/** What a run sends: an empty text stands for the default. */
export const sentValues = (variables: Variable[], values: VariableValues): VariableValues =>
  Object.fromEntries(variables.flatMap(({ name }) => (values[name] ? [[name, values[name]]] : [])));

interface VariableFieldsProps {
  variables: Variable[];
  values: VariableValues;
  errors: Record<string, string>;
  onChange: (name: string, value: string) => void;
  /** Whether fields without a limit of their own show the limit of a run. */
  isCounted?: boolean;
}

export const VariableFields = ({
  variables,
  values,
  errors,
  onChange,
  isCounted = true,
}: VariableFieldsProps) =>
  variables.map((variable) => (
    <VariableField
      key={variable.name}
      variable={variable}
      value={values[variable.name] ?? ""}
      error={errors[variable.name]}
      onChange={(value) => onChange(variable.name, value)}
      isCounted={isCounted || variable.maxLength !== undefined}
    />
  ));

interface VariableFieldProps {
  variable: Variable;
  value: string;
  error: string | undefined;
  onChange: (value: string) => void;
  isCounted: boolean;
}

function VariableField({ variable, value, error, onChange, isCounted }: VariableFieldProps) {
  const { name, description, required, enum: choices, maxLength, default: standard } = variable;
  const isOptional = !required || standard !== undefined;
  const hint = [description, standard ? `Default: ${shorten(standard)}` : ""].filter(Boolean).join(" – ");
  const label = (
    <span className="row between variable-label">
      <span className="cut-words">
        {name}
        {isOptional && <span className="faint"> optional</span>}
      </span>
      {!choices && isCounted && <span className="xs faint num">{lengthLabel(value, maxLength)}</span>}
    </span>
  );
  const isLine = maxLength !== undefined && maxLength <= LINE_CHARACTERS;
  return (
    <Field label={label} hint={hint && <span dir="auto">{hint}</span>} error={error}>
      {(control) => {
        if (choices)
          return (
            <select
              {...control}
              className="input"
              value={value}
              onChange={(event) => onChange(event.target.value)}
            >
              {(isOptional || value === "") && (
                <option value="">{standard ? `Default (${standard})` : "–"}</option>
              )}
              {choices.map((choice) => (
                <option key={choice}>{choice}</option>
              ))}
            </select>
          );
        const shared = {
          ...control,
          value,
          dir: "auto" as const,
          onChange: (event: { target: { value: string } }) => onChange(event.target.value),
        };
        return isLine ? (
          <input {...shared} className="input" autoComplete="off" />
        ) : (
          // Megabytes would block the page. One more than the limit, so that a text that was cut is an error.
          <textarea {...shared} className="input area" rows={4} maxLength={MOST_BYTES + 1} />
        );
      }}
    </Field>
  );
}

const SHOWN_DEFAULT = 60;
const shorten = (text: string) => (text.length > SHOWN_DEFAULT ? `${text.slice(0, SHOWN_DEFAULT)}…` : text);

const lengthLabel = (value: string, maxLength: number | undefined): string =>
  maxLength === undefined
    ? `${formatCount(byteLength(value))} of ${formatCount(MOST_BYTES)} bytes`
    : `${formatCount([...value].length)} of ${formatCount(maxLength)} characters`;
