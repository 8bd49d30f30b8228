import { type RawBuilder, sql } from "kysely";
import { DAY_MS } from "../../core/dates.ts";
import type { Queries } from "../../platform/db/database.ts";
import type { ChargedTable } from "./charge-queries.ts";

/** A final loss is reported for this time. */
const REPORTED_FOR_MS = 30 * DAY_MS;

interface OpenRow {
  kind: string;
  state: string;
  count: number;
  oldestAt: Date;
  oldestId: string;
  dueAt: Date | null;
}

/** Groups open rows by kind and state. Each row counts in one state: a problem is a state of its own. */
export async function countOpen(db: Queries, now: Date): Promise<OpenRow[]> {
  const lossesSince = new Date(now.getTime() - REPORTED_FOR_MS);
  const parts = [
    openCharges("order", "orders"),
    openCharges("plan payment", "subscriptionPayments"),
    unusablePlanPayments,
    openRefunds,
    openPayouts,
    openOrderDisputes(lossesSince),
    openPlanDisputes(lossesSince),
    unappliedDisputes,
    debtsOfClosedAccounts,
  ];
  const { rows } = await sql<OpenRow>`
    select kind, state, count(*), min(since) as "oldestAt", (array_agg(id order by since, id))[1] as "oldestId", min(due) as "dueAt"
      from (${sql.join(parts, sql` union all `)}) as open
     group by kind, state`.execute(db);
  return rows;
}

// Each part selects (kind, state, since, id, due) and reads a short index of open rows.

/** `created_at`, because each request to the provider moves `asked_at`. */
const openCharges = (kind: string, table: ChargedTable): RawBuilder<unknown> => sql`
  select ${sql.lit(kind)} as kind, status as state, created_at as since, id, null::timestamptz as due
    from ${sql.table(table)} where status in ('pending', 'requires_action') and mismatch is null
  union all
  select ${sql.lit(kind)}, 'mismatched', created_at, id, null from ${sql.table(table)} where mismatch is not null`;

const unusablePlanPayments = sql`
  select 'plan payment', 'unusable', created_at, id, null
    from subscription_payments where unusable_payment_id is not null`;

const openRefunds = sql`
  select 'refund', status, coalesce(decided_at, created_at), id, null
    from refunds where status in ('pending', 'approved', 'processing')
  union all
  select 'refund', 'returned', returned_at, id, null
    from refunds where returned_at is not null and settled_at is null`;

const openPayouts = sql`
  select 'payout', case when waits_for is null then status else 'waits_for_balance' end, created_at, id, null
    from payouts where status in ('pending', 'in_transit')
  union all
  select 'payout', 'reversed', completed_at, id, null
    from payouts where status = 'completed' and reversed_minor > 0`;

const openOrderDisputes = (lossesSince: Date): RawBuilder<unknown> => sql`
  select 'dispute', status, opened_at, order_id, answer_by
    from disputes where status in ('inquiry', 'open')
  union all
  select 'dispute', 'lost_in_excess', closed_at, order_id, null
    from disputes where excess_minor > 0 and closed_at > ${lossesSince}`;

const openPlanDisputes = (lossesSince: Date): RawBuilder<unknown> => sql`
  select 'plan dispute', status, opened_at, payment_id, answer_by
    from subscription_disputes where status in ('inquiry', 'open')
  union all
  select 'plan dispute', 'lost', closed_at, payment_id, null
    from subscription_disputes where status = 'lost' and closed_at > ${lossesSince}`;

const unappliedDisputes = sql`
  select case when order_id is null then 'plan dispute' else 'dispute' end, 'unapplied', since, coalesce(order_id, payment_id), null
    from unapplied_disputes`;

const debtsOfClosedAccounts = sql`
  select 'balance', 'owed_by_closed_account', closed_at, id, null
    from users u
   where closed_at is not null
     and exists (select from ledger_entries e
                  where e.owner_id = u.id and e.account in ('seller', 'referrer')
                  group by e.currency having sum(e.amount_minor) < 0)`;
