import type { TestCaseInput } from "@stoa/sdk";

type AnyAssertion = TestCaseInput["assert"][number];

/** A row of the form. Values are text: of a list, one item on each line. */
export interface AssertionRow {
  isNegated: boolean;
  type: string;
  value: string;
  threshold: string;
  /** What the form does not edit, such as a weight. */
  rest: Omit<AnyAssertion, "type" | "value" | "threshold">;
}

interface AssertionKind {
  type: string;
  label: string;
  /** What stands in `value`; none: the type needs no value. */
  value: "text" | "list" | "schema" | "none";
  /** The unit of `threshold`; absent: the type has none. */
  threshold?: string;
}

/** The types that the form offers. Others come by the API, and stay as they are. */
export const ASSERTION_KINDS: AssertionKind[] = [
  { type: "icontains", label: "contains, in any case", value: "text" },
  { type: "contains", label: "contains exactly", value: "text" },
  { type: "icontains-any", label: "contains any of", value: "list" },
  { type: "icontains-all", label: "contains all of", value: "list" },
  { type: "equals", label: "equals", value: "text" },
  { type: "starts-with", label: "starts with", value: "text" },
  { type: "regex", label: "matches the regular expression", value: "text" },
  { type: "is-json", label: "is JSON that fits the schema", value: "schema" },
  { type: "contains-json", label: "contains JSON that fits the schema", value: "schema" },
  { type: "is-refusal", label: "is a refusal", value: "none" },
  { type: "levenshtein", label: "differs in few letters from", value: "text", threshold: "edits" },
  { type: "rouge-n", label: "shares words with (ROUGE)", value: "text", threshold: "0 to 1" },
  { type: "llm-rubric", label: "is judged by a model to be", value: "text", threshold: "0 to 1" },
  { type: "similar", label: "is close in meaning to", value: "text", threshold: "0 to 1" },
  { type: "answer-relevance", label: "answers the input", value: "none", threshold: "0 to 1" },
  { type: "latency", label: "takes at most", value: "none", threshold: "milliseconds" },
  { type: "cost", label: "costs at most", value: "none", threshold: "USD" },
];

export const kindOf = (type: string): AssertionKind | undefined =>
  ASSERTION_KINDS.find((kind) => kind.type === type);

export const NEW_ROW: AssertionRow = {
  isNegated: false,
  type: "icontains",
  value: "",
  threshold: "",
  rest: {},
};

export const NEW_CASE: TestCaseInput = { title: "", isHidden: false, input: {}, assert: [] };

export const countAssertions = ({ assert }: TestCaseInput): number =>
  assert.reduce((sum, one) => sum + (one.assert?.length ?? 1), 0);

/** null: the form cannot show it. */
export function toRow({ type, value, threshold, ...rest }: AnyAssertion): AssertionRow | null {
  const isNegated = type.startsWith("not-");
  const kind = kindOf(isNegated ? type.slice("not-".length) : type);
  if (!kind || rest.assert) return null;
  const text = toText(value, kind);
  if (text === null) return null;
  return {
    isNegated,
    type: kind.type,
    value: text,
    threshold: threshold === undefined ? "" : String(threshold),
    rest,
  };
}

function toText(value: unknown, kind: AssertionKind): string | null {
  if (value === undefined) return "";
  if (kind.value === "schema") return typeof value === "string" ? value : JSON.stringify(value, null, 2);
  if (kind.value === "list" && Array.isArray(value)) {
    const isPlain = value.every((item) => typeof item === "string" && !item.includes("\n"));
    return isPlain ? value.join("\n") : null;
  }
  return typeof value === "string" && kind.value === "text" ? value : null;
}

/** Throws a SyntaxError for a schema that is no JSON. */
export function toAssertion({ isNegated, type, value, threshold, rest }: AssertionRow): AnyAssertion {
  const kind = kindOf(type);
  return {
    ...rest,
    type: isNegated ? `not-${type}` : type,
    ...(kind?.value === "text" && { value }),
    ...(kind?.value === "list" && { value: value.split("\n").filter((line) => line.trim() !== "") }),
    ...(kind?.value === "schema" && value.trim() !== "" && { value: JSON.parse(value) }),
    ...(kind?.threshold && threshold.trim() !== "" && { threshold: Number(threshold) }),
  };
}
