/** A value that exists by an invariant which its type cannot carry; throws with this name where it is missing. */
export function required<T>(value: T | null | undefined, name: string): T {
  if (value === null || value === undefined) throw new Error(`${name} is missing`);
  return value;
}

/** The first item of a list that is never empty, such as the only row of a query that always returns one. */
export const firstOf = <T>(list: readonly T[]): T => required(list[0], "the first item");

/** The last item of a list that is never empty. */
export const lastOf = <T>(list: readonly T[]): T => required(list.at(-1), "the last item");

/** The own property of an object whose names are data: `constructor` is none. */
export const ownValue = <T>(values: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(values, name) ? values[name] : undefined;
