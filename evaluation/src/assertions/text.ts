import { distance } from "fastest-levenshtein";
import { parseList } from "../parse-list.ts";
import { compileRegex } from "../regex.ts";
import { type Finding, quote, type Subject, UndecidableError } from "./finding.ts";
import { isDeepEqual } from "./json.ts";

type Fold = (text: string) => string;
const asIs: Fold = (text) => text;
const lowerCase: Fold = (text) => text.toLowerCase();

export function equals({ text, value }: Subject): Finding {
  const isMet = typeof value === "object" ? equalsJson(text, value) : String(value) === text;
  return { isMet, fact: `The output ${isMet ? "equals" : "does not equal"} ${quote(asText(value))}.` };
}

function equalsJson(text: string, value: unknown): boolean {
  try {
    return isDeepEqual(JSON.parse(text), value);
  } catch {
    return false;
  }
}

const asText = (value: unknown): string =>
  typeof value === "object" ? JSON.stringify(value) : String(value);

function containsOne({ text, value }: Subject, fold: Fold): Finding {
  const searched = singleText(value);
  const isMet = fold(text).includes(fold(searched));
  return { isMet, fact: `The output ${isMet ? "contains" : "does not contain"} ${quote(searched)}.` };
}

function singleText(value: unknown): string {
  if (typeof value === "number" || (typeof value === "string" && value !== "")) return String(value);
  throw new UndecidableError("The value must be a text that is not empty, or a number.");
}

function listOf(value: unknown): string[] {
  if (typeof value === "string" && value !== "") return parseList(value);
  if (Array.isArray(value)) return value.map(String);
  throw new UndecidableError("The value must be a list of texts, or a text with commas.");
}

function containsAnyOf({ text, value }: Subject, fold: Fold): Finding {
  const folded = fold(text);
  const found = listOf(value).find((item) => folded.includes(fold(item)));
  if (found === undefined) return { isMet: false, fact: "The output contains none of the values." };
  return { isMet: true, fact: `The output contains ${quote(found)}.` };
}

function containsAllOf({ text, value }: Subject, fold: Fold): Finding {
  const folded = fold(text);
  const missing = listOf(value).filter((item) => !folded.includes(fold(item)));
  if (missing.length === 0) return { isMet: true, fact: "The output contains all values." };
  return { isMet: false, fact: `The output does not contain ${missing.slice(0, 3).map(quote).join(", ")}.` };
}

export const contains = (subject: Subject): Finding => containsOne(subject, asIs);
export const icontains = (subject: Subject): Finding => containsOne(subject, lowerCase);
export const containsAny = (subject: Subject): Finding => containsAnyOf(subject, asIs);
export const icontainsAny = (subject: Subject): Finding => containsAnyOf(subject, lowerCase);
export const containsAll = (subject: Subject): Finding => containsAllOf(subject, asIs);
export const icontainsAll = (subject: Subject): Finding => containsAllOf(subject, lowerCase);

export function startsWith({ text, value }: Subject): Finding {
  const prefix = stringOf(value);
  const isMet = text.startsWith(prefix);
  return { isMet, fact: `The output ${isMet ? "starts" : "does not start"} with ${quote(prefix)}.` };
}

export function regex({ text, value }: Subject): Finding {
  const compiled = compileRegex(stringOf(value));
  if ("problem" in compiled) throw new UndecidableError(`The regular expression ${compiled.problem}.`);
  const isMet = compiled.regex.test(text);
  if (isMet === null) throw new UndecidableError("The output is too long for this regular expression.");
  return { isMet, fact: `The output ${isMet ? "matches" : "does not match"} ${quote(stringOf(value))}.` };
}

function stringOf(value: unknown): string {
  if (typeof value === "string" && value !== "") return value;
  throw new UndecidableError("The value must be a text that is not empty.");
}

const DEFAULT_EDITS = 5;

export function levenshtein({ text, value, threshold = DEFAULT_EDITS }: Subject): Finding {
  if (typeof value !== "string") throw new UndecidableError("The value must be a text.");
  // The distance is at least the difference of the lengths. This bounds the work for a long output.
  const atLeast = Math.abs(text.length - value.length);
  if (atLeast > threshold)
    return {
      isMet: false,
      fact: `The output is at least ${atLeast} edits from the value; the threshold is ${threshold}.`,
    };
  const edits = distance(text, value);
  return {
    isMet: edits <= threshold,
    fact: `The output is ${edits} edits from the value; the threshold is ${threshold}.`,
  };
}
