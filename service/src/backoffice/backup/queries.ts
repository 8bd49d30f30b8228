import type pg from "pg";
import { deferPackage } from "../../core/defer-package.ts";

export const pgCopyStreams = deferPackage<typeof import("pg-copy-streams")>("pg-copy-streams");

/** A table without generated columns. */
export interface Table {
  /** Schema and name as a quoted SQL identifier. */
  name: string;
  columns: string[];
  /** A condition that limits the copied rows. */
  where?: string;
}

const SCHEMAS = ["public", "fake_provider"];
/** A restore creates its own: they describe the tables and functions of its database. */
const MIGRATION_TABLES = ["schema_migrations", "schema_functions"];

/**
 * Requested and unfinished jobs, whose transactions have committed. The scheduler requests scheduled jobs again; other
 * tables belong to the queue.
 */
const JOBS = "pgboss.job";
const OPEN_JOBS = `where state < 'completed' and name not like '\\_\\_pgboss\\_\\_%'
  and name not in (select name from pgboss.schedule)`;

const TABLES_SQL = `
  select format('%I.%I', n.nspname, c.relname) as name,
         array_agg(quote_ident(a.attname) order by a.attnum) as columns
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
   where case when n.nspname = 'pgboss' then c.relname = 'job'
              else n.nspname = any ($1) and c.relkind = 'r' and c.relname <> all ($2) end
     and not exists (select from pg_depend d
                      where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
   group by n.nspname, c.relname
   order by n.nspname, c.relname`;

/** Our tables, and the jobs that must not be lost. Extensions create their own tables. */
export async function listTables(client: pg.ClientBase): Promise<Table[]> {
  const { rows } = await client.query<Table>(TABLES_SQL, [SCHEMAS, MIGRATION_TABLES]);
  return rows.map((table) => (table.name === JOBS ? { ...table, where: OPEN_JOBS } : table));
}

export async function lockTables(client: pg.ClientBase, tables: Table[], mode: string): Promise<void> {
  if (tables.length > 0)
    await client.query(`lock table ${tables.map(({ name }) => name).join(", ")} in ${mode} mode`);
}

const selectSql = ({ name, where = "" }: Table, columns: string) => `select ${columns} from ${name} ${where}`;

export const copyToSql = (table: Table) => `copy (${selectSql(table, table.columns.join(", "))}) to stdout`;

export const copyFromSql = ({ name, columns }: Table) => `copy ${name} (${columns.join(", ")}) from stdin`;

export async function countRows(client: pg.ClientBase, table: Table): Promise<number> {
  const { rows } = await client.query(selectSql(table, "count(*) as count"));
  return rows[0].count;
}

export async function hasRows(client: pg.ClientBase, table: Table): Promise<boolean> {
  const { rows } = await client.query(`select exists (${selectSql(table, "")}) as found`);
  return rows[0].found;
}

export const deleteRows = (client: pg.ClientBase, { name, where = "" }: Table) =>
  client.query(`delete from ${name} ${where}`);

export interface Sequence {
  name: string;
  next: string;
}

/** Read after the rows: a sequence may be ahead of the snapshot, and never behind it. */
export async function listSequences(client: pg.ClientBase): Promise<Sequence[]> {
  const { rows } = await client.query<Sequence>(
    `select format('%I.%I', schemaname, sequencename) as name,
            coalesce(last_value + increment_by, start_value)::text as next
       from pg_sequences where schemaname = any ($1) order by 1`,
    [SCHEMAS],
  );
  return rows;
}

/** Transactional, unlike `setval`. */
export const restartSequence = (client: pg.ClientBase, { name, next }: Sequence) =>
  client.query(`alter sequence ${name} restart with ${BigInt(next)}`);

export async function readQueueVersion(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query("select version from pgboss.version");
  return rows[0].version;
}

export interface ForeignKey {
  table: string;
  name: string;
  definition: string;
}

export async function listForeignKeys(client: pg.ClientBase): Promise<ForeignKey[]> {
  const { rows } = await client.query<ForeignKey>(
    `select format('%I.%I', n.nspname, r.relname) as table, quote_ident(c.conname) as name,
            pg_get_constraintdef(c.oid) as definition
       from pg_constraint c
       join pg_class r on r.oid = c.conrelid
       join pg_namespace n on n.oid = r.relnamespace
      where c.contype = 'f' and n.nspname = any ($1)
      order by r.oid, c.oid`,
    [SCHEMAS],
  );
  return rows;
}

export const dropForeignKey = (client: pg.ClientBase, { table, name }: ForeignKey) =>
  client.query(`alter table ${table} drop constraint ${name}`);

/** Checks all rows. */
export const addForeignKey = (client: pg.ClientBase, { table, name, definition }: ForeignKey) =>
  client.query(`alter table ${table} add constraint ${name} ${definition}`);

/** Only our own triggers, which the owner may disable; those of foreign keys need a superuser. */
export const switchTriggers = (client: pg.ClientBase, { name }: Table, to: "disable" | "enable") =>
  client.query(`alter table ${name} ${to} trigger user`);
