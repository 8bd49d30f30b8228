import { combine, withMetric } from "./combine-verdicts.ts";
import {
  type CosineAnswer,
  comparesEmbeddings,
  DEFAULT_COSINE,
  findCosine,
  isCosine,
} from "./embedding-assertions.ts";
import { isJudgeable, type JudgeAbility, listJudgedAssertions } from "./judge-prompt.ts";
import { splitAssertions } from "./split-assertions.ts";
import type { Assertion, AssertionSet, TestCase } from "./test-case.ts";

/** What a judge model says about one assertion, before its threshold and `not-`. */
export interface JudgeAnswer {
  pass: boolean;
  /** From 0 to 1. */
  score: number;
}

/** An answer with its reason, or why there is none. */
export interface JudgeReply {
  answer: JudgeAnswer | CosineAnswer | null;
  reason: string;
}

/** `undecided`: the judge gave no answer that can be read, or the texts have no embeddings. It never counts as passed. */
export type JudgedOutcome = "passed" | "failed" | "undecided";

export interface JudgedVerdict {
  /** As in the case, with `not-`; `assert-set` for a set. */
  type: string;
  /** `not_judged`: the judge is not asked about this type. */
  outcome: JudgedOutcome | "not_judged";
  /** From 0 to 1; null: it depends on what is undecided or not judged. */
  score: number | null;
  /** May quote the output and the rubric. */
  reason: string;
  metric?: string;
  /** Of a set. */
  assertions?: JudgedVerdict[];
}

/** The verdict of a case's judged assertions about one run. */
export interface Judgment {
  outcome: JudgedOutcome;
  score: number | null;
  /** In the case's order; none: the run gave no output. */
  verdicts: JudgedVerdict[];
}

const MAX_ANSWER_CHARACTERS = 20_000;
const MAX_REASON_CHARACTERS = 1_000;

/** An object of three members with primitive values. A key twice leaves fewer than three keys. */
const STRING = String.raw`"(?:[^"\\]|\\.)*"`;
const MEMBER = String.raw`\s*${STRING}\s*:\s*(?:${STRING}|true|false|[-+.\deE]+)\s*`;
const ANSWER = new RegExp(`^\\{${MEMBER},${MEMBER},${MEMBER}\\}$`);
const FENCE = /^```(?:json)?[^\S\n]*\n([\s\S]*)\n```$/;

/**
 * Reads the answer of a judge: one JSON object with exactly `pass`, `score` and `reason`, perhaps in a code fence. Anything else is no answer,
 * because a verdict that is searched for in a text could be one that the judge quotes from a hostile output.
 */
export function readJudgeAnswer(text: string): { answer: JudgeAnswer | null; reason: string } {
  const answer = parseAnswer(text);
  if (!answer) return { answer: null, reason: "The judge's answer is not the JSON object that it must be." };
  const { pass, score, reason } = answer;
  return { answer: { pass, score }, reason: reason.slice(0, MAX_REASON_CHARACTERS).toWellFormed() };
}

function parseAnswer(text: string): (JudgeAnswer & { reason: string }) | null {
  if (text.length > MAX_ANSWER_CHARACTERS) return null;
  const trimmed = text.trim();
  const json = (FENCE.exec(trimmed)?.[1] ?? trimmed).trim();
  if (!ANSWER.test(json)) return null;
  try {
    const value = JSON.parse(json);
    return isAnswer(value) ? value : null;
  } catch {
    return null;
  }
}

const isAnswer = (value: Record<string, unknown>): value is JudgeAnswer & { reason: string } & typeof value =>
  Object.keys(value).length === 3 &&
  typeof value["pass"] === "boolean" &&
  typeof value["reason"] === "string" &&
  isScore(value["score"]);

export const isScore = (value: unknown): value is number =>
  typeof value === "number" && value >= 0 && value <= 1;

/** A run without an output did not pass. */
export const JUDGMENT_WITHOUT_OUTPUT: Judgment = { outcome: "failed", score: 0, verdicts: [] };

/** With everything undecided as failed, and as passed. */
interface Bounds {
  low: { isPassed: boolean; score: number };
  high: { isPassed: boolean; score: number };
}

interface Judged {
  verdict: JudgedVerdict;
  /** Null: not judged. */
  bounds: Bounds | null;
}

/**
 * The verdict of a case's judged assertions from the judge's replies, which are in the order of `listJudgedAssertions`. As promptfoo's
 * `llm-rubric`, an assertion passes if the answer says so and its score reaches the threshold; `similar` and `answer-relevance` pass if their
 * cosine reaches it. The case passes if each assertion passes or, with a threshold, if the weighted mean of their scores reaches it;
 * deterministic assertions have no part in it. It is undecided if that depends on an assertion without an answer. Null: the judge is asked
 * about none of the case's assertions.
 */
export function judgeCase(
  testCase: TestCase,
  replies: readonly JudgeReply[],
  judge: JudgeAbility,
): Judgment | null {
  if (listJudgedAssertions(testCase, judge).length === 0) return null;
  const rest = [...replies];
  const next = (assertion: Assertion): JudgeReply | null =>
    isJudgeable(assertion, judge)
      ? (rest.shift() ?? { answer: null, reason: "The judge was not asked." })
      : null;
  const { judged } = splitAssertions(testCase);
  const all = judged.map((one) => (one.type === "assert-set" ? judgeSet(one, next) : judgeOne(one, next)));
  const bounds = combineBounds(judged, all, testCase.threshold);
  return { ...toOutcome(bounds), verdicts: all.map(({ verdict }) => verdict) };
}

/** null: the judge cannot decide the assertion. */
type NextReply = (assertion: Assertion) => JudgeReply | null;

function judgeSet(set: AssertionSet, next: NextReply): Judged {
  const members = set.assert.map((member) => judgeOne(member, next));
  const assertions = members.map(({ verdict }) => verdict);
  const about = { type: set.type, ...withMetric(set), assertions };
  if (members.every(({ bounds }) => bounds === null))
    return { verdict: { ...about, outcome: "not_judged", score: null, reason: NOT_JUDGED }, bounds: null };
  const bounds = combineBounds(set.assert, members, set.threshold);
  const passed = assertions.filter(({ outcome }) => outcome === "passed").length;
  const reason = `${passed} of ${assertions.length} assertions passed.`;
  return { verdict: { ...about, ...toOutcome(bounds), reason }, bounds };
}

const NOT_JUDGED =
  "This type compares embeddings, and the judge has no embedding model. Name one in judge.embedding.";

function judgeOne(assertion: Assertion, next: NextReply): Judged {
  const about = { type: assertion.type, ...withMetric(assertion) };
  const reply = next(assertion);
  if (!reply)
    return { verdict: { ...about, outcome: "not_judged", score: null, reason: NOT_JUDGED }, bounds: null };
  const { answer, reason } = reply;
  const decided = answer && decide(assertion, answer);
  const bounds = decided ? toBounds(decided) : UNDECIDED;
  return { verdict: { ...about, ...toOutcome(bounds), reason }, bounds };
}

const UNDECIDED: Bounds = { low: { isPassed: false, score: 0 }, high: { isPassed: true, score: 1 } };

const toBounds = (decided: Bounds["low"]): Bounds => ({ low: decided, high: decided });

/** null: the answer is of another kind than the assertion. */
function decide(assertion: Assertion, answer: JudgeAnswer | CosineAnswer): Bounds["low"] | null {
  const isNegated = assertion.type.startsWith("not-");
  const read = readAnswer(assertion, answer);
  if (!read) return null;
  const { isMet, score } = read;
  return { isPassed: isMet !== isNegated, score: isNegated ? 1 - score : score };
}

function readAnswer(
  assertion: Assertion,
  answer: JudgeAnswer | CosineAnswer,
): { isMet: boolean; score: number } | null {
  const { threshold } = assertion;
  if ("cosines" in answer) {
    const cosine = findCosine(assertion, answer);
    if (cosine === null) return null;
    // A score is from 0 to 1, and texts with a negative cosine are not alike at all.
    return { isMet: cosine >= (threshold ?? DEFAULT_COSINE), score: Math.max(0, cosine) };
  }
  if (comparesEmbeddings(assertion)) return null;
  const { pass, score } = answer;
  return { isMet: pass && (threshold === undefined || score >= threshold), score };
}

/** Whether the answer to an assertion can be read. Undefined: the assertion is hidden. */
export function isAnswerTo(assertion: Assertion | undefined, answer: JudgeAnswer | CosineAnswer): boolean {
  if (!("cosines" in answer))
    return (
      typeof answer.pass === "boolean" &&
      isScore(answer.score) &&
      (assertion === undefined || !comparesEmbeddings(assertion))
    );
  if (!Array.isArray(answer.cosines)) return false;
  if (assertion) return findCosine(assertion, answer) !== null;
  return answer.cosines.length > 0 && answer.cosines.every(isCosine);
}

function combineBounds(
  assertions: readonly { weight?: number | undefined }[],
  all: readonly Judged[],
  threshold: number | undefined,
): Bounds {
  const known = all.flatMap(({ bounds }, index) =>
    bounds ? [{ bounds, weight: assertions[index]?.weight }] : [],
  );
  const combined = (side: "low" | "high") =>
    combine(
      known,
      known.map(({ bounds }) => bounds[side]),
      threshold,
    );
  return { low: combined("low"), high: combined("high") };
}

const toOutcome = ({ low, high }: Bounds): { outcome: JudgedOutcome; score: number | null } => ({
  outcome: low.isPassed ? "passed" : high.isPassed ? "undecided" : "failed",
  score: low.score === high.score ? low.score : null,
});
