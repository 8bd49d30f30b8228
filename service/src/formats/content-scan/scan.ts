import { toLatin } from "./confusables.ts";
import { decodeAll, lineCounter, type OpaquePart, toReadText, type View } from "./decode.ts";
import { isAlarming, type Match, severityRank, type TextFinding } from "./finding.ts";
import { PhraseMatcher } from "./phrases.ts";
import { findCharacters, nameCharacters } from "./rules/characters.ts";
import { deceptionRules } from "./rules/deception.ts";
import { exfiltrationPatterns, exfiltrationPhrases } from "./rules/exfiltration.ts";
import { hiddenMarkupRules } from "./rules/hidden-markup.ts";
import { overrideRules } from "./rules/instruction-override.ts";
import { linkRules, offPlatformPhrases, publicLinkRules, spoofedLinkRules } from "./rules/links.ts";
import { PatternMatcher } from "./rules/pattern-matcher.ts";
import { remoteCodeRules } from "./rules/remote-code.ts";
import { roleForgeryRules } from "./rules/role-forgery.ts";
import { secretRules } from "./rules/secrets.ts";
import { unspacedRules } from "./rules/unspaced-languages.ts";
import { wordClasses } from "./rules/word-classes.ts";
import { splitWords } from "./words.ts";

/** Changes with each rule, so that a stored result says which rules made it. */
export const SCANNER_VERSION = "1";

const MAX_FINDINGS_OF_A_TEXT = 50;
const MAX_EXCERPT_CHARACTERS = 120;

export const patternRules = [
  ...secretRules,
  ...remoteCodeRules,
  ...roleForgeryRules,
  ...hiddenMarkupRules,
  ...exfiltrationPatterns,
  ...spoofedLinkRules,
  ...unspacedRules,
];
const patterns = new PatternMatcher(patternRules);
const links = new PatternMatcher(linkRules);
const publicLinks = new PatternMatcher(publicLinkRules);
const phrases = new PhraseMatcher([...deceptionRules, ...overrideRules, ...exfiltrationPhrases], wordClasses);
const publicPhrases = new PhraseMatcher(offPlatformPhrases, wordClasses);

/** Finds what may harm buyers, sellers or users of a product. Pure, and linear in the length of the text. */
export function scanText(text: string, { isPublic }: { isPublic: boolean }): TextFinding[] {
  const findings = new Map<string, TextFinding>();
  const keyOf = ({ kind, line, reason }: Pick<TextFinding, "kind" | "line" | "reason">) =>
    `${kind} ${line} ${reason}`;
  const add = (finding: TextFinding) => {
    const key = keyOf(finding);
    const known = findings.get(key);
    if (!known || severityRank[finding.severity] < severityRank[known.severity]) findings.set(key, finding);
  };
  const lineAt = lineCounter(text);
  for (const match of findCharacters(text))
    add(toFinding(judgeStyled(match, text), { text, lineAt, encoding: null }));
  const read = toReadText(text);
  const readLineAt = read === text ? lineAt : lineCounter(read);
  const view = { text: read, lineAt: readLineAt, encoding: null };
  for (const match of findInView(view, isPublic)) add(toFinding(match, view));
  const latin = toLatin(read);
  if (latin !== read)
    for (const match of findInView({ ...view, text: latin }, isPublic).filter(isAlarming))
      add(toFinding(match, view));
  const decoded = decodeAll(read, (part) => add(opaqueFinding(part)));
  for (const part of decoded)
    for (const match of findInView(part, false).filter(isAlarming)) {
      const found = toFinding(match, part);
      if (!findings.has(keyOf(found))) add(toEncoded(found, part));
    }
  return withoutRepeats([...findings.values()])
    .toSorted((a, b) => severityRank[a.severity] - severityRank[b.severity] || a.line - b.line)
    .slice(0, MAX_FINDINGS_OF_A_TEXT);
}

function findInView({ text }: View, isPublic: boolean): Match[] {
  const lower = text.toLowerCase();
  const words = splitWords(text);
  return [
    ...patterns.find(text, lower),
    ...phrases.find(words),
    ...(isPublic ? [...publicLinks.find(text, lower), ...publicPhrases.find(words)] : []),
    ...links.find(text, lower),
  ];
}

/** A link that is alarming is not also listed as a harmless one. */
function withoutRepeats(findings: TextFinding[]): TextFinding[] {
  const placeOf = ({ kind, line, excerpt }: TextFinding) => JSON.stringify([kind, line, excerpt]);
  const alarming = new Set(findings.filter(isAlarming).map(placeOf));
  return findings.filter((finding) => isAlarming(finding) || !alarming.has(placeOf(finding)));
}

/** Styled letters are harmless in a heading, and an attack where their plain form is one. */
const judgeStyled = (match: Match, text: string): Match =>
  match.kind === "confusable-characters" &&
  match.severity === "info" &&
  isAttack(text.slice(match.from, match.to))
    ? { ...match, severity: "high" }
    : match;

const isAttack = (text: string): boolean =>
  findInView({ text: text.normalize("NFKC"), lineAt: () => 1, encoding: null }, false).some(isAlarming);

/** The encoding is what makes the content suspicious, except for a secret. */
const toEncoded = (found: TextFinding, { encoding }: View): TextFinding => ({
  ...found,
  kind: found.kind === "secret" ? "secret" : "encoded-payload",
  severity: "high",
  reason: `is hidden by ${encoding}, and ${found.reason}`,
});

const opaqueFinding = ({ line, encoding, length, isProgram }: OpaquePart): TextFinding => ({
  kind: "encoded-payload",
  severity: isProgram ? "high" : "info",
  line,
  excerpt: `${length} characters of ${encoding}`,
  reason: isProgram
    ? "is an encoded program or archive. Attach the file to the product instead"
    : "is encoded data that people cannot read. Attach the file to the product instead, or say what it is",
});

const toFinding = (match: Match, view: View): TextFinding => ({
  kind: match.kind,
  severity: match.severity,
  line: view.lineAt(match.from),
  excerpt: match.excerpt ?? shorten(view.text.slice(match.from, match.to)),
  reason: match.reason,
});

const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

function shorten(text: string): string {
  const line = text
    .trim()
    .replace(/\s+/g, " ")
    .replace(INVISIBLE, (character) => `[${nameCharacters(character)}]`);
  return line.length > MAX_EXCERPT_CHARACTERS
    ? `${line.slice(0, MAX_EXCERPT_CHARACTERS).toWellFormed()}…`
    : line.toWellFormed();
}
