import {
  type EditedStep,
  type FieldPath,
  formatText,
  isObject,
  type Json,
  type JsonObject,
  needsOf,
  type Position,
  parseText,
  stepsOf,
  type WorkflowDocument,
} from "./workflow-document.ts";

/** Every change of a workflow. A command that does not fit the document changes nothing. */
export type WorkflowCommand =
  | { kind: "set-source"; text: string }
  /** `before`: the step that then needs the new one instead of `step.needs`. */
  | { kind: "add-step"; step: EditedStep; before?: string; position?: Position }
  | { kind: "remove-steps"; ids: readonly string[] }
  | { kind: "rename-step"; id: string; to: string }
  | { kind: "duplicate-step"; id: string; to: string }
  | { kind: "connect"; from: string; to: string }
  | { kind: "disconnect"; from: string; to: string }
  /** `value` undefined: the field is removed. */
  | { kind: "set-field"; id: string; path: FieldPath; value: Json }
  | { kind: "set-workflow"; field: "input" | "result"; value: Json }
  | { kind: "move-steps"; positions: Readonly<Record<string, Position>> }
  | { kind: "tidy-up" };

/** Changes nothing that it is given. */
export function applyCommand(document: WorkflowDocument, command: WorkflowCommand): WorkflowDocument {
  switch (command.kind) {
    case "set-source":
      return withText(document, command.text);
    case "move-steps":
      return { ...document, positions: { ...document.positions, ...command.positions } };
    case "tidy-up":
      return Object.keys(document.positions).length === 0 ? document : { ...document, positions: {} };
    default:
      return changeDefinition(document, command);
  }
}

type DefinitionCommand = Exclude<WorkflowCommand, { kind: "set-source" | "move-steps" | "tidy-up" }>;

const withText = (document: WorkflowDocument, text: string): WorkflowDocument =>
  text === document.text ? document : { ...document, text };

function changeDefinition(document: WorkflowDocument, command: DefinitionCommand): WorkflowDocument {
  const definition = parseText(document.text);
  if (definition === null) return document;
  const changed = toChanged(definition, command);
  if (changed === definition || JSON.stringify(changed) === JSON.stringify(definition)) return document;
  return { text: formatText(changed), positions: movedPositions(document.positions, command) };
}

function toChanged(definition: JsonObject, command: DefinitionCommand): JsonObject {
  const known = new Set(stepsOf(definition).map(({ id }) => id));
  switch (command.kind) {
    case "add-step":
      return known.has(command.step.id) ? definition : addStep(definition, command);
    case "remove-steps":
      return command.ids.some((id) => known.has(id)) ? removeSteps(definition, command.ids) : definition;
    case "rename-step":
      if (!known.has(command.id) || known.has(command.to) || command.to === "") return definition;
      return renameStep(definition, command.id, command.to);
    case "duplicate-step":
      return known.has(command.to) ? definition : duplicateStep(definition, command);
    case "connect": {
      const { from, to } = command;
      if (from === to || !known.has(from) || leadsTo(stepsOf(definition), to, from)) return definition;
      return mapStep(definition, to, (step) =>
        needsOf(step).includes(from) ? step : { ...step, needs: [...needsOf(step), from] },
      );
    }
    case "disconnect":
      return mapStep(definition, command.to, (step) => withoutNeeds(step, [command.from]));
    case "set-field":
      return mapStep(
        definition,
        command.id,
        (step) => setAt(step, command.path, command.value) as EditedStep,
      );
    case "set-workflow":
      return setAt(definition, [command.field], command.value) as JsonObject;
  }
}

const listOf = (definition: JsonObject): unknown[] =>
  Array.isArray(definition["steps"]) ? definition["steps"] : [];

/** The same object if no step changed. Where several steps share an id, the first has it. */
function mapStep(definition: JsonObject, id: string, change: (step: EditedStep) => EditedStep): JsonObject {
  const steps = listOf(definition);
  const at = steps.findIndex((step) => isObject(step) && step["id"] === id);
  const before = steps[at] as EditedStep | undefined;
  const after = before && change(before);
  return after === before ? definition : { ...definition, steps: steps.with(at, after) };
}

function addStep(
  definition: JsonObject,
  { step, before }: Extract<WorkflowCommand, { kind: "add-step" }>,
): JsonObject {
  const added = { ...definition, steps: [...listOf(definition), step] };
  if (before === undefined) return added;
  return mapStep(added, before, (next) => ({
    ...next,
    needs: [...needsOf(next).filter((need) => !needsOf(step).includes(need)), step.id],
  }));
}

function removeSteps(definition: JsonObject, ids: readonly string[]): JsonObject {
  const steps = listOf(definition)
    .filter((step) => !(isObject(step) && ids.includes(step["id"] as string)))
    .map((step) => (isObject(step) ? withoutNeeds(step, ids) : step));
  return { ...definition, steps };
}

function withoutNeeds<Step extends JsonObject>(step: Step, ids: readonly string[]): Step {
  const needs = needsOf(step);
  const left = needs.filter((need) => !ids.includes(need));
  if (left.length === needs.length) return step;
  if (left.length > 0) return { ...step, needs: left };
  const { needs: _, ...rest } = step;
  return rest as Step;
}

function duplicateStep(definition: JsonObject, { id, to }: { id: string; to: string }): JsonObject {
  const step = stepsOf(definition).find((one) => one.id === id);
  return step ? { ...definition, steps: [...listOf(definition), { ...step, id: to }] } : definition;
}

/** Whether the step `from` is an ancestor of `to`: a line back would make a circle. */
function leadsTo(steps: readonly EditedStep[], from: string, to: string): boolean {
  const byId = new Map(steps.map((step) => [step.id, step]));
  const queue = new Set([to]);
  for (const id of queue) {
    const step = byId.get(id);
    for (const need of step ? needsOf(step) : []) queue.add(need);
  }
  return queue.has(from);
}

/** Also where other steps need it and expressions read it. */
function renameStep(definition: JsonObject, id: string, to: string): JsonObject {
  const read = new RegExp(`\\bsteps\\.${id.replace(/[^\w]/g, "\\$&")}(?!\\w)`, "g");
  const inExpression = (value: unknown) =>
    typeof value === "string" ? value.replace(read, () => `steps.${to}`) : value;
  const inWork = (work: JsonObject): JsonObject => {
    const changed = Object.entries(work).map(([name, value]): [string, unknown] => {
      if (EXPRESSIONS.has(name)) return [name, inExpression(value)];
      if (NAMED_EXPRESSIONS.has(name) && isObject(value))
        return [
          name,
          Object.fromEntries(Object.entries(value).map(([key, one]) => [key, inExpression(one)])),
        ];
      return [name, name === "do" && isObject(value) ? inWork(value) : value];
    });
    return Object.fromEntries(changed);
  };
  let isRenamed = false;
  const steps = listOf(definition).map((step) => {
    if (!isObject(step)) return step;
    const work = inWork(step);
    if (Array.isArray(work["needs"])) work["needs"] = work["needs"].map((need) => (need === id ? to : need));
    if (work["id"] !== id || isRenamed) return work;
    isRenamed = true;
    return { ...work, id: to };
  });
  return {
    ...definition,
    steps,
    ...("result" in definition && { result: inExpression(definition["result"]) }),
  };
}

const EXPRESSIONS = new Set(["when", "items", "value"]);
const NAMED_EXPRESSIONS = new Set(["vars", "variables"]);

/** A copy with the value at the path; objects on the way are created. */
function setAt(target: unknown, [key, ...rest]: FieldPath, value: Json): unknown {
  if (key === undefined) return value;
  if (Array.isArray(target) && typeof key === "number") {
    if (rest.length === 0 && value === undefined) return target.filter((_, at) => at !== key);
    if (key > target.length) return target;
    return key === target.length
      ? [...target, setAt(undefined, rest, value)]
      : target.with(key, setAt(target[key], rest, value));
  }
  const object = isObject(target) ? target : {};
  const old = Object.hasOwn(object, key) ? object[key] : undefined;
  const next = setAt(old, rest, value);
  if (next !== undefined) return { ...object, [key]: next };
  return Object.fromEntries(Object.entries(object).filter(([name]) => name !== String(key)));
}

function movedPositions(
  positions: WorkflowDocument["positions"],
  command: DefinitionCommand,
): WorkflowDocument["positions"] {
  if (command.kind === "add-step" && command.position)
    return { ...positions, [command.step.id]: command.position };
  if (command.kind === "remove-steps")
    return Object.fromEntries(Object.entries(positions).filter(([id]) => !command.ids.includes(id)));
  if (command.kind !== "rename-step") return positions;
  return Object.fromEntries(
    Object.entries(positions).map(([id, position]) => [id === command.id ? command.to : id, position]),
  );
}
