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
type JudgeRequest =
  | { kind: "rubric"; message: string }
  | { kind: "similar"; text: string; references: string[] }
  /** The judge writes questions to the message, which are compared with `text`. */
  | { kind: "relevance"; message: string; text: string };

export type AskedCall = Place & { step: CallStep; request: JudgeRequest };

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
      const request = texts ? toJudgeRequest(assertion, texts) : COLUMN_TOO_LONG;
      if (typeof request !== "string") sum += lengthOf(request);
      isFull ||= sum > MAX_JUDGE_COLUMN_CHARACTERS;
      calls.push(
        isFull || typeof request === "string"
          ? { ...place, step: null, reason: isFull ? COLUMN_TOO_LONG : String(request) }
          : { ...place, step: maps.place(request), request },
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
function toJudgeRequest(assertion: JudgedAssertion, output: OutputTexts): JudgeRequest | string {
  const request = assertion.kind === "similar" ? toSimilar(assertion, output) : toPrompt(assertion, output);
  if (typeof request === "string") return request;
  return lengthOf(request) > MAX_JUDGE_MESSAGE_CHARACTERS ? TOO_LONG : request;
}

function toSimilar(
  { references }: Extract<JudgedAssertion, { kind: "similar" }>,
  { plain }: OutputTexts,
): JudgeRequest | string {
  if (references.length >= MAX_EMBEDDED_TEXTS) return MANY_REFERENCES;
  // Before it is written as JSON, which may be six times as long.
  if (plain.length > MAX_JUDGE_MESSAGE_CHARACTERS) return TOO_LONG;
  return plain === "" ? EMPTY : { kind: "similar", text: plain, references };
}

function toPrompt(
  assertion: Exclude<JudgedAssertion, { kind: "similar" }>,
  { escaped }: OutputTexts,
): JudgeRequest | string {
  if (escaped === null) return TOO_LONG;
  if (assertion.kind === "relevance") {
    const { text } = assertion;
    return text === "" ? NO_QUESTION : { kind: "relevance", message: joinQuestionsMessage(escaped), text };
  }
  const { rubric } = assertion;
  if (rubric === null) return TOO_LONG;
  return { kind: "rubric", message: joinJudgeMessage({ rubric, output: escaped }) };
}

const textsOf = (request: JudgeRequest): string[] => {
  if (request.kind === "rubric") return [request.message];
  if (request.kind === "relevance") return [request.message, request.text];
  return [request.text, ...request.references];
};

/** Of a message, or of the texts as JSON: hostile ones are six times as long there. */
const lengthOf = (request: JudgeRequest): number =>
  request.kind === "rubric" ? request.message.length : JSON.stringify(textsOf(request)).length;

/** The maps of each kind of request. No name is part of another: an expression gets each input whose name it contains. */
const MAP_NAMES = { rubric: "judge", similar: "similar", relevance: "relevance" } as const;
const QUESTIONS_NAME = "questions";

/** Gives each request its place, and begins another map where one is full. */
class MapPlaces {
  readonly #open = new Map<JudgeRequest["kind"], { map: number; items: number; characters: number }>();

  place(request: JudgeRequest): CallStep {
    const length = itemLengthOf(request);
    let { map, items, characters } = this.#open.get(request.kind) ?? { map: 0, items: 0, characters: 0 };
    if (items === MAX_ITEMS || characters + length > MAX_ITEMS_CHARACTERS)
      [map, items, characters] = [map + 1, 0, 0];
    this.#open.set(request.kind, { map, items: items + 1, characters: characters + length + 1 });
    return { id: toStepId(MAP_NAMES[request.kind], map), item: items };
  }
}

/** More than the names of the members of an item need as JSON. */
const NAMES_LENGTH = 40;

/** Characters of its texts as items of the maps; of `relevance`, those of both maps. */
const itemLengthOf = (request: JudgeRequest): number =>
  JSON.stringify(textsOf(request)).length - "[]".length + (request.kind === "similar" ? NAMES_LENGTH : 0);

const toStepId = (name: string, map: number): string => `${name}${String(map).padStart(2, "0")}`;

/** The step in which the judge writes the questions of an `answer-relevance`. */
export const toQuestionsStep = ({ id, item }: CallStep): CallStep => ({
  id: id.replace(MAP_NAMES.relevance, QUESTIONS_NAME),
  item,
});

export const isEmbeddingStep = ({ stepId }: { stepId: string }): boolean =>
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
  const requests = asked.map(({ request }) => request);
  const [{ kind } = { kind: "rubric" as const }] = requests;
  if (kind === "rubric")
    return toRubricMap(
      judge,
      id,
      requests.filter(isRubric).map(({ message }) => message),
    );
  const embedding = required(judge.embedding, "the embedding model of a judge");
  if (kind === "similar") return toSimilarMap(embedding, id, requests.filter(isOfSimilar));
  return toRelevanceMaps(judge, embedding, id, requests.filter(isOfRelevance));
}

const isRubric = (request: JudgeRequest) => request.kind === "rubric";
const isOfSimilar = (request: JudgeRequest) => request.kind === "similar";
const isOfRelevance = (request: JudgeRequest) => request.kind === "relevance";

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
  requests: Extract<JudgeRequest, { kind: "similar" }>[],
): RunPart => ({
  steps: [toMap(id, toEmbeddingWork(embedding, "item.text", "item.references"))],
  input: { [id]: requests.map(({ text, references }) => ({ text, references })) },
});

function toRelevanceMaps(
  judge: RunJudge,
  embedding: StoredEmbedding,
  id: string,
  requests: Extract<JudgeRequest, { kind: "relevance" }>[],
): RunPart {
  const { id: writing } = toQuestionsStep({ id, item: 0 });
  const written = { ...toPromptWork(judge, embedding.instructions), output: QUESTIONS_SCHEMA };
  const compared = toEmbeddingWork(embedding, "item", `steps.${writing}.output[index]`);
  return {
    steps: [toMap(writing, written), { ...toMap(id, compared), needs: [writing] }],
    input: {
      [writing]: requests.map(({ message }) => message),
      [id]: requests.map(({ text }) => text),
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
