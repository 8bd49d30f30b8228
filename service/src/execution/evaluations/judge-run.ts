import type { TestCase } from "@stoa/evaluation";
import {
  escapeWithin,
  joinJudgeMessage,
  listJudgedAssertions,
  MAX_JUDGE_MESSAGE_CHARACTERS,
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

interface AskedCall extends Place {
  step: CallStep;
  message: string;
}

interface RefusedCall extends Place {
  step: null;
  /** Why the judge is not asked. */
  reason: string;
}

/** One assertion about one output. */
export type JudgeCall = AskedCall | RefusedCall;

/**
 * Characters of the items of one map as JSON: an expression returns at most two million. With MAX_JUDGE_CALLS_OF_COLUMN calls there are
 * fewer maps than a workflow may have.
 */
const MAX_ITEMS_CHARACTERS = 1_900_000;

/** Of all messages about one column: they are in memory at once. */
const MAX_JUDGE_COLUMN_CHARACTERS = 4_000_000;

const TOO_LONG = "The output is too long for a judge.";
const COLUMN_TOO_LONG = `The outputs of this model are together too long for a judge, which reads at most ${MAX_JUDGE_COLUMN_CHARACTERS.toLocaleString("en-US")} characters of them with the rubrics. This one was not sent.`;

/**
 * The calls about these outputs in a fixed order, each with its place in the maps of the judge's run. After the first message that exceeds
 * the limit of the column, no output is escaped or sent.
 */
export function listJudgeCalls(cases: readonly TestCase[], outputs: Iterable<JudgedOutput>): JudgeCall[] {
  const calls: JudgeCall[] = [];
  const rubrics = new Map<number, Rubric[]>();
  let [map, items, characters, sum] = [0, 0, 0, 0];
  let isFull = false;
  for (const { output, ...place } of outputs) {
    const ofCase = rubrics.get(place.caseN) ?? listRubrics(cases[place.caseN]);
    rubrics.set(place.caseN, ofCase);
    const escaped = isFull ? null : escapeOutput(ofCase, output);
    for (const rubric of ofCase) {
      const message = toMessage(rubric, escaped);
      isFull ||= sum + (message?.length ?? 0) > MAX_JUDGE_COLUMN_CHARACTERS;
      if (isFull || message === null) {
        calls.push({ ...place, step: null, reason: isFull ? COLUMN_TOO_LONG : TOO_LONG });
        continue;
      }
      sum += message.length;
      const { length } = JSON.stringify(message);
      if (items === MAX_ITEMS || characters + length > MAX_ITEMS_CHARACTERS)
        [map, items, characters] = [map + 1, 0, 0];
      calls.push({ ...place, step: { id: toStepId(map), item: items }, message });
      items++;
      characters += length + 1;
    }
  }
  return calls;
}

/** Escaped; null: it is too long for a message. */
type Rubric = string | null;

const listRubrics = (testCase: TestCase | undefined): Rubric[] =>
  testCase
    ? listJudgedAssertions(testCase).map((assertion) =>
        escapeWithin(toRubric(assertion, testCase.input), MAX_JUDGE_MESSAGE_CHARACTERS),
      )
    : [];

/** Once for all rubrics; null: it is too long for a message, or no rubric is about it. */
function escapeOutput(rubrics: readonly Rubric[], output: unknown): string | null {
  if (rubrics.length === 0) return null;
  const text = typeof output === "string" ? output : (JSON.stringify(output) ?? "");
  return escapeWithin(text, MAX_JUDGE_MESSAGE_CHARACTERS);
}

function toMessage(rubric: Rubric, output: string | null): string | null {
  if (rubric === null || output === null) return null;
  const message = joinJudgeMessage({ rubric, output });
  return message.length > MAX_JUDGE_MESSAGE_CHARACTERS ? null : message;
}

/** Of one length: no name is the beginning of another, because an expression gets each input whose name it contains. */
const toStepId = (map: number): string => `judge${String(map).padStart(2, "0")}`;

/** A workflow whose maps ask the judge. Without calls its only map is empty. */
export function toJudgeRun(
  { provider, model, instructions }: Pick<StoredJudge, "provider" | "model" | "instructions">,
  calls: readonly JudgeCall[],
) {
  const maps = [...Map.groupBy(calls.filter(isAsked), ({ step }) => step.id)];
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
        options: JUDGE_OPTIONS,
        onError: "continue",
      },
    })),
    result: "null",
  };
  return { definition: JSON.stringify(definition), input };
}

export const isAsked = (call: JudgeCall): call is AskedCall => call.step !== null;

/**
 * The answer has less than 500 tokens, and providers count the reasoning of a model as part of it: a lower limit would cut models that reason
 * at length, and leave their verdicts undecided. Providers refuse more than the maximum of a model, which is seldom below 4,096.
 */
export const JUDGE_OPTIONS = { maxTokens: 4_000 };

export const toJudgeMessages = (instructions: string, message: string) => [
  { role: "system" as const, content: instructions },
  { role: "user" as const, content: message },
];
