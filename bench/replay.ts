import type { Asked } from "@stoa/service/test/statements.ts";

/** A piece of work as a script for pgbench: its statements, and the values that are the same in every turn. */
export interface Replay {
  script: string;
  constants: Record<string, string>;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Writes down what was asked once, for pgbench to ask again and again. `varying` names the values that each turn brings itself; an id
 * that is in none of them was made on the way, and each turn makes another. The first statement of a turn gets all of them.
 */
export function replayOf(
  asked: Asked[],
  { varying, beginning }: { varying: Record<string, string>; beginning: (made: string[]) => string },
): Replay {
  const constants: Record<string, string> = {};
  const names = new Map(Object.entries(varying).map(([name, value]) => [value, name]));
  const made: string[] = [];
  const variableOf = (value: unknown): string => {
    const text = textOf(value);
    if (text === null) return "null";
    const known = names.get(text);
    if (known) return `:${known}`;
    const name = UUID.test(text) ? `made_${made.length}` : `constant_${Object.keys(constants).length}`;
    names.set(text, name);
    if (UUID.test(text)) made.push(name);
    else constants[name] = text;
    return `:${name}`;
  };
  const statements = asked.map(({ text, values }) =>
    statementOf(text.replace(/\$(\d+)/g, (_, place) => variableOf(values[Number(place) - 1]))),
  );
  return { script: [beginning(made), ...statements, ""].join("\n"), constants };
}

/** The receipt's number is the one thing that a later statement takes from what an earlier one answered. */
function statementOf(text: string): string {
  if (/insert into "receipt_counters"/.test(text)) return `${text} \\gset`;
  return `${text.replace(/("receipt_number" = ):\w+/, "$1:last")};`;
}

/** As the driver sends it. */
function textOf(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return `{${value.map((one) => JSON.stringify(String(one))).join(",")}}`;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Without what somebody else on the same database asked meanwhile: their statements, and the transactions around these. */
export function without(asked: Asked[], pattern: RegExp): Asked[] {
  const open = new Map<number, Asked[]>();
  const blocks: Asked[][] = [];
  for (const one of asked) {
    const begun = open.get(one.connection);
    if (begun) begun.push(one);
    else blocks.push([one]);
    if (/^begin/i.test(one.text)) open.set(one.connection, blocks.at(-1)!);
    if (/^(commit|rollback)/i.test(one.text)) open.delete(one.connection);
  }
  return blocks.filter((block) => !block.some(({ text }) => pattern.test(text))).flat();
}
