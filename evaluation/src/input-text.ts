/** The input of a case as one text: a line for each variable. */
export const toInputText = (input: Record<string, unknown>): string =>
  Object.entries(input)
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join("\n");
