import { sql } from "kysely";
import type { Tx } from "../../platform/db/database.ts";
import { ENTRIES, ENTRY, listDifferences } from "./verification-queries.ts";

/** The expected entries of a completed order `o`. Amounts of 0 have no entry: free copies have none at all. */
const parts = {
  provider_clearing: { owner: "null::uuid", amount: "coalesce(o.processor_fee_minor, 0) - o.total_minor" },
  processor_fees: { owner: "null", amount: "-coalesce(o.processor_fee_minor, 0)" },
  platform_revenue: { owner: "null", amount: "o.fee_minor" },
  tax_payable: { owner: "null", amount: "o.tax_minor" },
  seller: { owner: "o.seller_id", amount: "o.seller_minor" },
  referrer: { owner: "o.referrer_id", amount: "o.commission_minor" },
};
const accounts = Object.keys(parts);
const listed = (texts: string[]) => sql.raw(texts.join(", "));

const PARTS = listed(
  Object.entries(parts).map(([account, { owner, amount }]) => `('${account}', ${owner}, ${amount})`),
);
const AMOUNTS = listed(Object.values(parts).map(({ amount }) => amount));

/** `max` is the only amount of an account; `entries` exposes a second one. */
const POSTED_SALES = sql`
  select t.source_id, e.currency, count(*) as entries, count(e.owner_id) as owned,
         ${listed(accounts.map((account) => `max(e.amount_minor) filter (where e.account = '${account}') as ${account}`))},
         max(e.owner_id::text) filter (where e.account = 'seller') as seller_id,
         max(e.owner_id::text) filter (where e.account = 'referrer') as referrer_id
    from ${ENTRIES} where t.kind = 'sale' group by t.source_id, e.currency`;

/** Comparing one row for each order costs a third of comparing each entry. Only the orders found here are compared entry by entry. */
const SUSPECT_SALES = sql`
  select coalesce(o.id, b.source_id) as id
    from (select * from orders where completed_at is not null) as o
    full join (${POSTED_SALES}) as b on b.source_id = o.id and b.currency = o.currency
   where (${AMOUNTS}) is distinct from (${listed(accounts.map((account) => `coalesce(b.${account}, 0)`))})
      or b.entries <> num_nonnulls(${listed(accounts.map((account) => `b.${account}`))})
      or b.owned <> num_nonnulls(b.seller, b.referrer)
      or (b.seller is not null and b.seller_id is distinct from o.seller_id::text)
      or (b.referrer is not null and b.referrer_id is distinct from o.referrer_id::text)`;

export const listWrongSales = (tx: Tx) =>
  listDifferences(
    tx,
    sql`select 'sale' as kind, o.id as source_id, part.account, part.owner_id, o.currency, part.amount
          from orders o
         cross join lateral (values ${PARTS}) as part (account, owner_id, amount)
         where o.id in (select id from suspects) and o.completed_at is not null and part.amount <> 0`,
    sql`select ${ENTRY} from ${ENTRIES} where t.kind = 'sale' and t.source_id in (select id from suspects)`,
    sql`with suspects as materialized (${SUSPECT_SALES})`,
  );
