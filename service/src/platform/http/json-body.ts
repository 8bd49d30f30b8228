import { ApiError, invalidRequest } from "../../core/errors.ts";

/** Levels of arrays and objects in a request. */
export const MAX_DEPTH = 64;
/** Members of objects and elements of arrays together. A schema takes up to 10 µs for each, and the process waits. */
export const MAX_MEMBERS = 2_000;
const OPEN = new Set([0x5b, 0x7b]);
const CLOSE = new Set([0x5d, 0x7d]);
const COMMA = 0x2c;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Checks the bytes before parsing, so that no shape can block the process; null: no problem. */
export function findShapeProblem(bytes: Buffer, maxMembers: number): string | null {
  let depth = 0;
  let members = 0;
  let inString = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (inString) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) inString = false;
    } else if (byte === QUOTE) inString = true;
    else if (byte === COMMA) members++;
    else if (OPEN.has(byte)) {
      // An array or object that is not empty has one member more than commas.
      members++;
      if (++depth > MAX_DEPTH) return `is nested deeper than ${MAX_DEPTH} levels`;
    } else if (CLOSE.has(byte)) depth--;
    if (members > maxMembers)
      return `has more than ${maxMembers.toLocaleString("en")} members and elements together`;
  }
  return null;
}

export const isTooDeep = (bytes: Buffer): boolean =>
  findShapeProblem(bytes, Number.POSITIVE_INFINITY) !== null;

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw invalidRequest("body", "is not valid UTF-8");
  }
}

const findTextProblem = (text: string): string | null =>
  text.includes("\0")
    ? "must not contain NUL characters"
    : text.isWellFormed()
      ? null
      : "must not contain half of a surrogate pair";

const pathTo = (path: string, key: string | number) =>
  typeof key === "number" ? `${path}[${key}]` : path ? `${path}.${key}` : key;

/** Refuses text that PostgreSQL cannot store unchanged, and names that would change a prototype. */
export function mustBeStorable(value: unknown, root: string, path = ""): void {
  if (typeof value === "string") {
    const why = findTextProblem(value);
    if (why) throw invalidRequest(path || root, why);
  } else if (Array.isArray(value)) {
    value.forEach((item, index) => {
      mustBeStorable(item, root, pathTo(path, index));
    });
  } else if (typeof value === "object" && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      if (key === "__proto__") throw invalidRequest(pathTo(path, key), "is not a name that can be used");
      if (findTextProblem(key))
        throw invalidRequest(path || root, "has a name with characters that cannot be stored");
      mustBeStorable(item, root, pathTo(path, key));
    }
  }
}

const isJson = (contentType: string | undefined) =>
  /^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(contentType ?? "");

/**
 * Parses a request body: JSON, UTF-8, at most 64 deep, with a bound on its members; of duplicate keys the last counts. No body
 * and no Content-Type is undefined, as action POSTs are sent.
 */
export function parseJsonBody(
  bytes: Buffer,
  contentType: string | undefined,
  maxMembers = MAX_MEMBERS,
): unknown {
  if (bytes.length === 0) return undefined;
  if (!isJson(contentType))
    throw new ApiError("UNSUPPORTED_MEDIA_TYPE", "The body must be application/json.");
  const fault = findShapeProblem(bytes, maxMembers);
  if (fault) throw invalidRequest("body", fault);
  const text = decode(bytes);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalidRequest("body", "is not valid JSON");
  }
  mustBeStorable(value, "body");
  return value;
}
