import type { Assertion, TestCase } from "@stoa/evaluation";
import {
  comparesEmbeddings,
  isRelevance,
  listReferences,
  QUESTIONS_SCHEMA,
  toQuestion,
} from "@stoa/evaluation/embedding-assertions";
import {
  escapeWithin,
  type JudgeAbility,
  joinJudgeMessage,
  joinQuestionsMessage,
  listJudgedAssertions,
  MAX_JUDGE_MESSAGE_CHARACTERS,
  toRubric,
} from "@stoa/evaluation/judge-prompt";
import { required } from "../../core/required.ts";
import { MAX_ITEMS } from "../../formats/workflow-definition/workflow-schema.ts";
import { MAX_EMBEDDED_TEXTS } from "../../integrations/ai-providers/ai-provider.ts";
import type { Place } from "./column-run.ts";
import type { StoredEmbedding, StoredJudge } from "./queries.ts";

/** The output of one run, which the judge reads. */
export interface JudgedOutput extends Place {
  output: unknown;
}

/** A step of the judge's run. */
export interface CallStep {
  id: string;
  item: number;
}

/** What is asked about one assertion and one output. */
type Question =
  | { kind: "rubric"; message: string }
  | { kind: "similar"; text: string; references: string[] }
  /** The judge writes questions to the message, which are compared with `text`. */
  | { kind: "relevance"; message: string; text: string };

export type AskedCall = Place & { step: CallStep; question: Question };

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

/** Of all messages and texts about one column: they are in memory at once. */
const MAX_JUDGE_COLUMN_CHARACTERS = 4_000_000;

const TOO_LONG = "The output is too long for a judge.";
const EMPTY = "The output is empty, so it has no embedding.";
const NO_QUESTION = "The case has no input with which the questions could be compared.";
const MANY_REFERENCES = `The assertion has too many references: at most ${MAX_EMBEDDED_TEXTS - 1} are compared.`;
const COLUMN_TOO_LONG = `The outputs of this model are together too long for a judge, which reads at most ${MAX_JUDGE_COLUMN_CHARACTERS.toLocaleString("en-US")} characters of them with the rubrics. This one was not sent.`;

/**
 * The calls about these outputs in a fixed order, each with its place in the maps of the judge's run. After the first message that exceeds
 * the limit of the column, no output is escaped or sent.
 */
export function listJudgeCalls(
  cases: readonly TestCase[],
  outputs: Iterable<JudgedOutput>,
  judge: JudgeAbility,
): JudgeCall[] {
  const calls: JudgeCall[] = [];
  const assertions = new Map<number, JudgedAssertion[]>();
  const maps = new MapPlaces();
  let sum = 0;
  let isFull = false;
  for (const { output, ...place } of outputs) {
    const ofCase = assertions.get(place.caseN) ?? readAssertions(cases[place.caseN], judge);
    assertions.set(place.caseN, ofCase);
    const texts: OutputTexts | null = isFull ? null : new OutputTexts(output);
    for (const assertion of ofCase) {
      const question = texts ? toQuestionAbout(assertion, texts) : COLUMN_TOO_LONG;
      if (typeof question !== "string") sum += lengthOf(question);
      isFull ||= sum > MAX_JUDGE_COLUMN_CHARACTERS;
      calls.push(
        isFull || typeof question === "string"
          ? { ...place, step: null, reason: isFull ? COLUMN_TOO_LONG : String(question) }
          : { ...place, step: maps.place(question), question },
      );
    }
  }
  return calls;
}

/** With what does not depend on the output. */
type JudgedAssertion =
  /** Escaped; null: it is too long for a message. */
  | { kind: "rubric"; rubric: string | null }
  | { kind: "similar"; references: string[] }
  | { kind: "relevance"; text: string };

const readAssertions = (testCase: TestCase | undefined, judge: JudgeAbility): JudgedAssertion[] =>
  testCase ? listJudgedAssertions(testCase, judge).map((one) => readAssertion(one, testCase.input)) : [];

function readAssertion(assertion: Assertion, input: TestCase["input"]): JudgedAssertion {
  if (isRelevance(assertion)) return { kind: "relevance", text: toQuestion(assertion, input) };
  if (comparesEmbeddings(assertion)) return { kind: "similar", references: listReferences(assertion, input) };
  return { kind: "rubric", rubric: escapeWithin(toRubric(assertion, input), MAX_JUDGE_MESSAGE_CHARACTERS) };
}

class OutputTexts {
  readonly plain: string;
  #escaped: string | null | undefined;

  constructor(output: unknown) {
    this.plain = typeof output === "string" ? output : (JSON.stringify(output) ?? "");
  }

  /** Once for all rubrics; null: it is too long for a message. */
  get escaped(): string | null {
    if (this.#escaped === undefined) this.#escaped = escapeWithin(this.plain, MAX_JUDGE_MESSAGE_CHARACTERS);
    return this.#escaped;
  }
}

/** Or why the judge is not asked. */
function toQuestionAbout(assertion: JudgedAssertion, output: OutputTexts): Question | string {
  const question = assertion.kind === "similar" ? toSimilar(assertion, output) : toPrompt(assertion, output);
  if (typeof question === "string") return question;
  return lengthOf(question) > MAX_JUDGE_MESSAGE_CHARACTERS ? TOO_LONG : question;
}

function toSimilar(
  { references }: Extract<JudgedAssertion, { kind: "similar" }>,
  { plain }: OutputTexts,
): Question | string {
  if (references.length >= MAX_EMBEDDED_TEXTS) return MANY_REFERENCES;
  // Before it is written as JSON, which may be six times as long.
  if (plain.length > MAX_JUDGE_MESSAGE_CHARACTERS) return TOO_LONG;
  return plain === "" ? EMPTY : { kind: "similar", text: plain, references };
}

function toPrompt(
  assertion: Exclude<JudgedAssertion, { kind: "similar" }>,
  { escaped }: OutputTexts,
): Question | string {
  if (escaped === null) return TOO_LONG;
  if (assertion.kind === "relevance") {
    const { text } = assertion;
    return text === "" ? NO_QUESTION : { kind: "relevance", message: joinQuestionsMessage(escaped), text };
  }
  const { rubric } = assertion;
  if (rubric === null) return TOO_LONG;
  return { kind: "rubric", message: joinJudgeMessage({ rubric, output: escaped }) };
}

const textsOf = (question: Question): string[] => {
  if (question.kind === "rubric") return [question.message];
  if (question.kind === "relevance") return [question.message, question.text];
  return [question.text, ...question.references];
};

/** Of a message, or of the texts as JSON: hostile ones are six times as long there. */
const lengthOf = (question: Question): number =>
  question.kind === "rubric" ? question.message.length : JSON.stringify(textsOf(question)).length;

/** The maps in which each kind of question is asked. No name is part of another: an expression gets each input whose name it contains. */
const MAP_NAMES = { rubric: "judge", similar: "similar", relevance: "relevance" } as const;
const QUESTIONS_NAME = "questions";

/** Gives each question its place, and begins another map where one is full. */
class MapPlaces {
  readonly #open = new Map<Question["kind"], { map: number; items: number; characters: number }>();

  place(question: Question): CallStep {
    const length = itemLengthOf(question);
    let { map, items, characters } = this.#open.get(question.kind) ?? { map: 0, items: 0, characters: 0 };
    if (items === MAX_ITEMS || characters + length > MAX_ITEMS_CHARACTERS)
      [map, items, characters] = [map + 1, 0, 0];
    this.#open.set(question.kind, { map, items: items + 1, characters: characters + length + 1 });
    return { id: toStepId(MAP_NAMES[question.kind], map), item: items };
  }
}

/** More than the names of the members of an item need as JSON. */
const NAMES_LENGTH = 40;

/** Characters of its texts as items of the maps; of `relevance`, those of both maps. */
const itemLengthOf = (question: Question): number =>
  JSON.stringify(textsOf(question)).length - "[]".length + (question.kind === "similar" ? NAMES_LENGTH : 0);

const toStepId = (name: string, map: number): string => `${name}${String(map).padStart(2, "0")}`;

/** The step in which the judge writes the questions of an `answer-relevance`. */
export const toQuestionsStep = ({ id, item }: CallStep): CallStep => ({
  id: id.replace(MAP_NAMES.relevance, QUESTIONS_NAME),
  item,
});

export const isOfEmbedding = ({ stepId }: { stepId: string }): boolean =>
  stepId.startsWith(MAP_NAMES.similar) || stepId.startsWith(MAP_NAMES.relevance);

type RunJudge = Pick<StoredJudge, "provider" | "model" | "instructions" | "embedding">;

/** A workflow whose maps ask the judge, and its embedding model. Without calls its only map is empty. */
export function toJudgeRun(judge: RunJudge, calls: readonly JudgeCall[]) {
  const maps = [...Map.groupBy(calls.filter(isAsked), ({ step }) => step.id)];
  const parts =
    maps.length > 0
      ? maps.map(([id, asked]) => toMaps(judge, id, asked))
      : [toRubricMap(judge, toStepId(MAP_NAMES.rubric, 0), [])];
  const definition = {
    format: "workflow/1",
    input: { type: "object" },
    steps: parts.flatMap(({ steps }) => steps),
    result: "null",
  };
  return {
    definition: JSON.stringify(definition),
    input: Object.assign({}, ...parts.map(({ input }) => input)) as Record<string, unknown[]>,
  };
}

interface RunPart {
  steps: object[];
  input: Record<string, unknown[]>;
}

function toMaps(judge: RunJudge, id: string, asked: readonly AskedCall[]): RunPart {
  const questions = asked.map(({ question }) => question);
  const [{ kind } = { kind: "rubric" as const }] = questions;
  if (kind === "rubric")
    return toRubricMap(
      judge,
      id,
      questions.filter(isRubric).map(({ message }) => message),
    );
  const embedding = required(judge.embedding, "the embedding model of a judge");
  if (kind === "similar") return toSimilarMap(embedding, id, questions.filter(isOfSimilar));
  return toRelevanceMaps(judge, embedding, id, questions.filter(isOfRelevance));
}

const isRubric = (question: Question) => question.kind === "rubric";
const isOfSimilar = (question: Question) => question.kind === "similar";
const isOfRelevance = (question: Question) => question.kind === "relevance";

const toMap = (id: string, work: object) => ({
  ...{ id, type: "map", items: `input.${id}` },
  do: { ...work, onError: "continue" },
});

const toPromptWork = ({ provider, model }: RunJudge, instructions: string) => ({
  ...{ type: "prompt", provider, model },
  messages: toJudgeMessages(instructions, "{{message}}"),
  vars: { message: "item" },
  options: JUDGE_OPTIONS,
});

const toRubricMap = (judge: RunJudge, id: string, messages: string[]): RunPart => ({
  steps: [toMap(id, toPromptWork(judge, judge.instructions))],
  input: { [id]: messages },
});

const toEmbeddingWork = ({ provider, model }: StoredEmbedding, text: string, compareTo: string) => ({
  ...{ type: "embedding", provider, model, text, compareTo },
});

const toSimilarMap = (
  embedding: StoredEmbedding,
  id: string,
  questions: Extract<Question, { kind: "similar" }>[],
): RunPart => ({
  steps: [toMap(id, toEmbeddingWork(embedding, "item.text", "item.references"))],
  input: { [id]: questions.map(({ text, references }) => ({ text, references })) },
});

function toRelevanceMaps(
  judge: RunJudge,
  embedding: StoredEmbedding,
  id: string,
  questions: Extract<Question, { kind: "relevance" }>[],
): RunPart {
  const { id: writing } = toQuestionsStep({ id, item: 0 });
  const written = { ...toPromptWork(judge, embedding.instructions), output: QUESTIONS_SCHEMA };
  const compared = toEmbeddingWork(embedding, "item", `steps.${writing}.output[index]`);
  return {
    steps: [toMap(writing, written), { ...toMap(id, compared), needs: [writing] }],
    input: {
      [writing]: questions.map(({ message }) => message),
      [id]: questions.map(({ text }) => text),
    },
  };
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
