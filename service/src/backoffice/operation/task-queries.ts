import { sql } from "kysely";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { countRows, offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";

export type TaskKind = "backup" | "ledger_verification";

export interface TaskRow {
  id: string;
  kind: TaskKind;
  step: string;
  done: number;
  total: number;
  startedAt: Date;
  renewedAt: Date;
  endedAt: Date | null;
  error: string | null;
  result: Record<string, unknown>;
}

const tasks = (db: Queries, kind: TaskKind) => db.selectFrom("operatorTasks").where("kind", "=", kind);

/** undefined: one of this kind runs. */
export const insertTask = (
  tx: Tx,
  { id, kind, step, now }: { id: string; kind: TaskKind; step: string; now: Date },
) =>
  tx
    .insertInto("operatorTasks")
    .values({ id, kind, step, startedAt: now, renewedAt: now })
    .onConflict((conflict) => conflict.column("kind").where("endedAt", "is", null).doNothing())
    .returningAll()
    .$castTo<TaskRow>()
    .executeTakeFirst();

export const failAbandonedTasks = (
  tx: Tx,
  { before, now, error }: { before: Date; now: Date; error: string },
) =>
  tx
    .updateTable("operatorTasks")
    .set({ endedAt: now, error })
    .where("endedAt", "is", null)
    .where("renewedAt", "<", before)
    .execute();

/** The newest, since the one that ran may have ended meanwhile. */
export const findRunningTask = (db: Queries, kind: TaskKind) =>
  tasks(db, kind).selectAll().orderBy("id", "desc").limit(1).$castTo<TaskRow>().executeTakeFirst();

export const findTask = (db: Queries, kind: TaskKind, id: string) =>
  tasks(db, kind).selectAll().where("id", "=", id).$castTo<TaskRow>().executeTakeFirst();

export async function listTasks(db: Queries, kind: TaskKind, paging: Paging): Promise<Page<TaskRow>> {
  const items = await tasks(db, kind)
    .selectAll()
    .orderBy("id", "desc")
    .limit(paging.limit)
    .offset(offsetOf(paging))
    .$castTo<TaskRow>()
    .execute();
  return { items, ...(await countRows(db, tasks(db, kind).select("id"))) };
}

/** Of the last backup that succeeded, in bytes. */
export async function findLastBackupSize(db: Queries): Promise<number | null> {
  const row = await tasks(db, "backup")
    .select(sql<number>`(result ->> 'size')::bigint`.as("size"))
    .where("endedAt", "is not", null)
    .where("error", "is", null)
    .orderBy("id", "desc")
    .limit(1)
    .executeTakeFirst();
  return row?.size ?? null;
}

/** null: only shows that its process lives. */
export const updateTaskProgress = (
  db: Queries,
  id: string,
  progress: { step: string; done: number; total: number } | null,
  now: Date,
) =>
  db
    .updateTable("operatorTasks")
    .set({ ...progress, renewedAt: now })
    .where("id", "=", id)
    .where("endedAt", "is", null)
    .execute();

export const endTask = (
  db: Queries,
  id: string,
  { result, error, now }: { result: object; error: string | null; now: Date },
) =>
  db
    .updateTable("operatorTasks")
    .set({ endedAt: now, error, result: JSON.stringify(result) })
    .where("id", "=", id)
    .where("endedAt", "is", null)
    .execute();

export const deleteTask = (tx: Tx, id: string) =>
  tx.deleteFrom("operatorTasks").where("id", "=", id).where("endedAt", "is not", null).executeTakeFirst();
