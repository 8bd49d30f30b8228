import { type Call, type Comprehension, type Expr, openCel, type Parse } from "./cel.ts";
import { LEFT_OUT } from "./cel-functions.ts";

/** What an expression may read at its place. */
export interface Scope {
  /** null where the input's schema leaves open which there are. */
  inputs: ReadonlySet<string> | null;
  steps: { has(id: string): boolean };
  /** The steps that have ended before; null where all have. */
  ended: ReadonlySet<string> | null;
  inMap: boolean;
}

/**
 * Why an expression could not be evaluated at its place, or nothing. It is read and not run: a name that is not
 * there, or a step that need not have ended, would fail a run that somebody pays for.
 */
export type ExpressionCheck = (source: string, scope: Scope) => string[];

const MAX_DEPTH = 100;
/** 200 items of 200 items fit into the work that an evaluation may do; a third level would not. */
const MAX_MACROS_INSIDE = 2;
const TYPES = ["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"];
const MACROS = ["has", "all", "exists", "exists_one", "existsOne", "map", "filter"];
const NAMES = "input, steps.<id>.output, and in the do of a map item and index";

let opened: Promise<ExpressionCheck> | undefined;

export function openExpressions(): Promise<ExpressionCheck> {
  opened ??= open();
  return opened;
}

async function open(): Promise<ExpressionCheck> {
  const { parse, functions } = await openCel();
  const signatures = new Set<string>();
  for (const { name, target, arguments: given } of functions) {
    if (name !== LEFT_OUT) signatures.add(signatureOf(name, target !== undefined, given.length));
  }
  return (source, scope) => {
    const parsed = parsedBy(parse, source);
    if (typeof parsed === "string") return [parsed];
    const look: Look = { scope, signatures, reasons: new Set(), bound: [], depth: 0, macros: 0 };
    visit(parsed, look);
    return [...look.reasons];
  };
}

const signatureOf = (name: string, isMethod: boolean, count: number) =>
  `${isMethod ? "." : ""}${name}/${count}`;

/** The tree of an expression, or why there is none. */
function parsedBy(parse: Parse, source: string): Expr | string {
  try {
    return parse(source).expr ?? "is empty";
  } catch (error) {
    if (error instanceof RangeError) return TOO_DEEP;
    return `is no CEL expression${placeOf(error)}`;
  }
}

const TOO_DEEP = `is nested deeper than ${MAX_DEPTH} levels`;

/** The parser's place and what it found there, without the list of all that might have stood in its stead. */
function placeOf(error: unknown): string {
  const { location, rawMessage } = error as { location?: unknown; rawMessage?: unknown };
  if (typeof rawMessage !== "string") return "";
  const { start } = location as { start: { line: number; column: number } };
  const [found] = rawMessage.split(" but expecting");
  return `: line ${start.line}, column ${start.column}: ${found}`;
}

interface Look {
  scope: Scope;
  signatures: ReadonlySet<string>;
  reasons: Set<string>;
  /** Names that macros give: `v` in `list.map(v, v + 1)`. */
  bound: readonly string[];
  depth: number;
  macros: number;
}

function visit(expr: Expr | undefined, outer: Look): void {
  if (!expr) return;
  const look = { ...outer, depth: outer.depth + 1 };
  if (look.depth > MAX_DEPTH) {
    look.reasons.add(TOO_DEEP);
    return;
  }
  const chain = chainOf(expr);
  const { exprKind } = expr;
  if (chain && !look.bound.includes(chain.name)) visitName(chain, look);
  else if (exprKind.case === "selectExpr") visit(exprKind.value.operand, look);
  else if (exprKind.case === "callExpr") visitCall(exprKind.value, look);
  else if (exprKind.case === "comprehensionExpr") visitMacro(exprKind.value, look);
  else if (exprKind.case === "listExpr") for (const item of exprKind.value.elements) visit(item, look);
  else if (exprKind.case === "structExpr") {
    const { messageName, entries } = exprKind.value;
    if (messageName)
      look.reasons.add(`makes a ${messageName}, which is not known: write a map {"key": value}`);
    for (const { keyKind, value } of entries) {
      if (keyKind.case === "mapKey") visit(keyKind.value, look);
      visit(value, look);
    }
  }
}

/** A name and the fields that are read of it, by `.field` or `["field"]`. */
interface Chain {
  name: string;
  fields: string[];
}

function chainOf(expr: Expr): Chain | null {
  const fields: string[] = [];
  let at: Expr | undefined = expr;
  while (at) {
    const kind: Expr["exprKind"] = at.exprKind;
    if (kind.case === "identExpr") return { name: kind.value.name, fields: fields.reverse() };
    if (kind.case === "selectExpr") {
      fields.push(kind.value.field);
      at = kind.value.operand;
    } else {
      const index = kind.case === "callExpr" ? constantIndex(kind.value) : null;
      if (index === null || kind.case !== "callExpr") return null;
      fields.push(index);
      at = kind.value.args[0];
    }
  }
  return null;
}

function constantIndex(call: Call): string | null {
  const kind = call.function === "_[_]" ? call.args[1]?.exprKind : undefined;
  if (kind?.case !== "constExpr") return null;
  const { constantKind } = kind.value;
  return constantKind.case === "stringValue" ? constantKind.value : String(constantKind.value);
}

function visitName({ name, fields }: Chain, { scope, reasons }: Look): void {
  const reason = whyNotReadable(name, fields, scope);
  if (reason) reasons.add(reason);
}

function whyNotReadable(name: string, fields: string[], scope: Scope): string | null {
  if (name === "input") return whyNoInput(fields[0], scope);
  if (name === "steps") return whyNoStep(fields, scope);
  // What the parser makes of a macro, and types, as in type(x) == string.
  if (name.startsWith("@") || TYPES.includes(name)) return null;
  if (name !== "item" && name !== "index") return `uses ${name}, which is not known: there are ${NAMES}`;
  return scope.inMap ? null : `uses ${name}, which is there in the do of a map alone`;
}

function whyNoInput(name: string | undefined, { inputs }: Scope): string | null {
  if (name === undefined || !inputs || inputs.has(name)) return null;
  return `uses input.${name}, but input.properties has no ${name}`;
}

function whyNoStep([id, field]: string[], { steps, ended }: Scope): string | null {
  if (id === undefined) return "uses steps as a whole: name one, as in steps.draft.output";
  if (!steps.has(id)) return `uses steps.${id}, but no step has this id`;
  if (field !== "output") return `uses steps.${id} without its output: write steps.${id}.output`;
  if (!ended || ended.has(id)) return null;
  return `uses steps.${id}, which is no ancestor: add ${id} to needs`;
}

function visitCall({ function: name, target, args }: Call, look: Look): void {
  const isOperator = /\W/.test(name);
  if (!isOperator && !look.signatures.has(signatureOf(name, target !== undefined, args.length))) {
    look.reasons.add(whyNoFunction(name, look.signatures));
  }
  visit(target, look);
  for (const argument of args) visit(argument, look);
}

function whyNoFunction(name: string, signatures: ReadonlySet<string>): string {
  if (MACROS.includes(name)) return `uses ${name} in a way that it is not meant for`;
  const isKnown = [...signatures].some((known) => known.replace(/^\.|\/\d+$/g, "") === name);
  return isKnown ? `gives ${name}() not what it takes` : `uses the function ${name}, which is not known`;
}

/** `list.map(v, …)` and the like: the parser has written out what they mean, and only its two ends are the author's. */
function visitMacro({ iterRange, iterVar, loopStep }: Comprehension, look: Look): void {
  visit(iterRange, look);
  const macros = look.macros + 1;
  if (macros > MAX_MACROS_INSIDE) {
    look.reasons.add(
      "has a map, filter, all or exists three levels deep: compute the inner list in a step before",
    );
    return;
  }
  visit(loopStep, { ...look, bound: [...look.bound, iterVar], macros });
}
