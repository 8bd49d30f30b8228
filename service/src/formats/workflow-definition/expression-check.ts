import { type Call, type Comprehension, type Expr, loadCel, type Parse } from "./cel.ts";
import { EXCLUDED_FUNCTION } from "./cel-functions.ts";

export interface ExpressionScope {
  /** null: the input's schema allows any name. */
  inputs: ReadonlySet<string> | null;
  steps: { has(id: string): boolean };
  /** Steps that must have ended before; null: all. */
  ended: ReadonlySet<string> | null;
  inMap: boolean;
}

/** Returns why an expression cannot be evaluated at its place, without running it: an unknown name would fail a paid run. */
export type ExpressionCheck = (source: string, scope: ExpressionScope) => string[];

const MAX_DEPTH = 100;
/** Two nested loops over 200 items fit into the cost limit; a third would not. */
const MAX_NESTED_MACROS = 2;
const TYPES = ["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"];
const MACROS = ["has", "all", "exists", "exists_one", "existsOne", "map", "filter"];
const NAMES = "input, steps.<id>.output, and in the do of a map item and index";

let loaded: Promise<ExpressionCheck> | undefined;

export function loadExpressionCheck(): Promise<ExpressionCheck> {
  loaded ??= createExpressionCheck();
  return loaded;
}

async function createExpressionCheck(): Promise<ExpressionCheck> {
  const { parse, functions } = await loadCel();
  const signatures = new Set<string>();
  for (const { name, target, arguments: parameters } of functions) {
    if (name !== EXCLUDED_FUNCTION)
      signatures.add(toSignature(name, target !== undefined, parameters.length));
  }
  return (source, scope) => {
    const parsed = parseExpression(parse, source);
    if (typeof parsed === "string") return [parsed];
    const state: CheckState = { scope, signatures, reasons: new Set(), bound: [], depth: 0, macros: 0 };
    visitExpression(parsed, state);
    return [...state.reasons];
  };
}

const toSignature = (name: string, isMethod: boolean, count: number) =>
  `${isMethod ? "." : ""}${name}/${count}`;

/** Returns the syntax tree, or the reason for its absence. */
function parseExpression(parse: Parse, source: string): Expr | string {
  try {
    return parse(source).expr ?? "is empty";
  } catch (error) {
    if (error instanceof RangeError) return TOO_DEEP;
    return `is not a valid CEL expression${describeLocation(error)}`;
  }
}

const TOO_DEEP = `is nested deeper than ${MAX_DEPTH} levels`;

/** Without the parser's long list of expected tokens. */
function describeLocation(error: unknown): string {
  const { location, rawMessage } = error as { location?: unknown; rawMessage?: unknown };
  if (typeof rawMessage !== "string") return "";
  const { start } = location as { start: { line: number; column: number } };
  const [found] = rawMessage.split(" but expecting");
  return `: line ${start.line}, column ${start.column}: ${found}`;
}

interface CheckState {
  scope: ExpressionScope;
  signatures: ReadonlySet<string>;
  reasons: Set<string>;
  /** Variables of macros: `v` in `list.map(v, v + 1)`. */
  bound: readonly string[];
  depth: number;
  macros: number;
}

function visitExpression(expr: Expr | undefined, outer: CheckState): void {
  if (!expr) return;
  const state = { ...outer, depth: outer.depth + 1 };
  if (state.depth > MAX_DEPTH) {
    state.reasons.add(TOO_DEEP);
    return;
  }
  const chain = readFieldPath(expr);
  const { exprKind } = expr;
  if (chain && !state.bound.includes(chain.name)) visitName(chain, state);
  else if (exprKind.case === "selectExpr") visitExpression(exprKind.value.operand, state);
  else if (exprKind.case === "callExpr") visitCall(exprKind.value, state);
  else if (exprKind.case === "comprehensionExpr") visitMacro(exprKind.value, state);
  else if (exprKind.case === "listExpr")
    for (const item of exprKind.value.elements) visitExpression(item, state);
  else if (exprKind.case === "structExpr") {
    const { messageName, entries } = exprKind.value;
    if (messageName)
      state.reasons.add(`creates a ${messageName}, which is unknown: write a map {"key": value}`);
    for (const { keyKind, value } of entries) {
      if (keyKind.case === "mapKey") visitExpression(keyKind.value, state);
      visitExpression(value, state);
    }
  }
}

/** A name and its fields, read by `.field` or `["field"]`. */
interface FieldPath {
  name: string;
  fields: string[];
}

function readFieldPath(expr: Expr): FieldPath | null {
  const fields: string[] = [];
  let at: Expr | undefined = expr;
  while (at) {
    const kind: Expr["exprKind"] = at.exprKind;
    if (kind.case === "identExpr") return { name: kind.value.name, fields: fields.reverse() };
    if (kind.case === "selectExpr") {
      fields.push(kind.value.field);
      at = kind.value.operand;
    } else {
      const index = kind.case === "callExpr" ? readConstantIndex(kind.value) : null;
      if (index === null || kind.case !== "callExpr") return null;
      fields.push(index);
      at = kind.value.args[0];
    }
  }
  return null;
}

function readConstantIndex(call: Call): string | null {
  const kind = call.function === "_[_]" ? call.args[1]?.exprKind : undefined;
  if (kind?.case !== "constExpr") return null;
  const { constantKind } = kind.value;
  return constantKind.case === "stringValue" ? constantKind.value : String(constantKind.value);
}

function visitName({ name, fields }: FieldPath, { scope, reasons }: CheckState): void {
  const reason = findNameProblem(name, fields, scope);
  if (reason) reasons.add(reason);
}

function findNameProblem(name: string, fields: string[], scope: ExpressionScope): string | null {
  if (name === "input") return findInputProblem(fields[0], scope);
  if (name === "steps") return findStepProblem(fields, scope);
  // Names that the parser generates for macros, and types, as in type(x) == string.
  if (name.startsWith("@") || TYPES.includes(name)) return null;
  if (name !== "item" && name !== "index") return `uses ${name}, which is unknown: there are ${NAMES}`;
  return scope.inMap ? null : `uses ${name}, which exists only in the do of a map`;
}

function findInputProblem(name: string | undefined, { inputs }: ExpressionScope): string | null {
  if (name === undefined || !inputs || inputs.has(name)) return null;
  return `uses input.${name}, but input.properties has no ${name}`;
}

function findStepProblem([id, field]: string[], { steps, ended }: ExpressionScope): string | null {
  if (id === undefined) return "uses steps as a whole: name one, as in steps.draft.output";
  if (!steps.has(id)) return `uses steps.${id}, but no step has this id`;
  if (field !== "output") return `uses steps.${id} without its output: write steps.${id}.output`;
  if (!ended || ended.has(id)) return null;
  return `uses steps.${id}, which is not an ancestor: add ${id} to needs`;
}

function visitCall({ function: name, target, args }: Call, state: CheckState): void {
  const isOperator = /\W/.test(name);
  if (!isOperator && !state.signatures.has(toSignature(name, target !== undefined, args.length))) {
    state.reasons.add(findFunctionProblem(name, state.signatures));
  }
  visitExpression(target, state);
  for (const argument of args) visitExpression(argument, state);
}

function findFunctionProblem(name: string, signatures: ReadonlySet<string>): string {
  if (MACROS.includes(name)) return `uses the macro ${name} incorrectly`;
  const isKnown = [...signatures].some((known) => known.replace(/^\.|\/\d+$/g, "") === name);
  return isKnown ? `calls ${name}() with wrong arguments` : `uses the function ${name}, which is unknown`;
}

/** The parser has expanded `list.map(v, …)`; the author wrote only the range and the step. */
function visitMacro({ iterRange, iterVar, loopStep }: Comprehension, state: CheckState): void {
  visitExpression(iterRange, state);
  const macros = state.macros + 1;
  if (macros > MAX_NESTED_MACROS) {
    state.reasons.add(
      "has a map, filter, all or exists three levels deep: compute the inner list in a step before",
    );
    return;
  }
  visitExpression(loopStep, { ...state, bound: [...state.bound, iterVar], macros });
}
