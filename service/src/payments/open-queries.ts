import { sql } from "kysely";
import type { Queries } from "../db/database.ts";

interface OpenRow {
  kind: string;
  state: string;
  count: number;
  oldestAt: Date;
  oldestId: string;
  /** The nearest date by which somebody must have answered; null: none is known. */
  dueAt: Date | null;
}

/**
 * Each part reads the index of what is open, which is short. What is on its way counts from when it was decided on: `asked_at` moves
 * with every time that the provider is asked again.
 */
export async function countOpen(db: Queries): Promise<OpenRow[]> {
  const { rows } = await sql<OpenRow>`
    select kind, state, count(*), min(since) as "oldestAt", (array_agg(id order by since, id))[1] as "oldestId", min(due) as "dueAt"
      from (
      select 'order' as kind, status as state, created_at as since, id, null::timestamptz as due
        from orders where status in ('pending', 'requires_action')
      union all
      select 'plan payment', status, created_at, id, null
        from subscription_payments where status in ('pending', 'requires_action')
      union all
      select 'refund', status, coalesce(decided_at, created_at), id, null
        from refunds where status in ('pending', 'approved', 'processing')
      union all
      select 'payout', status, created_at, id, null
        from payouts where status in ('pending', 'in_transit')
      union all
      select 'dispute', status, opened_at, order_id, answer_by
        from disputes where status = 'open'
    ) as open group by kind, state`.execute(db);
  return rows;
}
