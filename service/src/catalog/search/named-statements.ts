import { createHash } from "node:crypto";
import type { Context } from "../../core/context.ts";

/** A rare statement costs more prepared than not. */
const SENT_BEFORE = 5;
/** PostgreSQL stores every named statement per connection, and takes some 100 bytes for each character. */
const MAX_NAMED_CHARACTERS = 200_000;
const MAX_COUNTED = 1_000;

const counts = new Map<string, number>();
const names = new Map<string, string>();
let namedCharacters = 0;

/** undefined: sent too rarely, or too many others have a name. */
function nameOf(text: string): string | undefined {
  const known = names.get(text);
  if (known !== undefined || namedCharacters + text.length > MAX_NAMED_CHARACTERS) return known;
  const count = (counts.get(text) ?? 0) + 1;
  if (counts.size >= MAX_COUNTED) counts.clear();
  counts.set(text, count);
  if (count <= SENT_BEFORE) return undefined;
  const name = `list_${createHash("sha256").update(text).digest("hex").slice(0, 16)}`;
  counts.delete(text);
  names.set(text, name);
  namedCharacters += text.length;
  return name;
}

/**
 * Hides a value of a named statement from the planner, as SQL. Otherwise PostgreSQL expects the plan for all values to
 * cost more than one for these, and plans the statement anew at each use.
 */
export const hideFromPlanner = (value: string): string => `(select ${value})`;

/**
 * A named statement saves planning, which costs more than running a list. Only for queries whose one plan fits all
 * values: after five runs PostgreSQL fixes the plan, and a good plan depends on the filter's value.
 */
export async function runStatement<Row extends object>(
  ctx: Context,
  text: string,
  values: unknown[],
  isNamed = false,
): Promise<Row[]> {
  const name = isNamed ? nameOf(text) : undefined;
  const { rows } = await ctx.pool.query<Row>({ ...(name !== undefined && { name }), text, values });
  return rows;
}
