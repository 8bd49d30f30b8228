import type { Pool } from "pg";

export type ChargeState = "succeeded" | "declined" | "requires_action" | "canceled";

/** A charge as the fake provider keeps it. */
export interface Charge {
  id: string;
  orderId: string;
  amountMinor: number;
  currency: string;
  methodId: string;
  description: string;
  state: ChargeState;
  declineCode: string | null;
  createdAt: Date;
}

/** How a charge that waited for the buyer ended. */
export type Ending = { state: "succeeded" | "canceled" } | { state: "declined"; declineCode: string };

export interface ChargeStore {
  /** Keeps the charge, or answers the one that the order has already: of two at once, one is kept. */
  insertOrGet(charge: Charge): Promise<Charge>;
  find(id: string): Promise<Charge | null>;
  findByOrder(orderId: string): Promise<Charge | null>;
  /** Ends a charge that still waits for the buyer, and answers it as it then stands; an ended one stays as it is. */
  setState(id: string, ending: Ending): Promise<Charge | null>;
}

/** Charges that are forgotten with the process, for tests of the provider itself. */
export function memoryChargeStore(): ChargeStore {
  const byOrder = new Map<string, Charge>();
  const byId = (id: string) => byOrder.values().find((charge) => charge.id === id) ?? null;
  return {
    async insertOrGet(charge) {
      const kept = byOrder.get(charge.orderId) ?? charge;
      byOrder.set(kept.orderId, kept);
      return kept;
    },
    find: async (id) => byId(id),
    findByOrder: async (orderId) => byOrder.get(orderId) ?? null,
    async setState(id, ending) {
      const charge = byId(id);
      if (charge?.state !== "requires_action") return charge;
      const ended = { ...charge, state: ending.state, declineCode: declineCodeOf(ending) };
      byOrder.set(charge.orderId, ended);
      return ended;
    },
  };
}

/** Charges in `fake_provider.charges`: they outlive a restart, as a real provider's do. */
export function postgresChargeStore(pool: Pool): ChargeStore {
  const rowWhere = async (column: "id" | "order_id", value: string) => {
    const { rows } = await pool.query<ChargeRow>(`select * from fake_provider.charges where ${column} = $1`, [
      value,
    ]);
    return rows[0] ? toCharge(rows[0]) : null;
  };
  return {
    async insertOrGet(charge) {
      const { rows } = await pool.query<ChargeRow>(insertUnlessCharged, toParameters(charge));
      if (rows[0]) return toCharge(rows[0]);
      // A second statement, not one with a CTE: only a new snapshot sees the row that made the insert give way.
      const earlier = await rowWhere("order_id", charge.orderId);
      if (!earlier) throw new Error(`The charge of order ${charge.orderId} vanished`);
      return earlier;
    },
    find: (id) => rowWhere("id", id),
    findByOrder: (orderId) => rowWhere("order_id", orderId),
    async setState(id, ending) {
      await pool.query(endIfWaiting, [id, ending.state, declineCodeOf(ending)]);
      return rowWhere("id", id);
    },
  };
}

const insertUnlessCharged = `
  insert into fake_provider.charges
    (id, order_id, amount_minor, currency, method_id, description, state, decline_code, created_at)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
  on conflict (order_id) do nothing
  returning *`;

const endIfWaiting = `
  update fake_provider.charges set state = $2, decline_code = $3
  where id = $1 and state = 'requires_action'`;

interface ChargeRow {
  id: string;
  order_id: string;
  /** A bigint, which pg hands out as text unless told otherwise. */
  amount_minor: string | number;
  currency: string;
  method_id: string;
  description: string;
  state: ChargeState;
  decline_code: string | null;
  created_at: Date;
}

function toCharge(row: ChargeRow): Charge {
  return {
    id: row.id,
    orderId: row.order_id,
    amountMinor: Number(row.amount_minor),
    currency: row.currency,
    methodId: row.method_id,
    description: row.description,
    state: row.state,
    declineCode: row.decline_code,
    createdAt: row.created_at,
  };
}

function toParameters(charge: Charge): unknown[] {
  const { id, orderId, amountMinor, currency, methodId, description, state, declineCode, createdAt } = charge;
  return [id, orderId, amountMinor, currency, methodId, description, state, declineCode, createdAt];
}

function declineCodeOf(ending: Ending): string | null {
  return ending.state === "declined" ? ending.declineCode : null;
}
