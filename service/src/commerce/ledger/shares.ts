import { sql } from "kysely";

/** As splitRefund reckons it: the same share of `part` as `some` is of `whole`, a half rounded up. */
const proportion = (part: string, some: string, whole: string) =>
  sql.raw(
    `case ${part} when 0 then 0 else div(2 * (${part})::numeric * (${some}) + (${whole}), 2 * (${whole})::numeric) end`,
  );

/**
 * To be joined to rows `o`, an order each with an amount `gone` of its total: a row `part (account, owner_id, amount)` for everybody who
 * shares in the order, by what they lose of it once so much is gone.
 */
export const LOST_SHARES = sql`
  cross join lateral (select ${proportion("o.tax_minor", "o.gone", "o.total_minor")} as tax) as t
  cross join lateral (select o.gone - t.tax as net, o.total_minor - o.tax_minor as whole) as n
  cross join lateral (select ${proportion("o.fee_minor", "n.net", "n.whole")} as fee) as f
  cross join lateral (
    select ${proportion("o.commission_minor", "n.net - f.fee", "n.whole - o.fee_minor")} as commission) as c
  cross join lateral (values
    ('platform_revenue', null::uuid, f.fee),
    ('tax_payable', null, t.tax),
    ('seller', o.seller_id, n.net - f.fee - c.commission),
    ('referrer', o.referrer_id, c.commission)) as part (account, owner_id, amount)`;
