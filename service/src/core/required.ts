/** For values that exist by an invariant which the type system cannot express. */
export function required<T>(value: T | null | undefined, name: string): T {
  if (value === null || value === undefined) throw new Error(`${name} is missing`);
  return value;
}

/** For lists that are never empty. */
export const firstOf = <T>(list: readonly T[]): T => required(list[0], "the first item");

export const lastOf = <T>(list: readonly T[]): T => required(list.at(-1), "the last item");

/** Ignores inherited properties such as `constructor`. */
export const ownValue = <T>(values: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(values, name) ? values[name] : undefined;
