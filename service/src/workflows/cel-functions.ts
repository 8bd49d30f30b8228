import type { CelFunc, CelList } from "@bufbuild/cel";
import type { Library } from "./cel.ts";
import { EvaluationFault } from "./evaluation-fault.ts";

/** Of the library, but not of the language: what it makes has no JSON, and no limit of memory. */
export const LEFT_OUT = "bytes";

/**
 * What stands in the place of the library's own, or beside it. JSON knows one kind of numbers, so that whether 10 is
 * an int or a double is chance: arithmetic takes both together. The library's lists and replace() take quadratic time.
 */
export function addedFunctions(library: Library): CelFunc[] {
  const { celFunc, celList, celMethod, listType } = library;
  const { STRING, INT, DYN, BYTES } = library.CelScalar;
  const LIST = listType(DYN);
  return [
    ...mixedArithmetic(library),
    celFunc("_+_", [LIST, LIST], LIST, (left: CelList, right: CelList) => celList([...left, ...right])),
    celFunc("size", [STRING], INT, sizeOf),
    celMethod("size", STRING, [], INT, function () {
      return sizeOf(this);
    }),
    celFunc(LEFT_OUT, [STRING], BYTES, () => {
      throw new EvaluationFault(`uses ${LEFT_OUT}(), whose values have no JSON`);
    }),
    celMethod("replace", STRING, [STRING, STRING], STRING, function (from, to) {
      return this.replaceAll(from, () => to);
    }),
    celMethod("replace", STRING, [STRING, STRING, INT], STRING, function (from, to, count) {
      return replaceSome(this, from, to, Number(count));
    }),
  ];
}

const operations: Record<string, (left: number, right: number) => number> = {
  "_+_": (left, right) => left + right,
  "_-_": (left, right) => left - right,
  "_*_": (left, right) => left * right,
  "_/_": (left, right) => left / right,
};

function mixedArithmetic({ celFunc, CelScalar: { INT, DOUBLE } }: Library): CelFunc[] {
  return Object.entries(operations).flatMap(([name, operation]) => [
    celFunc(name, [INT, DOUBLE], DOUBLE, (left, right) => operation(Number(left), right)),
    celFunc(name, [DOUBLE, INT], DOUBLE, (left, right) => operation(left, Number(right))),
  ]);
}

/** In characters as people count them, not in halves of surrogate pairs. */
function sizeOf(text: string): bigint {
  let size = 0n;
  for (const _ of text) size++;
  return size;
}

function replaceSome(text: string, from: string, to: string, count: number): string {
  let left = count < 0 ? Number.POSITIVE_INFINITY : count;
  return text.replaceAll(from, (found) => (left-- > 0 ? to : found));
}
