import { EvaluationError } from "../../formats/workflow-definition/evaluation-error.ts";
import type { Bindings, Evaluator } from "../../formats/workflow-definition/evaluator.ts";

/** The account whose expressions are evaluated; accounts take turns. */
export interface ExpressionScope {
  evaluator: Evaluator;
  userId: string;
}

export type EvaluatedExpressions = { values: Record<string, unknown> } | { fault: string };

/** Evaluates expressions by name. A fault names the expression and quotes no value. */
export async function evaluateAll(
  { evaluator, userId }: ExpressionScope,
  expressions: Readonly<Record<string, string>>,
  bindings: Bindings,
  field = "",
): Promise<EvaluatedExpressions> {
  const values: Record<string, unknown> = {};
  for (const [name, expression] of Object.entries(expressions)) {
    try {
      values[name] = await evaluator.evaluate(expression, bindings, userId);
    } catch (error) {
      if (!(error instanceof EvaluationError)) throw error;
      return { fault: `${[field, name].filter(Boolean).join(".")} ${error.reason}` };
    }
  }
  return { values };
}

/** The variables of a prompt's template. */
export const toTexts = (values: Record<string, unknown>): Record<string, string> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, toText(value)]));

/** A string stays as it is, null becomes empty, and all else becomes JSON. */
const toText = (value: unknown): string => {
  if (typeof value === "string") return value;
  return value === null || value === undefined ? "" : JSON.stringify(value);
};
