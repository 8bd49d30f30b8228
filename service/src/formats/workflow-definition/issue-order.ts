import { type FieldProblem, formatPath, type ValidationIssue } from "../../core/errors.ts";

export type Path = ValidationIssue["path"];

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** In document order; missing members come last. */
export function sortIssues(document: unknown, issues: readonly ValidationIssue[]): ValidationIssue[] {
  const rank = createRankKey();
  const ranked = issues.map((issue) => ({ issue, ranks: rankPath(document, issue.path, rank) }));
  return ranked.sort((a, b) => compareRanks(a.ranks, b.ranks)).map(({ issue }) => issue);
}

type RankKey = (parent: unknown, key: PropertyKey) => number;

/** Caches the order of keys, because a document may have thousands of issues. */
function createRankKey(): RankKey {
  const ranksByObject = new Map<object, Map<PropertyKey, number>>();
  return (parent, key) => {
    if (typeof key === "number") return key;
    if (!isObject(parent)) return Number.POSITIVE_INFINITY;
    let ranks = ranksByObject.get(parent);
    if (!ranks) {
      ranks = new Map(Object.keys(parent).map((name, index) => [name, index] as const));
      ranksByObject.set(parent, ranks);
    }
    return ranks.get(key) ?? Number.POSITIVE_INFINITY;
  };
}

function rankPath(document: unknown, path: Path, rank: RankKey): number[] {
  let at = document;
  return path.map((key) => {
    const parent = at;
    at =
      typeof parent === "object" && parent !== null
        ? (parent as Record<PropertyKey, unknown>)[key]
        : undefined;
    return rank(parent, key);
  });
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  for (const [index, rank] of a.entries()) {
    const other = b[index];
    if (other === undefined) return 1;
    if (rank !== other) return rank - other;
  }
  return a.length - b.length;
}

export const toProblem = (root: string, { path, reason }: ValidationIssue): FieldProblem => ({
  field: formatPath([root, ...path]),
  reason,
});
