import { RE2JS } from "re2js";

export interface Regex {
  /** Whether some part of the text matches; null if the text is too long for this expression. */
  test(text: string): boolean | null;
}

const MAX_PATTERN = 10_000;
/** Instructions after repeats are expanded: `a{9}` are 9. */
const MAX_PROGRAM = 2_000;
/** Instructions times characters: some two seconds for the worst expressions. */
const MAX_WORK = 100_000_000;
/** JavaScript's `\s`, of which RE2 knows the ASCII part alone. */
const SPACES = String.raw`\t\n\v\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`;
const NOT_SPACES = String.raw`\x00-\x08\x0e-\x1f!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`;
const LINE_ENDS = String.raw`\n\r\x{2028}\x{2029}`;
const NO_LOOKING = "uses a lookahead, lookbehind or backreference, which RE2 does not have";
const TOKEN =
  /\\(?:x[\da-fA-F]{2}|u[\da-fA-F]{4}|c[A-Za-z]|[\s\S]|$)|\(\?(?:<[A-Za-z_]\w*>|<[=!]|[^:]:?|:)?|\[\^?\]?|[\s\S]/gu;

/**
 * Compiles a JavaScript regular expression (without flags) for RE2, whose time is linear in the text. Syntax that RE2
 * does not have, or that both read differently, is refused. A difference remains: `.` and classes match a whole
 * character outside the Basic Multilingual Plane, where JavaScript without the flag `u` matches half of it.
 */
export function compileRegex(pattern: string, flags: "" | "i" = ""): { regex: Regex } | { problem: string } {
  if (pattern.length > MAX_PATTERN)
    return { problem: `has ${pattern.length} characters; at most ${MAX_PATTERN} are allowed` };
  try {
    const compiled = RE2JS.compile(toRe2(pattern), flags === "i" ? RE2JS.CASE_INSENSITIVE : 0);
    const size = compiled.programSize();
    if (size > MAX_PROGRAM)
      return {
        problem: `is too large: ${size} instructions with its repeats; at most ${MAX_PROGRAM} are allowed`,
      };
    return {
      regex: { test: (text) => (text.length * size > MAX_WORK ? null : compiled.matcher(text).find()) },
    };
  } catch (error) {
    return { problem: error instanceof UnsupportedError ? error.message : `is invalid: ${messageOf(error)}` };
  }
}

class UnsupportedError extends Error {}

const messageOf = (error: unknown): string =>
  error instanceof Error
    ? error.message.replace(/^error parsing regexp: |^Invalid regular expression: \/.*\/[a-z]*: /s, "")
    : String(error);

function toRe2(pattern: string): string {
  // Reports what JavaScript refuses, which RE2 may read in another way. Compiling does not execute a match.
  new RegExp(pattern);
  let isInClass = false;
  return pattern.replace(TOKEN, (token: string) => {
    const [first] = token;
    if (first === "\\") return escapeToRe2(token, isInClass);
    if (isInClass) {
      isInClass = token !== "]";
      // RE2 would read `[:alpha:]` inside a class.
      return first === "[" ? token.replaceAll("[", String.raw`\[`) : token;
    }
    if (first === "[") isInClass = true;
    return first === "["
      ? classStart(token)
      : token.startsWith("(?")
        ? groupStart(token)
        : token === "."
          ? `[^${LINE_ENDS}]`
          : token;
  });
}

function classStart(token: string): string {
  if (token.endsWith("]"))
    throw new UnsupportedError(`uses ${token}, which RE2 reads differently; use [\\s\\S] for any character`);
  return token;
}

function groupStart(token: string): string {
  if (token === "(?:" || token === "(?i:" || /^\(\?<[A-Za-z_]/.test(token)) return token;
  throw new UnsupportedError(
    /^\(\?<?[=!]/.test(token)
      ? NO_LOOKING
      : `uses ${token}, which is not supported; use (?:…), (?<name>…) or (?i:…)`,
  );
}

const SAME = /^\\[dDwWtnrfv]$/;

function escapeToRe2(token: string, isInClass: boolean): string {
  const code = token.slice(1);
  if (SAME.test(token)) return token;
  if (code === "s") return isInClass ? SPACES : `[${SPACES}]`;
  if (code === "S") return isInClass ? NOT_SPACES : `[${NOT_SPACES}]`;
  if (code === "b" || code === "B") return isInClass ? String.raw`\x08` : token;
  if (code === "0") return String.raw`\x00`;
  if (code.length > 1 && code[0] !== "c") return `\\x{${code.slice(1)}}`;
  if (/^[\d]$|^k$/.test(code)) throw new UnsupportedError(NO_LOOKING);
  if (/^[A-Za-z]/.test(code)) throw new UnsupportedError(`uses ${token}, which is not supported here`);
  return /^[\x20-\x7e]$/.test(code) ? token : code;
}
