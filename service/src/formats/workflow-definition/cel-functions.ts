import type { CelFunc, CelList } from "@bufbuild/cel";
import type { CelLibrary } from "./cel.ts";
import { createTimeMethods } from "./cel-time.ts";
import { EvaluationError } from "./evaluation-error.ts";

/** Excluded from the language: the result has no JSON and no memory limit. */
export const EXCLUDED_FUNCTION = "bytes";
const MAX_REPLACED_CHARACTERS = 8 * 1024 * 1024;

/**
 * Arithmetic accepts int and double together, because JSON has one kind of number. The other functions replace library functions of
 * quadratic time.
 */
export function createCustomFunctions(library: CelLibrary): CelFunc[] {
  const { celFunc, celList, celMethod, listType } = library;
  const { STRING, INT, DYN, BYTES } = library.CelScalar;
  const LIST = listType(DYN);
  return [
    ...mixedArithmetic(library),
    ...createTimeMethods(library),
    celFunc("_+_", [LIST, LIST], LIST, (left: CelList, right: CelList) => celList([...left, ...right])),
    celFunc("size", [STRING], INT, countCharacters),
    celMethod("size", STRING, [], INT, function () {
      return countCharacters(this);
    }),
    celFunc(EXCLUDED_FUNCTION, [STRING], BYTES, () => {
      throw new EvaluationError(`uses ${EXCLUDED_FUNCTION}(), whose values have no JSON`);
    }),
    celMethod("lowerAscii", STRING, [], STRING, function () {
      return this.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
    }),
    celMethod("upperAscii", STRING, [], STRING, function () {
      return this.replace(/[a-z]+/g, (letters) => letters.toUpperCase());
    }),
    celMethod("replace", STRING, [STRING, STRING], STRING, function (from, to) {
      return replaceText(this, from, to, Number.POSITIVE_INFINITY);
    }),
    celMethod("replace", STRING, [STRING, STRING, INT], STRING, function (from, to, count) {
      return replaceText(this, from, to, count < 0n ? Number.POSITIVE_INFINITY : Number(count));
    }),
  ];
}

const operations: Record<string, (left: number, right: number) => number> = {
  "_+_": (left, right) => left + right,
  "_-_": (left, right) => left - right,
  "_*_": (left, right) => left * right,
  "_/_": (left, right) => left / right,
};

function mixedArithmetic({ celFunc, CelScalar: { INT, DOUBLE } }: CelLibrary): CelFunc[] {
  return Object.entries(operations).flatMap(([name, operation]) => [
    celFunc(name, [INT, DOUBLE], DOUBLE, (left, right) => operation(Number(left), right)),
    celFunc(name, [DOUBLE, INT], DOUBLE, (left, right) => operation(left, Number(right))),
  ]);
}

/** Counts Unicode characters, not UTF-16 code units. */
const countCharacters = (text: string) =>
  BigInt(text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0));

function replaceText(text: string, from: string, to: string, count: number): string {
  const times = Math.min(count, text.split(from).length);
  if (text.length + times * to.length > MAX_REPLACED_CHARACTERS)
    throw new EvaluationError("creates a text that is too long");
  let left = count;
  return text.replaceAll(from, (found) => (left-- > 0 ? to : found));
}
