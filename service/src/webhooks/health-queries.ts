import type { Queries, Tx } from "../db/database.ts";

export interface FailingRow {
  id: string;
  userId: string;
  url: string;
  failingSince: Date;
  failedDeliveries: number;
  toldDay: number;
}

const enabled = (db: Queries) =>
  db.selectFrom("webhook_endpoints").where("deleted_at", "is", null).where("disabled_by", "is", null);

/** Endpoints without a success since a moment. */
export const listFailing = (db: Queries, since: Date) =>
  enabled(db).select("id").where("failing_since", "<=", since).orderBy("id").execute();

/** As it stands now that its lane is locked; undefined where it took something meanwhile. */
export const findFailing = (tx: Tx, id: string): Promise<FailingRow | undefined> =>
  enabled(tx)
    .select(["id", "user_id as userId", "url", "failing_since as failingSince"])
    .select(["failed_deliveries as failedDeliveries", "told_day as toldDay"])
    .where("id", "=", id)
    .where("failing_since", "is not", null)
    .$castTo<FailingRow>()
    .executeTakeFirst();

/** Unless it has moved from there, or was switched off. */
export const findToDisable = (tx: Tx, id: string, url: string) =>
  enabled(tx)
    .select(["id", "user_id as userId", "url"])
    .where("id", "=", id)
    .where("url", "=", url)
    .executeTakeFirst();
