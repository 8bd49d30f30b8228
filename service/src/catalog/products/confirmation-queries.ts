import type { Context } from "../../core/context.ts";

/** A product on sale, with what a cached detail of it does not have. */
export interface ConfirmedProduct {
  /** The place of the question, from 1. */
  question: number;
  id: string;
  authorId: string;
  entitled: boolean;
  /** The versions of all rows from which the detail is rendered. */
  stamp: string;
  views: number;
  purchases: number;
  ratingSum: number;
  ratingCount: number;
}

/**
 * Row versions by `xmin`, which every change of a row replaces, also one by an operator. Left out are products whose
 * detail has more than the stamp covers: a score card, or a try-out with its count.
 * The subselects hide the number of questions from the planner. Otherwise PostgreSQL plans the statement at each use, which takes
 * ten times as long as running it.
 */
const CONFIRM_PRODUCTS = {
  name: "confirm_products",
  text: `
  select q.question::int, p.id, p.author_id as "authorId", e.order_id is not null as entitled,
         s.views, s.purchases, s.rating_sum as "ratingSum", s.rating_count as "ratingCount",
         concat_ws(' ', p.xmin, u.xmin,
                   (select v.xmin from product_versions v where v.product_id = p.id order by v.numbers desc limit 1),
                   (select string_agg(c.xmin::text, ',' order by c.numbers) from product_scans c
                     where c.product_id = p.id)) as stamp
    from unnest((select $1::uuid[]), (select $2::uuid[])) with ordinality as q (product_id, reader_id, question)
    join products p on p.id = q.product_id
    join users u on u.id = p.author_id
    join product_stats s on s.product_id = p.id
    left join entitlements e on e.product_id = p.id and e.buyer_id = q.reader_id and e.status = 'active'
   where p.status = 'published' and u.banned_at is null
     and not exists (select from try_outs t where t.product_id = p.id)
     and not exists (select from evaluations a where a.product_id = p.id)`,
};

export async function confirmProducts(
  { pool }: Context,
  questions: { productId: string; readerId: string | null }[],
): Promise<ConfirmedProduct[]> {
  const values = [questions.map(({ productId }) => productId), questions.map(({ readerId }) => readerId)];
  const { rows } = await pool.query<ConfirmedProduct>({ ...CONFIRM_PRODUCTS, values });
  return rows;
}
