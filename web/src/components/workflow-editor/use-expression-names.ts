import { useMemo } from "react";
import type { ExpressionNames } from "../../lib/suggest-expression.ts";
import { ancestorsOf, isObject, textOf } from "../../lib/workflow-document.ts";
import { useEditor } from "./editor-context.ts";

/** What an expression of a step may read; `stepId` null: the result reads every step. */
export function useExpressionNames(stepId: string | null, inMap: boolean): ExpressionNames {
  const { steps, definition, run, values } = useEditor();
  return useMemo(() => {
    const input = isObject(definition["input"]) ? definition["input"] : {};
    const properties = isObject(input["properties"]) ? input["properties"] : {};
    const items = values.get("items")?.value;
    return {
      inputs: Object.fromEntries(
        Object.entries(properties).map(([name, schema]) => [
          name,
          isObject(schema) ? textOf(schema["type"]) : "",
        ]),
      ),
      steps: stepId === null ? steps.map(({ id }) => id) : ancestorsOf(steps, stepId),
      inMap,
      values: {
        input: run?.execution.variables ?? undefined,
        steps: run?.outputs ?? {},
        ...(Array.isArray(items) && { item: items[0] }),
      },
    };
  }, [steps, definition, run, values, stepId, inMap]);
}
