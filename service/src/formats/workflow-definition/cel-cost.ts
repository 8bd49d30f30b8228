import type { CelFunc, CelList, CelValue } from "@bufbuild/cel";
import { required } from "../../core/required.ts";
import type { Call, CelLibrary, Comprehension, Expr } from "./cel.ts";
import { EvaluationError } from "./evaluation-error.ts";

/** Visited nodes: about 50 ms, enough for two nested loops over 200 items each. */
const MAX_COST = 750_000;
/** Copying and searching text is far cheaper than visiting nodes, except for adversarial patterns. */
const CHARACTERS_PER_VISIT = 50;
const COMPARISONS_PER_VISIT = 100;
const VISITS_PER_DIGIT = 10;

const EACH_FUNCTION = "@each";
const APPEND_FUNCTION = "@append";

/**
 * Ends an evaluation at the same point on any machine. A time limit alone cannot: a text search is one uninterruptible operation, and a
 * heap overflow in one step kills the process.
 */
export class CostMeter {
  #left = MAX_COST;

  reset(): void {
    this.#left = MAX_COST;
  }

  spend(work: number): void {
    this.#left -= work;
    // Thrown, not returned: in CEL, `error || true` is true.
    if (this.#left < 0)
      throw new EvaluationError("exceeds the cost limit of an expression: split it into several steps");
  }
}

/** Each call pays before it runs and again for its result. Expanded macros use the two additional functions. */
export function createMeteredFunctions(
  library: CelLibrary,
  functions: readonly CelFunc[],
  meter: CostMeter,
): CelFunc[] {
  const { celFunc, celList, listType, CelScalar } = library;
  const { DYN, INT } = CelScalar;
  const LIST = listType(DYN);
  const weightOf = createWeigher(library);
  const each = celFunc(EACH_FUNCTION, [DYN, INT], DYN, (range) => range);
  return [
    ...functions.map((func) => meterFunction(func, weightOf, meter)),
    withCall(each, (_id, _target, [range, nodes]) => {
      meter.spend(weightOf(range) * Number(nodes));
      return range;
    }),
    celFunc(APPEND_FUNCTION, [LIST, LIST], LIST, createAppender(celList)),
  ];
}

/** An exception of `call` ends the evaluation. An exception of the function becomes a CEL error, and `error || true` is true. */
const withCall = (func: CelFunc, call: CelFunc["call"]): CelFunc =>
  Object.create(func, { call: { value: call } });

type Weigher = (value: CelValue | undefined) => number;

function createWeigher({ isCelList, isCelMap }: CelLibrary): Weigher {
  return (value) => {
    if (typeof value === "string") return value.length / CHARACTERS_PER_VISIT;
    return typeof value === "object" && (isCelList(value) || isCelMap(value)) ? value.size : 0;
  };
}

function meterFunction(func: CelFunc, weightOf: Weigher, meter: CostMeter): CelFunc {
  if (FREE_FUNCTIONS.includes(func.name)) return func;
  const extraCost = extraCosts[func.name];
  return withCall(func, (id, target, args) => {
    let work = 1 + weightOf(target);
    for (const arg of args) work += weightOf(arg);
    if (extraCost) work += extraCost(target ?? args[0], args[0]);
    meter.spend(work);
    const result = func.call(id, target, args);
    if (result !== undefined) meter.spend(weightOf(result as CelValue));
    return result;
  });
}

type ExtraCost = (text: CelValue | undefined, pattern: CelValue | undefined) => number;

/** The worst case, such as `aaba` in a text of `a`. */
const comparisonCost: ExtraCost = (text, pattern) => {
  if (typeof text !== "string" || typeof pattern !== "string" || pattern.length > text.length) return 0;
  return (pattern.length * (text.length - pattern.length + 1)) / COMPARISONS_PER_VISIT;
};
/** Bounds texts with more digits than any number has. */
const digitCost: ExtraCost = (text) => (typeof text === "string" ? text.length * VISITS_PER_DIGIT : 0);

/** Costs beyond reading each argument once. */
const extraCosts: Record<string, ExtraCost> = {
  contains: comparisonCost,
  indexOf: comparisonCost,
  lastIndexOf: comparisonCost,
  split: comparisonCost,
  replace: comparisonCost,
  int: digitCost,
  uint: digitCost,
};
/** These functions do not read their arguments' contents. */
const FREE_FUNCTIONS = ["size", "type", "dyn"];

/** `map` and `filter` append to a list without other references, so it grows in place. */
function createAppender(celList: CelLibrary["celList"]) {
  const arrays = new WeakMap<CelList, CelValue[]>();
  return (list: CelList, more: CelList): CelList => {
    const array = arrays.get(list);
    if (array) {
      array.push(...more);
      return list;
    }
    const items = [...list, ...more];
    const own = celList(items);
    arrays.set(own, items);
    return own;
  };
}

/** Makes macros pay for all iterations before the first. Changes the tree and returns its number of nodes. */
export function meterLoops(library: CelLibrary, expr: Expr | undefined): number {
  if (!expr) return 0;
  const { exprKind } = expr;
  const count = (...inner: (Expr | undefined)[]) =>
    inner.reduce((sum, one) => sum + meterLoops(library, one), 1);
  if (exprKind.case === "selectExpr") return count(exprKind.value.operand);
  if (exprKind.case === "callExpr") return countCall(exprKind.value, count);
  if (exprKind.case === "listExpr") return count(...exprKind.value.elements);
  if (exprKind.case === "structExpr") {
    return count(
      ...exprKind.value.entries.flatMap(({ keyKind, value }) =>
        keyKind.case === "mapKey" ? [keyKind.value, value] : [value],
      ),
    );
  }
  return exprKind.case === "comprehensionExpr" ? countLoop(library, exprKind.value, count) : 1;
}

type CountNodes = (...inner: (Expr | undefined)[]) => number;

function countCall(call: Call, count: CountNodes): number {
  const [first] = call.args;
  const isResult = first?.exprKind.case === "identExpr" && first.exprKind.value.name.startsWith("@");
  if (call.function === "_+_" && isResult) call.function = APPEND_FUNCTION;
  return count(call.target, ...call.args);
}

function countLoop(library: CelLibrary, loop: Comprehension, count: CountNodes): number {
  const nodes = count(loop.loopCondition, loop.loopStep);
  const range = required(loop.iterRange, "the range of a loop");
  const inRange = count(range);
  const paid = required(library.parse(`each(0, ${nodes})`).expr, "the parsed call");
  const call = paid.exprKind.value as Call;
  call.function = EACH_FUNCTION;
  call.args[0] = range;
  loop.iterRange = paid;
  // Counts the body once: each iteration pays for it at run time.
  return inRange + nodes;
}
