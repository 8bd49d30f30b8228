import { readFileSync } from "node:fs";
import type { Pool, PoolClient } from "pg";
import {
  type Account,
  type Charge,
  type Dispute,
  declineCodeOf,
  type FakeStore,
  failureCodeOf,
  PAGE_SIZE,
  type Payout,
  type Refund,
} from "./store.ts";

/** Creates the schema `fake_provider` if missing, under a lock for parallel starts. */
export async function createSchema(pool: Pool): Promise<void> {
  await inTransaction(pool, async (client) => {
    await client.query("select pg_advisory_xact_lock(hashtext('fake_provider'))");
    const { rows } = await client.query("select to_regclass('fake_provider.disputes') is not null as exists");
    if (!rows[0].exists) await client.query(readFileSync(new URL("../schema.sql", import.meta.url), "utf8"));
  });
}

/** Stores all data in the schema `fake_provider`, so that it survives restarts, as at a real provider. */
export async function openPostgresStore(pool: Pool): Promise<FakeStore> {
  await createSchema(pool);
  const charges = tableOf<Charge>("charges", "order_id");
  const refunds = tableOf<Refund>("refunds", "refund_id");
  const payouts = tableOf<Payout>("payouts", "payout_id");
  const accounts = tableOf<Account>("accounts", "owner_id");
  const disputes = tableOf<Dispute>("disputes", "charge_id");
  return {
    insertOrGet: (charge) => charges.insertOrGet(pool, charge),
    find: (id) => charges.find(pool, "id", id),
    findByOrder: (orderId) => charges.find(pool, "order_id", orderId),
    setState: (id, ending) =>
      charges.change(pool, id, "requires_action", {
        state: ending.state,
        decline_code: declineCodeOf(ending),
      }),
    insertRefund: (refund) =>
      inTransaction(pool, async (client) => {
        // Parallel refunds of a charge wait, so that each sees the current rest.
        await client.query(LOCK_CHARGE, [refund.chargeId]);
        const earlier = await refunds.find(client, "refund_id", refund.refundId);
        if (earlier) return earlier;
        const { rows } = await client.query<{ left: number | string }>(LEFT_OF_CHARGE, [refund.chargeId]);
        return refund.amountMinor > BigInt(rows[0]!.left) ? null : refunds.insertOrGet(client, refund);
      }),
    findRefund: (refundId) => refunds.find(pool, "refund_id", refundId),
    moveRefund: (id, from, move) =>
      refunds.change(pool, id, from, { state: move.state, failure_code: failureCodeOf(move) }),
    insertPayout: (payout) => payouts.insertOrGet(pool, payout),
    findPayout: (payoutId) => payouts.find(pool, "payout_id", payoutId),
    movePayout: (id, from, move) =>
      payouts.change(pool, id, from, { state: move.state, failure_code: failureCodeOf(move) }),
    insertAccount: (account) => accounts.insertOrGet(pool, account),
    findAccount: (id) => accounts.find(pool, "id", id),
    enableAccount: (id) => accounts.change(pool, id, "restricted", { state: "enabled" }),
    insertDispute: async (dispute) => {
      await disputes.insertOrGet(pool, dispute);
    },
    findDispute: (id) => disputes.find(pool, "id", id),
    findDisputeOf: (chargeId) => disputes.find(pool, "charge_id", chargeId),
    closeDispute: (id, state) => disputes.change(pool, id, "open", { state }),
    listUndecided: async () => ({
      disputes: await disputes.list(pool, "open"),
      refunds: await refunds.list(pool, "processing"),
      payouts: await payouts.list(pool, "in_transit"),
    }),
    list: (kind, since, afterId) =>
      ({ charges, refunds, disputes, payouts })[kind].page(pool, since, afterId) as Promise<never>,
  };
}

const LOCK_CHARGE = "select from fake_provider.charges where id = $1 for update";

const LEFT_OF_CHARGE = `
  select c.amount_minor - coalesce(sum(r.amount_minor), 0)::bigint as left
    from fake_provider.charges c
    left join fake_provider.refunds r on r.charge_id = c.id and r.state <> 'failed'
   where c.id = $1
   group by c.id`;

type Connection = Pool | PoolClient;

/** A table with one row per key. Columns are the fields in snake_case. */
function tableOf<Row extends object>(name: string, key: string) {
  const table = `fake_provider.${name}`;
  const find = async (db: Connection, column: string, value: string): Promise<Row | null> => {
    const { rows } = await db.query(`select * from ${table} where ${column} = $1`, [value]);
    return rows[0] ? toRow<Row>(rows[0]) : null;
  };
  return {
    find,
    async list(db: Connection, state: string): Promise<Row[]> {
      const { rows } = await db.query(`select * from ${table} where state = $1 order by created_at, id`, [
        state,
      ]);
      return rows.map((row) => toRow<Row>(row));
    },
    async page(db: Connection, since: Date, afterId: string | null): Promise<Row[]> {
      const { rows } = await db.query(
        `select * from ${table}
          where created_at >= $1
            and ($2::text is null or (created_at, id) > (select created_at, id from ${table} where id = $2))
          order by created_at, id limit $3`,
        [since, afterId, PAGE_SIZE],
      );
      return rows.map((row) => toRow<Row>(row));
    },
    async insertOrGet(db: Connection, row: Row): Promise<Row> {
      const columns = Object.keys(row).map(toColumn).join(", ");
      const places = Object.keys(row).map((_, at) => `$${at + 1}`);
      const { rows } = await db.query(
        // Names its columns, because the service prepares no statement with all columns.
        `insert into ${table} (${columns}) values (${places})
         on conflict (${key}) do nothing returning ${columns}`,
        Object.values(row),
      );
      if (rows[0]) return toRow<Row>(rows[0]);
      // A second statement instead of a CTE: only a new snapshot sees the row that won the conflict.
      const value = Object.entries(row).find(([field]) => toColumn(field) === key)![1];
      const earlier = await find(db, key, value);
      if (!earlier) throw new Error(`The row of ${key} ${value} vanished`);
      return earlier;
    },
    async change(db: Connection, id: string, from: string, values: Record<string, unknown>) {
      const columns = Object.keys(values).map((column, at) => `${column} = $${at + 3}`);
      await db.query(`update ${table} set ${columns} where id = $1 and state = $2`, [
        id,
        from,
        ...Object.values(values),
      ]);
      return find(db, "id", id);
    },
  };
}

const toColumn = (field: string) => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const toField = (column: string) => column.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** Amounts are bigints, which pg returns as text by default. */
const toRow = <Row>(columns: Record<string, unknown>): Row =>
  Object.fromEntries(
    Object.entries(columns).map(([column, value]) => [
      toField(column),
      column.endsWith("_minor") ? BigInt(value as number | string) : value,
    ]),
  ) as Row;

async function inTransaction<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const result = await work(client);
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
}
