import type { CelInput, CelResult } from "@bufbuild/cel";
import { type Cel, type Expr, openCel } from "./cel.ts";
import { Meter, meteredFunctions, meterLoops } from "./cel-meter.ts";
import { fromJson, jsonWriter } from "./cel-values.ts";
import { EvaluationFault, toReason } from "./evaluation-fault.ts";

/** Of what was run before: parsing takes longer than most evaluations, and a map asks the same for each of its items. */
const MAX_KEPT = 100;

/** A value of JSON from values of JSON by name, or an EvaluationFault. */
export type Run = (expression: string, bindings: Readonly<Record<string, unknown>>) => unknown;

type Program = (bindings: Record<string, CelInput>) => CelResult;

/** Evaluates in the thread that asks, and without a limit of time: evaluate.ts asks in a thread that can be stopped. */
export async function openPrograms(): Promise<Run> {
  const cel = await openCel();
  const meter = new Meter();
  const environment = cel.celEnv({ funcs: meteredFunctions(cel, cel.functions, meter) });
  const programs = new Map<string, Program>();
  const programOf = (expression: string) => {
    const program: Program = programs.get(expression) ?? cel.plan(environment, parsed(cel, expression));
    // What was used last stands last.
    programs.delete(expression);
    programs.set(expression, program);
    if (programs.size > MAX_KEPT) programs.delete(programs.keys().next().value!);
    return program;
  };
  const toText: Program = cel.plan(environment, cel.parse("string(value)"));
  const toJson = jsonWriter(cel, (value) => toText({ value }));
  return (expression, bindings) => {
    const program = programOf(expression);
    const values = valuesOf(bindings);
    meter.reset();
    const result = program(values);
    if (cel.isCelError(result)) throw faultOf(result);
    return toJson(result);
  };
}

function parsed(cel: Cel, expression: string): Expr {
  const { expr } = parse(cel, expression);
  meterLoops(cel, expr);
  return expr!;
}

function parse(cel: Cel, expression: string) {
  try {
    return cel.parse(expression);
  } catch {
    throw new EvaluationFault("is no CEL expression");
  }
}

/** Without a prototype: `constructor` is a name like any other, and not there. */
function valuesOf(bindings: Readonly<Record<string, unknown>>): Record<string, CelInput> {
  const values: Record<string, CelInput> = Object.create(null);
  for (const [name, value] of Object.entries(bindings)) values[name] = fromJson(value);
  return values;
}

function faultOf({ message, cause }: { message: string; cause: unknown }): EvaluationFault {
  return cause instanceof EvaluationFault ? cause : new EvaluationFault(toReason(message));
}
