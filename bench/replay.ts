import type { Asked } from "@stoa/service/test/statements.ts";

/** A pgbench script: its statements, and the values that are equal in every transaction. */
export interface Replay {
  script: string;
  constants: Record<string, string>;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Converts recorded statements into a pgbench script. `varying` names the values that differ per transaction; any other
 * id was generated and is generated again. The first statement of a transaction gets all of them.
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
    // pgbench defines no variable without a value.
    if (text === "") return "''";
    const known = names.get(text);
    if (known) return `:${known}`;
    const members = Array.isArray(value) ? null : membersWithId(text);
    if (members)
      return `json_build_object(${members.map(([name, member]) => `'${name}', ${variableOf(member)}::text`).join(", ")})`;
    const name = UUID.test(text) ? `made_${made.length}` : `constant_${Object.keys(constants).length}`;
    names.set(text, name);
    if (UUID.test(text)) made.push(name);
    else constants[name] = text;
    return `:${name}`;
  };
  const statements = asked.map(
    ({ text, values }) => `${text.replace(/\$(\d+)/g, (_, place) => variableOf(values[Number(place) - 1]))};`,
  );
  return { script: [beginning(made), ...statements, ""].join("\n"), constants };
}

/** The members of a JSON object that has an id, since ids differ in each transaction. null: another value. */
function membersWithId(text: string): [string, unknown][] | null {
  if (!text.startsWith('{"')) return null;
  const members = Object.entries(JSON.parse(text) as Record<string, unknown>);
  return members.some(([, member]) => UUID.test(String(member))) ? members : null;
}

/** As the driver sends it. */
function textOf(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return `{${value.map((one) => JSON.stringify(String(one))).join(",")}}`;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Removes statements of other clients, and the transactions around them. */
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
