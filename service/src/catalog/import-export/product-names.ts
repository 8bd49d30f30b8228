import { toUuid } from "../../core/ids.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { deleteNames, listByName, listOwnIds } from "./queries.ts";

/**
 * Maps the ids of a file to the author's products, by product id or by a name of an earlier import. Another author's id
 * is treated as a new name, so that the result does not reveal whether it exists.
 */
export async function findProductsByName(
  db: Queries,
  authorId: string,
  names: string[],
): Promise<Map<string, string>> {
  const byId = new Map(names.flatMap((name) => entryOf(name)));
  const own = new Set(await listOwnIds(db, authorId, [...byId.values()]));
  const known = new Map(
    (await listByName(db, authorId, names)).map(({ name, productId }) => [name, productId]),
  );
  for (const [name, id] of byId) if (own.has(id)) known.set(name, id);
  return known;
}

function entryOf(name: string): [string, string][] {
  const id = toUuid("prod", name);
  return id ? [[name, id]] : [];
}

/** On account closed: the names are the owner's data. */
export const deleteImportNames = (tx: Tx, authorId: string) => deleteNames(tx, authorId);
