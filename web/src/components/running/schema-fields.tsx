import "./run-form.css";
import { formatCount } from "../../lib/format.ts";
import type { InputSchema } from "../../lib/workflow-definition.ts";
import { CheckRow } from "../check-row.tsx";
import { Field } from "../field.tsx";

/** As typed; a checkbox has "true" or "false". Empty: not set. */
export type SchemaValues = Record<string, string>;

type Kind = "choice" | "boolean" | "number" | "text" | "lines" | "json";

interface InputField {
  name: string;
  schema: InputSchema;
  kind: Kind;
  isRequired: boolean;
}

/** A schema without properties has one field for the whole input. */
export const WHOLE = "";
const LONG_TEXT = 120;

export function fieldsOf(input: InputSchema): InputField[] {
  const entries = Object.entries(input.properties ?? {});
  if (entries.length === 0) {
    const isClosed = Object.keys(input).every((key) => key === "type");
    return isClosed ? [] : [{ name: WHOLE, schema: input, kind: "json", isRequired: false }];
  }
  return entries.map(([name, given]) => {
    const schema = typeof given === "boolean" ? {} : given;
    return { name, schema, kind: kindOf(schema), isRequired: input.required?.includes(name) ?? false };
  });
}

function kindOf({ type, enum: choices, items }: InputSchema): Kind {
  if (choices) return "choice";
  if (type === "boolean") return "boolean";
  if (type === "number" || type === "integer") return "number";
  if (type === "string") return "text";
  if (type === "array" && typeof items === "object" && items.type === "string" && !items.enum) return "lines";
  return "json";
}

/** A stored input as the fields show it. */
export function toTyped(fields: InputField[], input: Record<string, unknown>): SchemaValues {
  return Object.fromEntries(
    fields.map(({ name, schema, kind }) => {
      const value =
        name === WHOLE
          ? Object.keys(input).length > 0
            ? input
            : undefined
          : (input[name] ?? schema.default);
      if (value === undefined || value === null) return [name, ""];
      if (kind === "choice") return [name, JSON.stringify(value)];
      if (kind === "lines" && Array.isArray(value)) return [name, value.join("\n")];
      if (kind === "text" && typeof value === "string") return [name, value];
      return [name, kind === "json" ? JSON.stringify(value, null, 2) : String(value)];
    }),
  );
}

/** What the run gets, or the sentences for what is not valid, by name. */
export function readInput(fields: InputField[], typed: SchemaValues) {
  const input: Record<string, unknown> = {};
  const errors: Record<string, string> = {};
  for (const field of fields) {
    const text = typed[field.name] ?? "";
    const read = readValue(field, text);
    if ("error" in read) errors[field.name] = read.error;
    else if (field.name === WHOLE) Object.assign(input, read.value);
    else if (read.value !== undefined) input[field.name] = read.value;
  }
  return { input, errors };
}

function readValue(
  { schema, kind, isRequired }: InputField,
  text: string,
): { value: unknown } | { error: string } {
  if (kind === "boolean") return { value: text === "true" };
  if (text.trim() === "") {
    if (!isRequired || schema.default !== undefined) return { value: undefined };
    return { error: kind === "choice" ? "Choose one." : "Enter a value." };
  }
  if (kind === "choice") return { value: JSON.parse(text) };
  if (kind === "number") return readNumber(schema, text);
  if (kind === "lines") return { value: text.split("\n").filter((line) => line.trim() !== "") };
  if (kind === "json") return readJson(text);
  if (schema.maxLength !== undefined && [...text].length > schema.maxLength)
    return { error: `Use at most ${formatCount(schema.maxLength)} characters.` };
  return { value: text };
}

function readNumber(
  { type, minimum, maximum }: InputSchema,
  text: string,
): { value: number } | { error: string } {
  const value = Number(text.trim());
  const isValid =
    Number.isFinite(value) &&
    (type !== "integer" || Number.isInteger(value)) &&
    (minimum === undefined || value >= minimum) &&
    (maximum === undefined || value <= maximum);
  if (isValid) return { value };
  const range = [minimum !== undefined && `from ${minimum}`, maximum !== undefined && `to ${maximum}`]
    .filter(Boolean)
    .join(" ");
  return { error: `Enter a ${type === "integer" ? "whole number" : "number"}${range && ` ${range}`}.` };
}

function readJson(text: string): { value: unknown } | { error: string } {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { error: 'Enter JSON, such as {"key": "value"}, ["a", "b"] or "text".' };
  }
}

/** The errors of a request by the name of the field: `input.topic` belongs to `topic`, `input.parts[0]` to `parts`. */
export const inputErrors = (errors: Record<string, string>, place = "input"): Record<string, string> =>
  Object.fromEntries(
    Object.entries(errors).flatMap(([field, text]) => {
      if (!field.startsWith(place)) return [];
      return [[/^\.([^.[]+)/.exec(field.slice(place.length))?.[1] ?? WHOLE, text]];
    }),
  );

interface SchemaFieldsProps {
  fields: InputField[];
  typed: SchemaValues;
  errors: Record<string, string>;
  onChange: (name: string, text: string) => void;
}

export const SchemaFields = ({ fields, typed, errors, onChange }: SchemaFieldsProps) =>
  fields.map((field) => (
    <SchemaField
      key={field.name}
      field={field}
      text={typed[field.name] ?? ""}
      error={errors[field.name]}
      onChange={(text) => onChange(field.name, text)}
    />
  ));

interface SchemaFieldProps {
  field: InputField;
  text: string;
  error: string | undefined;
  onChange: (text: string) => void;
}

function SchemaField({ field: { name, schema, kind, isRequired }, text, error, onChange }: SchemaFieldProps) {
  const title = schema.title ?? (name === WHOLE ? "Input" : name);
  const isOptional = !isRequired || schema.default !== undefined;
  const label = (
    <span dir="auto" className="cut-words">
      {title}
      {isOptional && kind !== "boolean" && <span className="faint"> optional</span>}
    </span>
  );
  const hint = [schema.description, HINTS[kind]].filter(Boolean).join(" – ");
  if (kind === "boolean")
    return (
      <div className="field">
        <CheckRow isChecked={text === "true"} onChange={(isChecked) => onChange(String(isChecked))}>
          <span className="m">{label}</span>
        </CheckRow>
        {hint && <p className="sm soft">{hint}</p>}
        {error && <p className="ferr">{error}</p>}
      </div>
    );
  return (
    <Field label={label} hint={hint && <span dir="auto">{hint}</span>} error={error}>
      {(control) => {
        const shared = {
          ...control,
          value: text,
          onChange: (event: { target: { value: string } }) => onChange(event.target.value),
        };
        if (kind === "choice")
          return (
            <select {...shared} className="input">
              {(isOptional || text === "") && <option value="">–</option>}
              {schema.enum?.map((choice) => (
                <option key={JSON.stringify(choice)} value={JSON.stringify(choice)}>
                  {typeof choice === "string" ? choice : JSON.stringify(choice)}
                </option>
              ))}
            </select>
          );
        if (kind === "number")
          return <input {...shared} className="input num" inputMode="decimal" autoComplete="off" />;
        if (kind === "text" && schema.maxLength !== undefined && schema.maxLength <= LONG_TEXT)
          return <input {...shared} className="input" dir="auto" autoComplete="off" />;
        return (
          <textarea
            {...shared}
            className={kind === "json" ? "input area json" : "input area"}
            dir={kind === "json" ? "ltr" : "auto"}
            spellCheck={kind !== "json"}
            rows={4}
          />
        );
      }}
    </Field>
  );
}

const HINTS: Partial<Record<Kind, string>> = { lines: "One per line", json: "JSON" };
