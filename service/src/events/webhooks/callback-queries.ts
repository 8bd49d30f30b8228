import type { CallbackType } from "@stoa/contract";
import { sql } from "kysely";
import type { Queries, Tx } from "../../platform/db/database.ts";

export async function findCallback(db: Queries, userId: string, url: string): Promise<string | undefined> {
  const row = await db
    .selectFrom("webhookEndpoints")
    .select("id")
    .where("userId", "=", userId)
    .where("url", "=", url)
    .where("isCallback", "=", true)
    .where("deletedAt", "is", null)
    .executeTakeFirst();
  return row?.id;
}

export interface NewCallback {
  id: string;
  userId: string;
  url: string;
  signsAs: string | null;
  types: CallbackType[];
  now: Date;
}

/** An endpoint always has a queue. */
export const insertCallback = (tx: Tx, { id, userId, url, signsAs, types, now }: NewCallback) =>
  sql`
    with endpoint as (
      insert into webhook_endpoints (id, user_id, url, description, event_types, signature_content, signature_prefix,
                                     is_callback, signs_as, created_at, updated_at)
      values (${id}, ${userId}, ${url}, '', ${types}, 'timestamp_body', false, true, ${signsAs}, ${now}, ${now}) returning id)
    insert into webhook_queues (endpoint_id, user_id) select id, ${userId} from endpoint`.execute(tx);

export const enableCallback = (tx: Tx, id: string, now: Date) =>
  sql`
    update webhook_endpoints
       set disabled_by = null, failing_since = null, failed_deliveries = 0, emailed_day = 0, updated_at = ${now}
     where id = ${id} and disabled_by is not null`.execute(tx);
