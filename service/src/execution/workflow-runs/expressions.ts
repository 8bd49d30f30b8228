import { EvaluationError } from "../../formats/workflow-definition/evaluation-error.ts";
import type { Bindings, Evaluator } from "../../formats/workflow-definition/evaluator.ts";

/** Expressions of one account, which takes turns with others. */
export interface ExpressionScope {
  evaluator: Evaluator;
  userId: string;
}

export type EvaluatedExpressions = { values: Record<string, unknown> } | { fault: string };

/** The values of expressions by their names, or why one has none: its place, and no value of anybody's. */
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

/** What a prompt's template is given. */
export const toTexts = (values: Record<string, unknown>): Record<string, string> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, toText(value)]));

/** A value as a prompt shows it: a text as it is, nothing as nothing, all else as JSON. */
const toText = (value: unknown): string => {
  if (typeof value === "string") return value;
  return value === null || value === undefined ? "" : JSON.stringify(value);
};
