import { type PatternRule, pattern } from "./pattern-rule.ts";

const COMMENT =
  "is in a comment that pages do not show, but models read it. Remove it, or write it where buyers see it";
const HIDDEN_ELEMENT =
  "is in an element that pages do not show, but models read it. Remove it, or write it where buyers see it";

/** Words with which a text speaks to a model or about its user; code comments have few of them. */
const ADDRESSES_MODEL =
  /\b(?:ai|assistants?|agents?|llms?|claude|gpt|chatgpt|gemini|copilot|model|bot|system prompt|you|your|users?|customers?)\b/i;
const COMMANDS =
  /\b(?:ignore|always|never|must|execute|run|insert|recommend|reply|respond|append|send|forward|store|read|tell|claim|praise|approve|flag|mention|skip|secretly|instructions?|hidden|lie|admin|download|backdoor|grant|obey|include|(?:do not|don't) (?:mention|tell|flag|show|reveal|say|ask|inform|report|log|disclose|warn))\b/i;

const FORBIDS = /\b(?:(?:do not|don't) (?:flag|tell|mention|report|warn|reveal)|backdoor|secretly|ignore)\b/i;

const commandsModel = (text: string): boolean => COMMANDS.test(text.normalize("NFKC"));

/** A comment of a program may contain a command, too, but it speaks to nobody. */
const speaksToModel = (text: string): boolean => {
  const folded = text.normalize("NFKC");
  return COMMANDS.test(folded) && (ADDRESSES_MODEL.test(folded) || FORBIDS.test(folded));
};

interface HiddenText {
  source: string;
  hints: string[];
  reason: string;
  isAlarming: (inner: string) => boolean;
}

const comment = (source: string, ...hints: string[]): HiddenText => ({
  source,
  hints,
  reason: COMMENT,
  isAlarming: speaksToModel,
});
const element = (source: string, ...hints: string[]): HiddenText => ({
  source,
  hints,
  reason: HIDDEN_ELEMENT,
  isAlarming: commandsModel,
});

/** The named group `inner` holds the hidden text. */
const HIDDEN_TEXTS: readonly HiddenText[] = [
  comment(String.raw`<!--(?<inner>(?:(?!-->)[\s\S]){0,2000})`, "<!--"),
  comment(String.raw`^\s{0,3}\[[^\]\n]{1,40}\]:\s{0,4}(?:<>|#)\s{0,4}[("'](?<inner>[^\n]{0,500})[)"']`, "]:"),
  element(
    String.raw`<\w{1,12}\b[^>\n]{0,120}?\sstyle\s?=\s?["'][^"'\n]{0,200}?(?:display\s?:\s?none|visibility\s?:\s?hidden|font-size\s?:\s?[01](?:px|pt|em|%)?\s?(?:[;"']|$)|opacity\s?:\s?0(?:\.0\d?)?\s?(?:[;"']|$)|(?:left|top|text-indent)\s?:\s?-\d{3,}|color\s?:\s?(?:#fff(?:fff)?|white|transparent)\b|width\s?:\s?0|clip\s?:)[^>\n]{0,200}?>(?<inner>[^<]{1,500})`,
    "style",
  ),
  element(
    String.raw`<\w{1,12}\s(?:[^>\n]{0,80}\s)?hidden(?:\s?=\s?["']?\w{0,12}["']?)?(?:\s[^>\n]{0,80})?>(?<inner>[^<]{1,500})`,
    "hidden",
  ),
  element(
    String.raw`<(?:template|noscript|noembed)\b[^>\n]{0,80}>(?<inner>[^<]{1,500})`,
    "<template",
    "<noscript",
    "<noembed",
  ),
];

const rulesOf = ({ source, hints, reason, isAlarming }: HiddenText): PatternRule[] => [
  pattern({
    kind: "html-comment",
    severity: "high",
    source,
    hints,
    reason,
    isHarmless: ({ groups }) => !isAlarming(groups?.["inner"] ?? ""),
  }),
  pattern({
    kind: "html-comment",
    severity: "info",
    source,
    hints,
    reason,
    isHarmless: ({ groups }) => isAlarming(groups?.["inner"] ?? ""),
  }),
];

export const hiddenMarkupRules: readonly PatternRule[] = HIDDEN_TEXTS.flatMap(rulesOf);
