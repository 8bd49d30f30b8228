import { sql } from "kysely";
import { firstOf, lastOf, required } from "../../core/required.ts";
import type { Vault } from "../../core/vault.ts";
import type { Database, Tx } from "./database.ts";

/** A column of sealed texts with their context, in SQL's spelling. The room that writes it declares it. */
export interface SealedColumn<Bound extends string = string> {
  table: string;
  column: string;
  /** The primary key's columns with their types. */
  key: Record<string, "uuid" | "text" | "date" | "integer">;
  /** The parts of the context: SQL on the row `t`, as text. */
  bound: Record<Bound, string>;
  contextOf(bound: Record<Bound, string>): string;
}

/** Makes the type system require the names of `bound` in `contextOf`. */
export const sealedColumn = <Bound extends string>(column: SealedColumn<Bound>) =>
  column as unknown as SealedColumn;

/** Small, so that each transaction is short. */
const BATCH = 200;

/** The number of texts under each key, also of keys outside of the ring. */
export async function countSealed(
  db: Database,
  columns: readonly SealedColumn[],
): Promise<Map<string, number>> {
  const counts = columns.map(
    ({ table, column }) => sql`
    select split_part(${sql.ref(column)}, '.', 2) as key, count(*) as count
      from ${sql.table(table)} where ${sql.ref(column)} <> '' group by 1`,
  );
  const { rows } = await sql<{ key: string; count: number }>`
    select key, sum(count)::bigint as count from (${sql.join(counts, sql` union all `)}) each group by 1 order by 1`.execute(
    db,
  );
  return new Map(rows.map(({ key, count }) => [key, count]));
}

export interface Rewrapped {
  rewrapped: number;
  /** Unchanged texts: altered, moved to another row, or sealed by a key outside of the ring. */
  refused: number;
}

/** Seals a column's texts under the primary key, while other processes read and write it. */
export async function rewrapColumn(db: Database, vault: Vault, column: SealedColumn): Promise<Rewrapped> {
  const done = { rewrapped: 0, refused: 0 };
  let after: string[] | null = null;
  do {
    const batch = await db.transaction().execute((tx) => rewrapBatch(tx, vault, column, after));
    done.rewrapped += batch.rewrapped;
    done.refused += batch.refused;
    after = batch.endedAt;
  } while (after !== null);
  return done;
}

interface SealedRow {
  key: string[];
  sealed: string;
  bound: Record<string, string>;
}

async function rewrapBatch(tx: Tx, vault: Vault, column: SealedColumn, after: string[] | null) {
  const rows = await lockBatch(tx, firstOf(vault.keyIds), column, after);
  const fresh = rows.flatMap(({ key, sealed, bound }) => {
    try {
      return [{ key, sealed: vault.rewrap(sealed, column.contextOf(bound)) }];
    } catch {
      return [];
    }
  });
  if (fresh.length > 0) await write(tx, column, fresh);
  const refused = rows.length - fresh.length;
  return { rewrapped: fresh.length, refused, endedAt: rows.length < BATCH ? null : lastOf(rows).key };
}

/**
 * Skips locked rows, which the next batch finds: waiting for one while holding others could deadlock. The locks protect
 * the batch until it is written.
 */
async function lockBatch(
  tx: Tx,
  primary: string,
  { table, column, key, bound }: SealedColumn,
  after: string[] | null,
): Promise<SealedRow[]> {
  const names = sql.join(Object.keys(key).map((name) => sql.ref(`t.${name}`)));
  const parts = Object.entries(bound).flatMap(([name, text]) => [
    sql.lit(name),
    sql`(${sql.raw(text)})::text`,
  ]);
  const { rows } = await sql<SealedRow>`
    select array[${sql.join(Object.keys(key).map((name) => sql`${sql.ref(`t.${name}`)}::text`))}] as key,
           ${sql.ref(`t.${column}`)} as sealed, json_build_object(${sql.join(parts)}) as bound
      from ${sql.table(table)} t
     where ${sql.ref(`t.${column}`)} <> '' and split_part(${sql.ref(`t.${column}`)}, '.', 2) <> ${primary}
       and ${after ? sql`(${names}) > (${sql.join(after)})` : sql`true`}
     order by ${names} limit ${sql.lit(BATCH)}
       for no key update of t skip locked`.execute(tx);
  return rows;
}

async function write(
  tx: Tx,
  { table, column, key }: SealedColumn,
  rows: { key: string[]; sealed: string }[],
): Promise<void> {
  const names = Object.keys(key);
  const lists = names.map(
    (name, at) =>
      sql`${sql.val(rows.map((row) => row.key[at]))}::text[]::${sql.raw(required(key[name], `the type of ${name}`))}[]`,
  );
  const isSame = names.map((name) => sql`${sql.ref(`t.${name}`)} = ${sql.ref(`v.${name}`)}`);
  await sql`
    update ${sql.table(table)} t set ${sql.ref(column)} = v.sealed
      from unnest(${sql.join(lists)}, ${sql.val(rows.map(({ sealed }) => sealed))}::text[])
        as v(${sql.join(names.map((name) => sql.ref(name)))}, sealed)
     where ${sql.join(isSame, sql` and `)}`.execute(tx);
}
