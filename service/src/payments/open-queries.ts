import { sql } from "kysely";
import type { Queries } from "../db/database.ts";

interface OpenRow {
  kind: string;
  state: string;
  count: number;
  oldestAt: Date;
}

/** Each part reads the index of what is open, which is short. */
export async function countOpen(db: Queries): Promise<OpenRow[]> {
  const { rows } = await sql<OpenRow>`
    select 'order' as kind, status as state, count(*), min(created_at) as "oldestAt"
      from orders where status in ('pending', 'requires_action') group by status
    union all
    select 'plan payment', status, count(*), min(created_at)
      from subscription_payments where status in ('pending', 'requires_action') group by status
    union all
    select 'refund', status, count(*), min(created_at)
      from refunds where status in ('pending', 'approved', 'processing') group by status
    union all
    select 'payout', status, count(*), min(created_at)
      from payouts where status in ('pending', 'in_transit') group by status`.execute(db);
  return rows;
}
