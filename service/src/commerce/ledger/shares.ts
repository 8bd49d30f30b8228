import { sql } from "kysely";

/** Same formula as `splitRefund`: `part` × `some` / `whole`, rounded half up. */
const proportion = (part: string, some: string, whole: string) =>
  sql.raw(
    `case ${part} when 0 then 0 else div(2 * (${part})::numeric * (${some}) + (${whole}), 2 * (${whole})::numeric) end`,
  );

/**
 * Joins to orders `o` with an amount `gone` of their total. Adds a row `part (account, owner_id, amount)` for each share: its part of that
 * amount.
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
