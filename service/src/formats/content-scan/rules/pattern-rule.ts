import type { ScanFindingKind, ScanSeverity } from "@stoa/contract";

/** A rule as a regular expression. All gaps are bounded, so that the time is linear in the length of the text. */
export interface PatternRule {
  kind: ScanFindingKind;
  severity: ScanSeverity;
  expression: RegExp;
  /** Each text that the expression matches contains one of these in lower case: they are checked first, because that is cheap. */
  hints: readonly string[];
  reason: string;
  /** Refuses a match that is harmless after all. */
  isHarmless?: (match: RegExpMatchArray) => boolean;
  /** Shown instead of the match. */
  toExcerpt?: (match: RegExpMatchArray) => string;
}

interface PatternOptions extends Omit<PatternRule, "expression"> {
  source: string;
  isCaseSensitive?: true;
}

export const pattern = ({ source, isCaseSensitive, ...rule }: PatternOptions): PatternRule => ({
  ...rule,
  expression: new RegExp(source, isCaseSensitive ? "gmu" : "gimu"),
});
