/**
 * `reason` completes a sentence about the expression: `reads a field that is not there`. It never quotes a value: the data belongs to the
 * user who runs the workflow, not to its author.
 */
export class EvaluationError extends Error {
  readonly reason: string;

  constructor(reason: string) {
    super(reason);
    this.name = "EvaluationError";
    this.reason = reason;
  }
}

const OVERLOAD = /^found no matching overload for '([\w.+\-*/%!<>=&|?:@[\]]+)' applied to '(.*)'$/s;
const TYPES = /^[\w.(), <>]*$/;

/** The library's messages quote values, so only the kind of error is reported. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [
    /^(no such |field .*not found|unresolved attribute)/s,
    "reads a name that does not exist: check it with has() first",
  ],
  [/^index .* out of bounds/s, "reads past the end of a list or a text"],
  [/(divide|modulus) by zero$/, "divides by zero"],
  [
    /^(u?int overflow|duration out of range|.*outside.*range)/s,
    "computes a number or a time that is too large",
  ],
  [/^type mismatch: expected bool/, "uses a value that is not true or false as a condition"],
  [/^type mismatch: iterable/, "iterates over a value that is not a list or map"],
  [/^map key conflict/, "creates a map with the same key twice"],
  [/^unsupported key type/, "creates a map with a key that is not a text, whole number or bool"],
  [
    /^(Unable to convert|Failed to|Cannot convert|invalid )/,
    "converts a value that does not match the target type",
  ],
  [/^error parsing regexp|RE2|regexp/i, "has an invalid regular expression"],
  [/^Maximum call stack/, "is nested too deep"],
  [/^Invalid string length/, "creates a text that is too long"],
];

export function toReason(message: string): string {
  const [, operation, types] = OVERLOAD.exec(message) ?? [];
  if (types !== undefined && TYPES.test(types)) return `cannot do ${operation} with ${types}`;
  return REASONS.find(([pattern]) => pattern.test(message))?.[1] ?? "cannot be evaluated with these values";
}
