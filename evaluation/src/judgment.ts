import { combine, withMetric } from "./combine-verdicts.ts";
import { isJudgeable, listJudgedAssertions } from "./judge-prompt.ts";
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
  answer: JudgeAnswer | null;
  reason: string;
}

/** `undecided`: the judge gave no answer that can be read. It never counts as passed. */
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
export function readJudgeAnswer(text: string): JudgeReply {
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
 * `llm-rubric`, an assertion passes if the answer says so and its score reaches the threshold. The case passes if each assertion passes or,
 * with a threshold, if the weighted mean of their scores reaches it; deterministic assertions have no part in it. It is undecided if
 * that depends on an assertion without an answer. Null: the judge is asked about none of the case's assertions.
 */
export function judgeCase(testCase: TestCase, replies: readonly JudgeReply[]): Judgment | null {
  const asked = listJudgedAssertions(testCase);
  if (asked.length === 0) return null;
  const rest = [...replies];
  const next = (): JudgeReply => rest.shift() ?? { answer: null, reason: "The judge was not asked." };
  const { judged } = splitAssertions(testCase);
  const all = judged.map((one) => (one.type === "assert-set" ? judgeSet(one, next) : judgeOne(one, next)));
  const bounds = combineBounds(judged, all, testCase.threshold);
  return { ...toOutcome(bounds), verdicts: all.map(({ verdict }) => verdict) };
}

function judgeSet(set: AssertionSet, next: () => JudgeReply): Judged {
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
  "This type compares embeddings, which evaluations do not compute. Use llm-rubric to have it judged.";

function judgeOne(assertion: Assertion, next: () => JudgeReply): Judged {
  const about = { type: assertion.type, ...withMetric(assertion) };
  if (!isJudgeable(assertion))
    return { verdict: { ...about, outcome: "not_judged", score: null, reason: NOT_JUDGED }, bounds: null };
  const { answer, reason } = next();
  const bounds = answer ? toBounds(decide(assertion, answer)) : UNDECIDED;
  return { verdict: { ...about, ...toOutcome(bounds), reason }, bounds };
}

const UNDECIDED: Bounds = { low: { isPassed: false, score: 0 }, high: { isPassed: true, score: 1 } };

const toBounds = (decided: Bounds["low"]): Bounds => ({ low: decided, high: decided });

function decide({ type, threshold }: Assertion, { pass, score }: JudgeAnswer): Bounds["low"] {
  const isNegated = type.startsWith("not-");
  const isMet = pass && (threshold === undefined || score >= threshold);
  return { isPassed: isMet !== isNegated, score: isNegated ? 1 - score : score };
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
