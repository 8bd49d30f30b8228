import { isObject, type JsonObject, textOf } from "../../lib/workflow-document.ts";
import { PlusIcon, TrashIcon } from "../icons.tsx";
import { EditedField } from "./edited-field.tsx";
import { useEditor } from "./editor-context.ts";
import { ExpressionField } from "./expression-field.tsx";

/** The value that a run gives. */
export function ResultForm() {
  const { definition, execute } = useEditor();
  return (
    <section className="workflow-form" aria-label="Result">
      <div className="workflow-form-head">
        <h2 className="h3">Result</h2>
      </div>
      <div className="workflow-form-body">
        <p className="sm soft">What the buyer gets when all steps have ended.</p>
        <ExpressionField
          stepId={null}
          path={["result"]}
          label="Value"
          value={definition["result"]}
          onChange={(value) =>
            execute({ kind: "set-workflow", field: "result", value: value ?? "" }, "result")
          }
        />
      </div>
    </section>
  );
}

const TYPES = ["string", "number", "integer", "boolean", "array", "object"];

/** What the buyer fills in. */
export function InputForm() {
  const { definition, execute } = useEditor();
  const input = isObject(definition["input"]) ? definition["input"] : {};
  const properties = isObject(input["properties"]) ? input["properties"] : {};
  const required = Array.isArray(input["required"]) ? input["required"] : [];
  const change = (next: JsonObject, nextRequired: unknown[], mergeKey?: string) => {
    const { required: _, ...rest } = input;
    const value = {
      ...{ type: "object", ...rest, properties: next },
      ...(nextRequired.length > 0 && { required: nextRequired }),
    };
    execute({ kind: "set-workflow", field: "input", value }, mergeKey);
  };
  const names = Object.keys(properties);
  return (
    <section className="workflow-form" aria-label="Input">
      <div className="workflow-form-head">
        <h2 className="h3">Input</h2>
      </div>
      <div className="workflow-form-body">
        <p className="sm soft">What the buyer fills in. Expressions read it as input.name.</p>
        {names.map((name) => (
          <InputProperty
            key={name}
            name={name}
            schema={isObject(properties[name]) ? properties[name] : {}}
            isRequired={required.includes(name)}
            onChange={(schema) => change({ ...properties, [name]: schema }, required, `input/${name}`)}
            onRequire={(isRequired) =>
              change(properties, isRequired ? [...required, name] : required.filter((one) => one !== name))
            }
            onRemove={() =>
              change(
                Object.fromEntries(Object.entries(properties).filter(([one]) => one !== name)),
                required.filter((one) => one !== name),
              )
            }
          />
        ))}
        <form
          className="row"
          onSubmit={(event) => {
            event.preventDefault();
            const name = String(new FormData(event.currentTarget).get("name") ?? "").trim();
            if (name === "" || names.includes(name)) return;
            change({ ...properties, [name]: { type: "string" } }, [...required, name]);
            event.currentTarget.reset();
          }}
        >
          <input className="input" name="name" aria-label="Name of a new input" placeholder="topic" />
          <button type="submit" className="btn s">
            <PlusIcon /> Add an input
          </button>
        </form>
      </div>
    </section>
  );
}

interface InputPropertyProps {
  name: string;
  schema: JsonObject;
  isRequired: boolean;
  onChange: (schema: JsonObject) => void;
  onRequire: (isRequired: boolean) => void;
  onRemove: () => void;
}

function InputProperty({ name, schema, isRequired, onChange, onRequire, onRemove }: InputPropertyProps) {
  const path = ["input", "properties", name];
  return (
    <div className="workflow-input" data-field={path.join("/")}>
      <div className="row between">
        <b className="mono">{name}</b>
        <span className="row">
          <label className="check-row sm">
            <input
              type="checkbox"
              className="check"
              checked={isRequired}
              onChange={({ target }) => onRequire(target.checked)}
            />
            Required
          </label>
          <button type="button" className="iconb" aria-label={`Remove ${name}`} onClick={onRemove}>
            <TrashIcon />
          </button>
        </span>
      </div>
      <div className="workflow-pair">
        <EditedField stepId={null} path={path} label={`Description of ${name}`}>
          {(control) => (
            <input
              {...control}
              className="input"
              dir="auto"
              value={textOf(schema["description"])}
              onChange={({ target }) =>
                onChange(
                  target.value === ""
                    ? Object.fromEntries(Object.entries(schema).filter(([key]) => key !== "description"))
                    : { ...schema, description: target.value },
                )
              }
            />
          )}
        </EditedField>
        <EditedField stepId={null} path={[...path, "type"]} label="Type">
          {(control) => (
            <select
              {...control}
              className="input"
              value={textOf(schema["type"])}
              onChange={({ target }) => onChange({ ...schema, type: target.value })}
            >
              {[...new Set([...TYPES, textOf(schema["type"])])].map((type) => (
                <option key={type}>{type}</option>
              ))}
            </select>
          )}
        </EditedField>
      </div>
    </div>
  );
}
