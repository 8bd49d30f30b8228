import { sql } from "kysely";
import { DAY_MS } from "../../core/dates.ts";
import type { Queries } from "../../platform/db/database.ts";

/** What is lost for good is reported for so long. */
const REPORTED_FOR_MS = 30 * DAY_MS;

interface OpenRow {
  kind: string;
  state: string;
  count: number;
  oldestAt: Date;
  oldestId: string;
  /** The nearest deadline for an answer; null: none is known. */
  dueAt: Date | null;
}

/**
 * Each part reads an index of what is open, which is short. What is wrong with a row is a state of its own, so that nothing counts
 * twice. What is on its way counts from when it was decided on: `asked_at` moves with every time that the provider is asked again.
 */
export async function countOpen(db: Queries, now: Date): Promise<OpenRow[]> {
  const lately = new Date(now.getTime() - REPORTED_FOR_MS);
  const { rows } = await sql<OpenRow>`
    select kind, state, count(*), min(since) as "oldestAt", (array_agg(id order by since, id))[1] as "oldestId", min(due) as "dueAt"
      from (
      select 'order' as kind, status as state, created_at as since, id, null::timestamptz as due
        from orders where status in ('pending', 'requires_action') and mismatch is null
      union all
      select 'order', 'mismatched', created_at, id, null from orders where mismatch is not null
      union all
      select 'plan payment', status, created_at, id, null
        from subscription_payments where status in ('pending', 'requires_action') and mismatch is null
      union all
      select 'plan payment', 'mismatched', created_at, id, null from subscription_payments where mismatch is not null
      union all
      select 'plan payment', 'unusable', created_at, id, null from subscription_payments where unusable_payment_id is not null
      union all
      select 'refund', status, coalesce(decided_at, created_at), id, null
        from refunds where status in ('pending', 'approved', 'processing')
      union all
      select 'refund', 'returned', returned_at, id, null
        from refunds where returned_at is not null and settled_at is null
      union all
      select 'payout', case when waits_for is null then status else 'waits_for_balance' end, created_at, id, null
        from payouts where status in ('pending', 'in_transit')
      union all
      select 'payout', 'reversed', completed_at, id, null
        from payouts where status = 'completed' and reversed_minor > 0
      union all
      select 'dispute', status, opened_at, order_id, answer_by
        from disputes where status in ('inquiry', 'open')
      union all
      select case when order_id is null then 'plan dispute' else 'dispute' end, 'unapplied', since, coalesce(order_id, payment_id), null
        from unapplied_disputes
      union all
      select 'dispute', 'lost_in_excess', closed_at, order_id, null
        from disputes where excess_minor > 0 and closed_at > ${lately}
      union all
      select 'plan dispute', status, opened_at, payment_id, answer_by
        from subscription_disputes where status in ('inquiry', 'open')
      union all
      select 'plan dispute', 'lost', closed_at, payment_id, null
        from subscription_disputes where status = 'lost' and closed_at > ${lately}
      union all
      select 'balance', 'owed_by_closed_account', closed_at, id, null
        from users u
       where closed_at is not null
         and exists (select from ledger_entries e
                      where e.owner_id = u.id and e.account in ('seller', 'referrer')
                      group by e.currency having sum(e.amount_minor) < 0)
    ) as open group by kind, state`.execute(db);
  return rows;
}
