type Given = Record<string, unknown>;

/** `?page=2`; the first page has no parameter. */
export function pageNumber({ page }: Given): { page?: number } {
  const number = Number(page);
  return Number.isInteger(number) && number > 1 && number <= 10_000 ? { page: number } : {};
}

/** `?create=true`: such as a dialog that is open. */
export const flag = <N extends string>(given: Given, name: N): { [name in N]?: true } =>
  String(given[name]) === "true" ? ({ [name]: true } as { [name in N]?: true }) : {};

/** A text of the address, cut to `max`; absent if there is none. */
export const textOf = (value: unknown, max: number): string | undefined =>
  typeof value === "string" || typeof value === "number"
    ? String(value).trim().slice(0, max) || undefined
    : undefined;

/** Sets only what is there, so that addresses stay short. */
export const defined = <T extends object>(fields: T): T =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;

export const oneOf = <T extends string>(value: unknown, values: readonly T[]): T | undefined =>
  values.find((one) => one === value);

/** The texts of an address as they are, for a page whose module checks them when it has loaded. */
export const rawSearch = <T extends object>({ page, ...given }: Given): T =>
  ({
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => typeof value === "string")),
    ...pageNumber({ page }),
  }) as T;
