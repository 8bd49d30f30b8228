import type { AiModel } from "@stoa/sdk";
import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { EMBEDDING_PROVIDERS, PROVIDERS, providerName } from "../../lib/providers.ts";
import {
  type FieldPath,
  isObject,
  type Json,
  type JsonObject,
  newStep,
  type StepType,
  textOf,
} from "../../lib/workflow-document.ts";
import { ownProductsQuery } from "../../queries/workflow-editor.ts";
import { PlusIcon, TrashIcon } from "../icons.tsx";
import { useModels } from "../running/run-target.ts";
import { EditedField, TextField, toNumber } from "./edited-field.tsx";
import { ExpressionField } from "./expression-field.tsx";

export interface WorkFieldsProps {
  stepId: string;
  /** The step, or what a map does with each item. */
  work: JsonObject;
  path: FieldPath;
  set: (path: FieldPath, value: Json) => void;
}

/** The fields of a step that depend on its type. */
export function WorkFields(props: WorkFieldsProps) {
  const { stepId, work, path, set } = props;
  switch (textOf(work["type"])) {
    case "prompt":
      return <PromptFields {...props} />;
    case "embedding":
      return <EmbeddingFields {...props} />;
    case "transform":
      return (
        <ExpressionField
          stepId={stepId}
          path={[...path, "value"]}
          label="Value"
          value={work["value"]}
          onChange={(value) => set([...path, "value"], value)}
        />
      );
    case "map":
      return <MapFields {...props} />;
    case "product":
      return <ProductFields {...props} />;
    case "approval":
      return (
        <>
          <TextField
            stepId={stepId}
            path={["prompt"]}
            label="Question"
            hint="The buyer sees it, and approves or rejects."
            rows={3}
            value={work["prompt"]}
            onChange={(text) => set(["prompt"], text === "" ? undefined : text)}
          />
          <TextField
            stepId={stepId}
            path={["timeoutSeconds"]}
            label="Waits at most, in seconds"
            isNumber
            value={work["timeoutSeconds"]}
            onChange={(text) => set(["timeoutSeconds"], toNumber(text))}
          />
        </>
      );
    case "delay":
      return (
        <TextField
          stepId={stepId}
          path={["seconds"]}
          label="Seconds"
          isNumber
          value={work["seconds"]}
          onChange={(text) => set(["seconds"], toNumber(text))}
        />
      );
    default:
      return <p className="sm soft">This type of step can be changed in the source.</p>;
  }
}

const ITEM_TYPES: StepType[] = ["transform", "prompt", "embedding", "product"];

function MapFields({ stepId, work, set }: WorkFieldsProps) {
  const inner = isObject(work["do"]) ? work["do"] : {};
  const change = (type: string) => {
    const { id: _, ...rest } = newStep(type as StepType, "item", [], "openai");
    set(["do"], type === "transform" ? { type, value: "item" } : rest);
  };
  return (
    <>
      <ExpressionField
        stepId={stepId}
        path={["items"]}
        label="Items"
        value={work["items"]}
        onChange={(value) => set(["items"], value)}
      />
      <div className="workflow-pair">
        <EditedField stepId={stepId} path={["do", "type"]} label="With each item">
          {(control) => (
            <select
              {...control}
              className="input"
              value={textOf(inner["type"])}
              onChange={({ target }) => change(target.value)}
            >
              {ITEM_TYPES.map((type) => (
                <option key={type}>{type}</option>
              ))}
            </select>
          )}
        </EditedField>
        <TextField
          stepId={stepId}
          path={["maxConcurrency"]}
          label="At a time"
          isNumber
          value={work["maxConcurrency"]}
          onChange={(text) => set(["maxConcurrency"], toNumber(text))}
        />
      </div>
      <WorkFields stepId={stepId} work={inner} path={["do"]} set={set} />
    </>
  );
}

function PromptFields({ stepId, work, path, set }: WorkFieldsProps) {
  const messages = Array.isArray(work["messages"]) ? (work["messages"] as unknown[]) : [];
  return (
    <>
      <ModelFields {...{ stepId, work, path, set }} mode="chat" />
      {messages.map((message, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a message has no id
        <Message key={at} {...{ stepId, message, at, set, path, count: messages.length }} />
      ))}
      <div className="flush">
        <button
          type="button"
          className="btn quiet s"
          onClick={() => set([...path, "messages", messages.length], { role: "user", content: "…" })}
        >
          <PlusIcon /> Add a message
        </button>
      </div>
      <NamedExpressions
        {...{ stepId, work, set, path }}
        field="vars"
        names={messages.flatMap((message) => (isObject(message) ? variablesOf(message["content"]) : []))}
      />
      <TextField
        stepId={stepId}
        path={[...path, "options", "maxTokens"]}
        label="Longest answer in tokens"
        isNumber
        value={isObject(work["options"]) ? work["options"]["maxTokens"] : undefined}
        onChange={(text) => set([...path, "options", "maxTokens"], toNumber(text))}
      />
    </>
  );
}

/** The provider of a step that calls one, and its model. */
function ModelFields({ stepId, work, path, set, mode }: WorkFieldsProps & { mode: AiModel["mode"] }) {
  const provider = textOf(work["provider"]);
  const models = useModels(provider === "" ? undefined : provider, mode);
  const listId = useId();
  const offered = mode === "embedding" ? EMBEDDING_PROVIDERS : PROVIDERS;
  return (
    <div className="workflow-pair">
      <EditedField stepId={stepId} path={[...path, "provider"]} label="Provider">
        {(control) => (
          <select
            {...control}
            className="input"
            value={provider}
            onChange={({ target }) => set([...path, "provider"], target.value)}
          >
            {[...new Set([...offered, "sandbox", provider])].map((id) => (
              <option key={id} value={id}>
                {providerName(id)}
              </option>
            ))}
          </select>
        )}
      </EditedField>
      <TextField
        stepId={stepId}
        path={[...path, "model"]}
        label="Model"
        list={listId}
        value={work["model"]}
        onChange={(text) => set([...path, "model"], text === "" ? undefined : text)}
      />
      <datalist id={listId}>
        {models.map(({ id }) => (
          <option key={id} value={id} />
        ))}
      </datalist>
    </div>
  );
}

function EmbeddingFields({ stepId, work, path, set }: WorkFieldsProps) {
  return (
    <>
      <ModelFields {...{ stepId, work, path, set }} mode="embedding" />
      <ExpressionField
        stepId={stepId}
        path={[...path, "text"]}
        label="Text"
        value={work["text"]}
        onChange={(value) => set([...path, "text"], value)}
      />
      <ExpressionField
        stepId={stepId}
        path={[...path, "compareTo"]}
        label="Compared with a list of texts"
        isOptional
        value={work["compareTo"]}
        onChange={(value) => set([...path, "compareTo"], value === "" ? undefined : value)}
      />
    </>
  );
}

const VARIABLE = /\{\{\s*([A-Za-z_][\w-]*)\s*(?:=[^}]*)?\}\}/g;

const variablesOf = (content: unknown): string[] => [
  ...new Set([...textOf(content).matchAll(VARIABLE)].flatMap(([, name]) => name ?? [])),
];

interface MessageProps extends Pick<WorkFieldsProps, "stepId" | "path" | "set"> {
  message: unknown;
  at: number;
  count: number;
}

function Message({ stepId, message, at, count, path, set }: MessageProps) {
  const { role, content } = isObject(message) ? message : {};
  const place = [...path, "messages", at];
  return (
    <div className="workflow-message">
      <TextField
        stepId={stepId}
        path={[...place, "content"]}
        label={`Message ${at + 1}, ${textOf(role)}`}
        rows={Math.min(10, 3 + textOf(content).split("\n").length)}
        value={content}
        onChange={(text) => set([...place, "content"], text)}
      />
      <div className="row">
        <select
          className="input s"
          aria-label={`Role of message ${at + 1}`}
          value={textOf(role)}
          onChange={({ target }) => set([...place, "role"], target.value)}
        >
          {["system", "user", "assistant"].map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
        {count > 1 && (
          <button
            type="button"
            className="iconb"
            aria-label={`Remove message ${at + 1}`}
            onClick={() => set(place, undefined)}
          >
            <TrashIcon />
          </button>
        )}
      </div>
    </div>
  );
}

interface NamedExpressionsProps extends WorkFieldsProps {
  field: "vars" | "variables";
  /** Those that are needed. */
  names: string[];
}

/** One expression a variable. One that nothing uses can be removed. */
function NamedExpressions({ stepId, work, path, set, field, names }: NamedExpressionsProps) {
  const stored = isObject(work[field]) ? work[field] : {};
  const all = [...new Set([...names, ...Object.keys(stored)])];
  return all.map((name) => (
    <ExpressionField
      key={name}
      stepId={stepId}
      path={[...path, field, name]}
      label={
        <>
          Variable <span className="mono">{name}</span>
        </>
      }
      isOptional={!names.includes(name)}
      value={stored[name]}
      onChange={(value) => set([...path, field, name], value === "" ? undefined : value)}
    />
  ));
}

function ProductFields(props: WorkFieldsProps) {
  const { stepId, work, path, set } = props;
  const { data: products } = useQuery(ownProductsQuery);
  const productId = textOf(work["productId"]);
  const listId = useId();
  return (
    <>
      <TextField
        stepId={stepId}
        path={[...path, "productId"]}
        label="Product"
        hint={products?.find(({ id }) => id === productId)?.title ?? "Its id. Buyers need this product, too."}
        list={listId}
        value={productId}
        onChange={(text) => set([...path, "productId"], text)}
      />
      <datalist id={listId}>
        {products?.map(({ id, title }) => (
          <option key={id} value={id}>
            {title}
          </option>
        ))}
      </datalist>
      <NamedExpressions {...props} field="variables" names={[]} />
      <AddVariable onAdd={(name) => set([...path, "variables", name], '""')} />
    </>
  );
}

const AddVariable = ({ onAdd }: { onAdd: (name: string) => void }) => (
  <form
    className="row"
    onSubmit={(event) => {
      event.preventDefault();
      const name = String(new FormData(event.currentTarget).get("name") ?? "").trim();
      if (name !== "") onAdd(name);
      event.currentTarget.reset();
    }}
  >
    <input className="input" name="name" aria-label="Name of a variable" placeholder="Variable" />
    <button type="submit" className="btn s">
      Add
    </button>
  </form>
);
