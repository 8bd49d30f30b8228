import type { Queries } from "../db/database.ts";
import { countOpen } from "./open-queries.ts";

/** What waits for a payment provider, a bank or a person: so many rows of a kind in a state, and the oldest of them. */
export interface OpenMoney {
  kind: Kind;
  state: string;
  count: number;
  /** null: there is none. */
  oldestAt: Date | null;
}

type Kind = "order" | "plan payment" | "refund" | "payout";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** People may take a day to confirm, which the next hour's rounds end. */
const CONFIRMED_MS = 25 * HOUR_MS;
/** Sellers decide within 7 days; then it is decided for them. */
const DECIDED_MS = 8 * DAY_MS;
/** Banks need some working days. */
const TRANSFERRED_MS = 7 * DAY_MS;

/** How long each may stay as it is, before somebody should look. */
const patienceMs: Record<Kind, Record<string, number>> = {
  order: { pending: HOUR_MS, requires_action: CONFIRMED_MS },
  "plan payment": { pending: HOUR_MS, requires_action: CONFIRMED_MS },
  refund: { pending: DECIDED_MS, approved: HOUR_MS, processing: HOUR_MS },
  payout: { pending: HOUR_MS, in_transit: TRANSFERRED_MS },
};

/** Every state in which money can be open, those without a row too. */
export async function listOpenMoney(db: Queries): Promise<OpenMoney[]> {
  const found = await countOpen(db);
  return (Object.keys(patienceMs) as Kind[]).flatMap((kind) =>
    Object.keys(patienceMs[kind]).map((state) => {
      const row = found.find((one) => one.kind === kind && one.state === state);
      return { kind, state, count: row?.count ?? 0, oldestAt: row?.oldestAt ?? null };
    }),
  );
}

export const isOverdue = ({ kind, state, oldestAt }: OpenMoney, now: Date): boolean =>
  oldestAt !== null && now.getTime() - oldestAt.getTime() > patienceMs[kind][state]!;
