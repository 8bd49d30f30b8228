import type { CelInput, CelResult } from "@bufbuild/cel";
import { required } from "../../core/required.ts";
import { type Cel, type Expr, loadCel } from "./cel.ts";
import { CostMeter, createMeteredFunctions, meterLoops } from "./cel-cost.ts";
import { createJsonWriter, toCelValue } from "./cel-values.ts";
import { EvaluationError, toReason } from "./evaluation-error.ts";

/** Parsing takes longer than most evaluations, and a map evaluates the same expression for each item. */
const MAX_CACHED_PROGRAMS = 100;

/** Works on JSON values. Throws an EvaluationError. */
export type RunExpression = (expression: string, bindings: Readonly<Record<string, unknown>>) => unknown;

type Program = (bindings: Record<string, CelInput>) => CelResult;

/** Has no time limit; evaluation-thread.ts adds one. */
export async function createExpressionRunner(): Promise<RunExpression> {
  const cel = await loadCel();
  const meter = new CostMeter();
  const environment = cel.celEnv({ funcs: createMeteredFunctions(cel, cel.functions, meter) });
  const programs = new Map<string, Program>();
  const programOf = (expression: string) => {
    const program: Program = programs.get(expression) ?? cel.plan(environment, parseMetered(cel, expression));
    // Moves the most recently used to the end.
    programs.delete(expression);
    programs.set(expression, program);
    const [oldest] = programs.keys();
    if (programs.size > MAX_CACHED_PROGRAMS && oldest !== undefined) programs.delete(oldest);
    return program;
  };
  const toText: Program = cel.plan(environment, cel.parse("string(value)"));
  const toJson = createJsonWriter(cel, (value) => toText({ value }));
  return (expression, bindings) => {
    const program = programOf(expression);
    const values = toCelBindings(bindings);
    meter.reset();
    const result = program(values);
    if (cel.isCelError(result)) throw toEvaluationError(result);
    return toJson(result);
  };
}

function parseMetered(cel: Cel, expression: string): Expr {
  const { expr } = parseExpression(cel, expression);
  meterLoops(cel, expr);
  return required(expr, "the tree of an expression");
}

function parseExpression(cel: Cel, expression: string) {
  try {
    return cel.parse(expression);
  } catch {
    throw new EvaluationError("is not a valid CEL expression");
  }
}

/** Without a prototype, so that `constructor` is an unknown name. */
function toCelBindings(bindings: Readonly<Record<string, unknown>>): Record<string, CelInput> {
  const values: Record<string, CelInput> = Object.create(null);
  for (const [name, value] of Object.entries(bindings)) values[name] = toCelValue(value);
  return values;
}

function toEvaluationError({ message, cause }: { message: string; cause: unknown }): EvaluationError {
  return cause instanceof EvaluationError ? cause : new EvaluationError(toReason(message));
}
