import { sql } from "kysely";
import type { Tx } from "../../platform/db/database.ts";
import { eachColumn, saleSums } from "../ledger/sales-sums.ts";
import { type Sums, startOfMonth, toSums } from "./range-sums-queries.ts";

/** UTC days. */
export interface DayRange {
  from: Date;
  until: Date;
}

/** Reads whole months from month sums and the other days from day sums. */
function cells({ from, until }: DayRange) {
  const isFirst = startOfMonth(from).getTime() === from.getTime();
  const [first, last] = [isFirst ? from : startOfMonth(from, 1), startOfMonth(until)];
  return sql`
    select * from sales_cells_now
     where scope = 'all' and grain = 'month' and starts_at >= ${first} and starts_at < ${last}
    union all
    select * from sales_cells_now
     where scope = 'all' and grain = 'day' and starts_at >= ${from} and starts_at < ${until}
       and not (starts_at >= ${first} and starts_at < ${last})`;
}

const SUM_COLUMNS = eachColumn((name) => `sum(${name})::text as ${name}`);

export async function sumMarket(tx: Tx, days: DayRange): Promise<Map<string, Sums>> {
  const { rows } = await sql<Record<string, string> & { currency: string }>`
    select currency, ${SUM_COLUMNS} from (${cells(days)}) as cell group by currency order by currency`.execute(
    tx,
  );
  return new Map(rows.map((row) => [row.currency, toSums(row, saleSums)]));
}

export interface SellerSums extends Sums {
  currency: string;
  id: string;
  name: string;
}

export async function listTopSellers(tx: Tx, days: DayRange, limit: number): Promise<SellerSums[]> {
  const { rows } = await sql<Record<string, string> & { currency: string; id: string; name: string }>`
    select ranked.*, u.name
      from (select currency, seller_id as id, ${SUM_COLUMNS},
                   row_number() over (partition by currency order by sum(gross) desc, sum(sales) desc, seller_id) as rank
              from (${cells(days)}) as cell group by currency, seller_id having sum(sales) > 0) as ranked
      join users u on u.id = ranked.id
     where rank <= ${limit} order by currency, rank`.execute(tx);
  return rows.map((row) => ({
    currency: row.currency,
    id: row.id,
    name: row.name,
    ...toSums(row, saleSums),
  }));
}
