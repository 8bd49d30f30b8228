import { toUuid } from "../../core/ids.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { deleteNames, listByName, listOwnIds } from "./queries.ts";

/**
 * The products that the ids of a file stand for: a product of the author's own by its id, or by a name that an import
 * of theirs has used. Anybody else's id is a name like any other, so that it tells nobody what exists.
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

/** Of an account that closes: what its owner called their products is theirs alone. */
export const deleteImportNames = (tx: Tx, authorId: string) => deleteNames(tx, authorId);
