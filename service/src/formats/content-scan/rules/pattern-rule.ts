import type { ScanFindingKind, ScanSeverity } from "@stoa/contract";
import type { Match } from "../finding.ts";

/** A rule as a regular expression. All gaps are bounded, so that the time is linear in the length of the text. */
export interface PatternRule {
  kind: ScanFindingKind;
  severity: ScanSeverity;
  expression: RegExp;
  /** One of these stands in lower case in each text that the expression matches: the cheap question first. */
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

const MAX_MATCHES = 20;

export function findPatterns(text: string, lowerCase: string, rules: readonly PatternRule[]): Match[] {
  return rules.flatMap((rule) =>
    rule.hints.length === 0 || rule.hints.some((hint) => lowerCase.includes(hint))
      ? matchesOf(text, rule)
      : [],
  );
}

function matchesOf(text: string, rule: PatternRule): Match[] {
  const matches: Match[] = [];
  for (const match of text.matchAll(rule.expression)) {
    if (rule.isHarmless?.(match)) continue;
    const { kind, severity, reason, toExcerpt } = rule;
    const place = { from: match.index, to: match.index + match[0].length };
    matches.push({ kind, severity, reason, ...place, ...(toExcerpt && { excerpt: toExcerpt(match) }) });
    if (matches.length === MAX_MATCHES) break;
  }
  return matches;
}
