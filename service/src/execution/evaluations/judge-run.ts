import type { TestCase } from "@stoa/evaluation";
import {
  listJudgedAssertions,
  MAX_JUDGE_MESSAGE_CHARACTERS,
  toJudgeMessage,
  toRubric,
} from "@stoa/evaluation/judge-prompt";
import { MAX_ITEMS } from "../../formats/workflow-definition/workflow-schema.ts";
import type { Place } from "./column-run.ts";
import type { StoredJudge } from "./queries.ts";

/** The output of one run, which the judge reads. */
export interface JudgedOutput extends Place {
  output: unknown;
}

/** A step of the judge's run. */
export interface CallStep {
  id: string;
  item: number;
}

/** One assertion about one output. */
export interface JudgeCall extends Place {
  /** null: the message is too long for a judge. */
  step: CallStep | null;
  message: string;
}

/**
 * Characters of the items of one map as JSON: an expression returns at most two million. With MAX_JUDGE_CALLS_OF_COLUMN calls there are
 * fewer maps than a workflow may have.
 */
const MAX_ITEMS_CHARACTERS = 1_900_000;

/** The calls about these outputs in a fixed order, each with its place in the maps of the judge's run. */
export function listJudgeCalls(cases: readonly TestCase[], outputs: readonly JudgedOutput[]): JudgeCall[] {
  const calls: JudgeCall[] = [];
  let [map, items, characters] = [0, 0, 0];
  for (const { output, ...place } of outputs)
    for (const message of listMessages(cases[place.caseN], output)) {
      if (message.length > MAX_JUDGE_MESSAGE_CHARACTERS) {
        calls.push({ ...place, step: null, message });
        continue;
      }
      const { length } = JSON.stringify(message);
      if (items === MAX_ITEMS || characters + length > MAX_ITEMS_CHARACTERS)
        [map, items, characters] = [map + 1, 0, 0];
      calls.push({ ...place, step: { id: toStepId(map), item: items }, message });
      items++;
      characters += length + 1;
    }
  return calls;
}

function listMessages(testCase: TestCase | undefined, output: unknown): string[] {
  if (!testCase) return [];
  const text = typeof output === "string" ? output : (JSON.stringify(output) ?? "");
  return listJudgedAssertions(testCase).map((assertion) =>
    toJudgeMessage({ rubric: toRubric(assertion, testCase.input), output: text }),
  );
}

/** Of one length: no name is the beginning of another, because an expression gets each input whose name it contains. */
const toStepId = (map: number): string => `judge${String(map).padStart(2, "0")}`;

/** A workflow whose maps ask the judge. Without calls its only map is empty. */
export function toJudgeRun(
  { provider, model, instructions }: Pick<StoredJudge, "provider" | "model" | "instructions">,
  calls: readonly JudgeCall[],
) {
  const maps = [...Map.groupBy(calls.filter(hasStep), ({ step }) => step.id)];
  const input = Object.fromEntries(
    maps.length > 0
      ? maps.map(([id, items]) => [id, items.map(({ message }) => message)])
      : [[toStepId(0), []]],
  );
  const definition = {
    format: "workflow/1",
    input: { type: "object" },
    steps: Object.keys(input).map((id) => ({
      ...{ id, type: "map", items: `input.${id}` },
      do: {
        ...{ type: "prompt", provider, model },
        messages: toJudgeMessages(instructions, "{{message}}"),
        vars: { message: "item" },
        onError: "continue",
      },
    })),
    result: "null",
  };
  return { definition: JSON.stringify(definition), input };
}

const hasStep = (call: JudgeCall): call is JudgeCall & { step: CallStep } => call.step !== null;

export const toJudgeMessages = (instructions: string, message: string) => [
  { role: "system" as const, content: instructions },
  { role: "user" as const, content: message },
];
