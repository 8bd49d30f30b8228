import type { ProductDetail, TestCaseInput } from "@stoa/sdk";
import { useState } from "react";
import { parseDefinition } from "../../lib/workflow-definition.ts";
import { Field } from "../field.tsx";
import {
  fieldsOf,
  readInput,
  SchemaFields,
  type SchemaValues,
  toTyped,
  WHOLE,
} from "../running/schema-fields.tsx";

type Fields = ReturnType<typeof fieldsOf>;
type Input = Record<string, unknown>;

export interface CaseInputs {
  /** Of a workflow, by the schema of its input; null: of a prompt, by its variables. */
  fields: Fields | null;
  typed: SchemaValues;
  change: (name: string, text: string) => void;
  /** The input, or the sentences for what is not valid, by name. */
  read: () => { input: Input; errors: Record<string, string> };
}

/** The state of the fields for the input of a test case. */
export function useCaseInputs(
  product: ProductDetail,
  { input = {} }: Pick<TestCaseInput, "input">,
): CaseInputs {
  const [fields] = useState(() => inputFieldsOf(product));
  const [typed, setTyped] = useState<SchemaValues>(() =>
    fields ? toTyped(fields, input) : toTexts({ ...emptyInput(product), ...input }),
  );
  return {
    fields,
    typed,
    change: (name, text) => setTyped((old) => ({ ...old, [name]: text })),
    read: () => (fields ? readTyped(fields, typed, input) : { input: toValues(typed, input), errors: {} }),
  };
}

function inputFieldsOf({ type, content }: ProductDetail): Fields | null {
  if (type !== "WORKFLOW") return null;
  const definition = parseDefinition(content);
  return definition && fieldsOf(definition.input);
}

const emptyInput = ({ variables }: ProductDetail): Input =>
  Object.fromEntries(variables.map(({ name }) => [name, ""]));

/** What the form does not show stays what it was. */
function readTyped(fields: Fields, typed: SchemaValues, before: Input) {
  const { input, errors } = readInput(fields, typed);
  const isShown = (name: string) => fields.some((field) => field.name === name || field.name === WHOLE);
  const rest = Object.entries(before).filter(([name]) => !isShown(name));
  return { input: { ...Object.fromEntries(rest), ...input }, errors };
}

const toTexts = (input: Input): SchemaValues =>
  Object.fromEntries(
    Object.entries(input).map(([name, value]) => [
      name,
      typeof value === "string" ? value : JSON.stringify(value),
    ]),
  );

/** An empty variable gets its default. A value that was no text, and was not changed, stays what it was. */
const toValues = (texts: SchemaValues, before: Input): Input =>
  Object.fromEntries(
    Object.entries(texts)
      .filter(([, text]) => text !== "")
      .map(([name, text]) => {
        const old = before[name];
        const isUnchanged = old !== undefined && typeof old !== "string" && JSON.stringify(old) === text;
        return [name, isUnchanged ? old : text];
      }),
  );

interface CaseInputFieldsProps {
  inputs: CaseInputs;
  /** By name. */
  errors: Record<string, string>;
}

export function CaseInputFields({ inputs: { fields, typed, change }, errors }: CaseInputFieldsProps) {
  if (fields) return <SchemaFields fields={fields} typed={typed} errors={errors} onChange={change} />;
  return Object.entries(typed).map(([name, text]) => (
    <Field key={name} label={<code>{name}</code>} error={errors[name]}>
      {(control) => (
        <textarea
          {...control}
          className="input"
          rows={2}
          dir="auto"
          value={text}
          onChange={({ target }) => change(name, target.value)}
        />
      )}
    </Field>
  ));
}
