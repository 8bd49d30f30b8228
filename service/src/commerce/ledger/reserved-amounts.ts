import { sql } from "kysely";
import { LOST_SHARES } from "./shares.ts";

/** The shares of the owner in open refunds of matured orders, beyond what is already refunded or held. */
const amountsOfOpenRefunds = (ownerId: string, now: Date) => sql`
  select o.currency, part.account, part.amount * o.sign as amount
    from (select o.*, point.gone, point.sign from (
            select o.*, o.refunded_minor + coalesce(d.held, 0) as taken, r.asked
              from orders o
              join (select order_id, sum(amount_minor) as asked from refunds
                     where status in ('pending', 'approved', 'processing') group by order_id) as r on r.order_id = o.id
              left join (select order_id, sum(held_minor) as held from disputes
                          where status = 'open' group by order_id) as d on d.order_id = o.id
             where (o.seller_id = ${ownerId} or o.referrer_id = ${ownerId}) and o.matures_at <= ${now}) as o
           cross join lateral (values (o.taken, -1), (least(o.taken + o.asked, o.total_minor), 1)) as point (gone, sign)) as o
   ${LOST_SHARES}
   where part.owner_id = ${ownerId}`;

/** The ledger already contains the held amounts, but not the provider's fee for a lost dispute. */
const feesOfOpenDisputes = (ownerId: string) => sql`
  select o.currency, 'seller' as account, d.fee_minor as amount
    from disputes d join orders o on o.id = d.order_id where d.status = 'open' and o.seller_id = ${ownerId}`;

export const reservedAmounts = (ownerId: string, now: Date) => sql`
  select currency, sum(amount) as reserved, sum(amount) filter (where account = 'referrer') as referrer_reserved
    from (${amountsOfOpenRefunds(ownerId, now)} union all ${feesOfOpenDisputes(ownerId)}) as claims
   group by currency having sum(amount) <> 0`;
