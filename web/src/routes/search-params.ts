type Given = Record<string, unknown>;

/** `?page=2`; the first page has no parameter. */
export function pageNumber({ page }: Given): { page?: number } {
  const number = Number(page);
  return Number.isInteger(number) && number > 1 && number <= 10_000 ? { page: number } : {};
}

/** `?create=true`: such as a dialog that is open. */
export const flag = <N extends string>(given: Given, name: N): { [name in N]?: true } =>
  String(given[name]) === "true" ? ({ [name]: true } as { [name in N]?: true }) : {};
