import type { CelInput, CelMap, CelResult, CelValue } from "@bufbuild/cel";
import type { CelLibrary } from "./cel.ts";
import { EvaluationError } from "./evaluation-error.ts";

/** Deeper than any definition, variable or response that the API accepts. */
const MAX_DEPTH = 100;
export const MAX_RESULT_CHARACTERS = 2 * 1024 * 1024;
/** The approximate length of a number, a bracket or a name. */
const PART_CHARACTERS = 8;

/** Whole numbers become ints, so that `input.parts + 1` and `list[index]` work. */
export function toCelValue(value: unknown, depth = 0): CelInput {
  if (depth > MAX_DEPTH) throw new EvaluationError(`reads a value nested deeper than ${MAX_DEPTH} levels`);
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof value !== "object" || value === null) return value as string | boolean | null;
  if (Array.isArray(value)) return value.map((item) => toCelValue(item, depth + 1));
  // A Map: an object would find names such as `constructor` in its prototype.
  return new Map(Object.entries(value).map(([name, item]) => [name, toCelValue(item, depth + 1)]));
}

/** Counts while writing, because a repeated text takes no memory before. `toText` formats times and durations. */
export function createJsonWriter(library: CelLibrary, toText: (value: CelValue) => CelResult) {
  return (value: CelValue): unknown => {
    let left = MAX_RESULT_CHARACTERS;
    const spend = (characters: number) => {
      left -= characters + PART_CHARACTERS;
      if (left < 0) throw new EvaluationError(`returns more than ${MAX_RESULT_CHARACTERS} characters`);
    };
    return writeValue(value, { library, toText, spend, depth: 0 });
  };
}

interface WriteState {
  library: CelLibrary;
  toText(value: CelValue): CelResult;
  spend(characters: number): void;
  depth: number;
}

function writeValue(value: CelValue, outer: WriteState): unknown {
  const { isCelList, isCelMap, isCelUint } = outer.library;
  const writing = { ...outer, depth: outer.depth + 1 };
  if (writing.depth > MAX_DEPTH)
    throw new EvaluationError(`returns a value nested deeper than ${MAX_DEPTH} levels`);
  writing.spend(typeof value === "string" ? value.length : 0);
  if (value === null || typeof value === "boolean") return value;
  if (typeof value === "string") return writeText(value);
  if (typeof value === "number") return writeNumber(value);
  if (typeof value === "bigint") return writeInteger(value);
  if (isCelUint(value)) return writeInteger(value.value);
  if (isCelList(value)) return Array.from(value, (item) => writeValue(item, writing));
  if (isCelMap(value)) return writeMap(value, writing);
  const text = value instanceof Uint8Array ? null : writing.toText(value);
  if (typeof text === "string") return text;
  throw new EvaluationError("returns a value that JSON cannot represent, such as a type");
}

function writeMap(map: CelMap, writing: WriteState): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  for (const [key, item] of map) {
    const name = String(writeValue(key, writing));
    if (name === "__proto__") throw new EvaluationError("returns an object with a name that cannot be used");
    if (Object.hasOwn(object, name)) throw new EvaluationError("returns an object with the same name twice");
    object[name] = writeValue(item, writing);
  }
  return object;
}

/** Replaces a surrogate pair cut by substring(): failing a paid run would be worse. */
function writeText(text: string): string {
  if (text.includes("\0")) throw new EvaluationError("returns a text with a NUL character");
  return text.toWellFormed();
}

function writeNumber(number: number): number {
  if (Number.isFinite(number)) return number;
  throw new EvaluationError("returns a number that JSON cannot represent, such as after a division by 0.0");
}

function writeInteger(integer: bigint): number {
  const number = Number(integer);
  if (Number.isSafeInteger(number)) return number;
  throw new EvaluationError("returns a whole number past 2^53, which JSON cannot represent: use string()");
}
