import type { WorkflowCommand } from "../../lib/workflow-commands.ts";
import type { WorkflowProblem } from "../../lib/workflow-problems.ts";

interface Fix {
  label: string;
  command: WorkflowCommand;
}

/** What mends a problem without a decision; null: a person must decide. */
export function fixOf({ stepId, path, sentence }: WorkflowProblem): Fix | null {
  if (stepId === null) return null;
  const set = (label: string, value: unknown): Fix => ({
    label,
    command: { kind: "set-field", id: stepId, path, value },
  });
  const missing = /: add (\w+) to needs$/.exec(sentence)?.[1];
  if (missing !== undefined)
    return { label: `Run after ${missing}`, command: { kind: "connect", from: missing, to: stepId } };
  const unknown = /names (\w+), but no step has this id$/.exec(sentence)?.[1];
  if (unknown !== undefined)
    return { label: `Remove ${unknown}`, command: { kind: "disconnect", from: unknown, to: stepId } };
  const bound = /must be at (?:most|least) ([\d.]+)$/.exec(sentence)?.[1];
  if (bound !== undefined) return set(`Set to ${bound}`, Number(bound));
  const whole = /without its output: write (steps\.\w+\.output)$/.exec(sentence)?.[1];
  if (whole !== undefined && path.length === 1) return set(`Write ${whole}`, whole);
  return / is not known here$/.test(sentence) && path.length > 0 ? set("Remove it", undefined) : null;
}
