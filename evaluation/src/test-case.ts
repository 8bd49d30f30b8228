/** Assertion types that need neither code nor a model; `not-` before a type negates it. */
export const deterministicTypes = [
  "equals",
  "contains",
  "icontains",
  "contains-any",
  "icontains-any",
  "contains-all",
  "icontains-all",
  "starts-with",
  "regex",
  "is-json",
  "contains-json",
  "is-html",
  "contains-html",
  "is-sql",
  "contains-sql",
  "is-xml",
  "contains-xml",
  "is-refusal",
  "levenshtein",
  "rouge-n",
  "bleu",
  "gleu",
  "latency",
  "cost",
] as const;

/** Assertion types that a judge model decides. Their verdicts are never mixed with deterministic ones. */
export const judgedTypes = ["llm-rubric", "similar", "factuality", "answer-relevance"] as const;

export type DeterministicType = (typeof deterministicTypes)[number];
export type JudgedType = (typeof judgedTypes)[number];
export type AssertionType = DeterministicType | JudgedType;

export interface Assertion {
  type: AssertionType | `not-${AssertionType}`;
  /** Text, a list of texts, or a JSON Schema, as the type needs it. Text may name `{{variables}}` of the case. */
  value?: unknown;
  /** From 0 to 1, except: milliseconds for `latency`, USD for `cost`, and edits for `levenshtein`. */
  threshold?: number | undefined;
  /** Above 0; 1 if absent. */
  weight?: number | undefined;
  /** A name under which results are grouped. */
  metric?: string | undefined;
}

/** Passes if all its assertions pass, or if their weighted score reaches the threshold. */
export interface AssertionSet {
  type: "assert-set";
  assert: Assertion[];
  threshold?: number | undefined;
  weight?: number | undefined;
  metric?: string | undefined;
}

export interface TestCase {
  title: string;
  /** Buyers see only its title. */
  isHidden: boolean;
  /** The variables of a prompt, or the input of a workflow. */
  input: Record<string, unknown>;
  assert: (Assertion | AssertionSet)[];
  /** The weighted score from which the case passes; absent: each assertion must pass. */
  threshold?: number | undefined;
}
