/**
 * `reason` completes a sentence about the expression: `reads a field that is not there`. It never quotes a value: the
 * data belongs to the user who runs the workflow, and its author must not see it.
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
  [/^(no such |field .*not found|unresolved attribute)/s, "reads a name that is not there: ask has() first"],
  [/^index .* out of bounds/s, "reads past the end of a list or a text"],
  [/(divide|modulus) by zero$/, "divides by zero"],
  [/^(u?int overflow|duration out of range|.*outside.*range)/s, "makes a number or a time that is too large"],
  [/^type mismatch: expected bool/, "needs true or false where it has something else"],
  [/^type mismatch: iterable/, "goes through what is no list and no map"],
  [/^map key conflict/, "makes a map with the same key twice"],
  [/^unsupported key type/, "makes a map with a key that is no text, whole number or bool"],
  [/^(Unable to convert|Failed to|Cannot convert|invalid )/, "turns a text or number into what it is not"],
  [/^error parsing regexp|RE2|regexp/i, "has a regular expression that cannot be read"],
  [/^Maximum call stack/, "is nested too deep"],
  [/^Invalid string length/, "makes a text that is too long"],
];

export function toReason(message: string): string {
  const [, operation, types] = OVERLOAD.exec(message) ?? [];
  if (types !== undefined && TYPES.test(types)) return `cannot do ${operation} with ${types}`;
  return REASONS.find(([pattern]) => pattern.test(message))?.[1] ?? "cannot be evaluated with these values";
}
