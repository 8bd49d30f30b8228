export type ChargeState = "succeeded" | "declined" | "requires_action" | "canceled";

export interface Charge {
  id: string;
  orderId: string;
  amountMinor: bigint;
  currency: string;
  customerId: string;
  methodId: string;
  description: string;
  state: ChargeState;
  declineCode: string | null;
  createdAt: Date;
}

/** The end of a charge that waited for the buyer. */
export type Ending = { state: "succeeded" | "canceled" } | { state: "declined"; declineCode: string };

export interface Refund {
  id: string;
  refundId: string;
  chargeId: string;
  amountMinor: bigint;
  currency: string;
  state: "processing" | "succeeded" | "failed";
  failureCode: string | null;
  createdAt: Date;
}

export interface Payout {
  id: string;
  payoutId: string;
  destination: string;
  amountMinor: bigint;
  currency: string;
  state: "in_transit" | "completed" | "returned" | "failed";
  failureCode: string | null;
  createdAt: Date;
}

/** A seller's account, which receives nothing until its onboarding is complete. */
export interface Account {
  id: string;
  ownerId: string;
  state: "restricted" | "enabled";
  createdAt: Date;
}

/** The next state, with a code for a failure. */
export type Move<State> = { state: Exclude<State, "failed"> } | { state: "failed"; failureCode: string };

export interface Dispute {
  id: string;
  chargeId: string;
  orderId: string;
  amountMinor: bigint;
  feeMinor: bigint;
  currency: string;
  reason: string;
  state: "open" | "won" | "lost";
  createdAt: Date;
}

export interface FakeStore {
  /** Stores the charge, or returns the order's existing one. Of parallel calls, one stores. */
  insertOrGet(charge: Charge): Promise<Charge>;
  find(id: string): Promise<Charge | null>;
  findByOrder(orderId: string): Promise<Charge | null>;
  /** Ends a charge that waits for the buyer and returns it. An ended one stays unchanged. */
  setState(id: string, ending: Ending): Promise<Charge | null>;
  /**
   * Stores the refund, or returns the existing one of its key. null: the charge has less left. Parallel refunds never
   * exceed the charge.
   */
  insertRefund(refund: Refund): Promise<Refund | null>;
  findRefund(refundId: string): Promise<Refund | null>;
  /** Moves a refund from `from` and returns its current state. */
  moveRefund(id: string, from: Refund["state"], move: Move<Refund["state"]>): Promise<Refund | null>;
  insertPayout(payout: Payout): Promise<Payout>;
  findPayout(payoutId: string): Promise<Payout | null>;
  movePayout(id: string, from: Payout["state"], move: Move<Payout["state"]>): Promise<Payout | null>;
  /** Stores the account, or returns the owner's existing one. */
  insertAccount(account: Account): Promise<Account>;
  findAccount(id: string): Promise<Account | null>;
  enableAccount(id: string): Promise<Account | null>;
  /** One per charge; a second one changes nothing. */
  insertDispute(dispute: Dispute): Promise<void>;
  findDispute(id: string): Promise<Dispute | null>;
  findDisputeOf(chargeId: string): Promise<Dispute | null>;
  /** Ends an open dispute and returns it. */
  closeDispute(id: string, state: "won" | "lost"): Promise<Dispute | null>;
  listUndecided(): Promise<Undecided>;
  /** Objects since a time, in order of time, after the given id. */
  list<Kind extends keyof Listed>(kind: Kind, since: Date, afterId: string | null): Promise<Listed[Kind][]>;
}

/** Objects with lists. */
export interface Listed {
  charges: Charge;
  refunds: Refund;
  disputes: Dispute;
  payouts: Payout;
}

export const PAGE_SIZE = 100;

/** Objects whose bank has not decided yet. */
export interface Undecided {
  disputes: Dispute[];
  refunds: Refund[];
  payouts: Payout[];
}

export const declineCodeOf = (ending: Ending): string | null =>
  ending.state === "declined" ? ending.declineCode : null;

export const failureCodeOf = (move: Move<string>): string | null =>
  "failureCode" in move ? move.failureCode : null;

/** In memory, for tests of the provider itself. */
export function memoryStore(): FakeStore {
  const charges = rowsBy<Charge, "orderId">("orderId");
  const refunds = rowsBy<Refund, "refundId">("refundId");
  const payouts = rowsBy<Payout, "payoutId">("payoutId");
  const accounts = rowsBy<Account, "ownerId">("ownerId");
  const disputes = rowsBy<Dispute, "chargeId">("chargeId");
  const remainderOf = ({ id, amountMinor }: Charge) =>
    refunds
      .all()
      .filter((refund) => refund.chargeId === id && refund.state !== "failed")
      .reduce((left, refund) => left - refund.amountMinor, amountMinor);
  return {
    insertOrGet: async (charge) => charges.insert(charge),
    find: async (id) => charges.byId(id),
    findByOrder: async (orderId) => charges.byKey(orderId),
    setState: async (id, ending) =>
      charges.change(id, "requires_action", { state: ending.state, declineCode: declineCodeOf(ending) }),
    async insertRefund(refund) {
      const earlier = refunds.byKey(refund.refundId);
      if (earlier) return earlier;
      return refund.amountMinor > remainderOf(charges.byId(refund.chargeId)!) ? null : refunds.insert(refund);
    },
    findRefund: async (refundId) => refunds.byKey(refundId),
    moveRefund: async (id, from, move) =>
      refunds.change(id, from, { state: move.state, failureCode: failureCodeOf(move) }),
    insertPayout: async (payout) => payouts.insert(payout),
    findPayout: async (payoutId) => payouts.byKey(payoutId),
    movePayout: async (id, from, move) =>
      payouts.change(id, from, { state: move.state, failureCode: failureCodeOf(move) }),
    insertAccount: async (account) => accounts.insert(account),
    findAccount: async (id) => accounts.byId(id),
    enableAccount: async (id) => accounts.change(id, "restricted", { state: "enabled" }),
    insertDispute: async (dispute) => {
      disputes.insert(dispute);
    },
    findDispute: async (id) => disputes.byId(id),
    findDisputeOf: async (chargeId) => disputes.byKey(chargeId),
    closeDispute: async (id, state) => disputes.change(id, "open", { state }),
    listUndecided: async () => ({
      disputes: disputes.all().filter(({ state }) => state === "open"),
      refunds: refunds.all().filter(({ state }) => state === "processing"),
      payouts: payouts.all().filter(({ state }) => state === "in_transit"),
    }),
    async list(kind, since, afterId) {
      const tables = { charges, refunds, disputes, payouts };
      const rows = (tables[kind].all() as Listed[typeof kind][])
        .filter(({ createdAt }) => createdAt >= since)
        .toSorted(inTime);
      const start = rows.findIndex(({ id }) => id === afterId) + 1;
      return rows.slice(start, start + PAGE_SIZE);
    },
  };
}

const inTime = (one: { createdAt: Date; id: string }, other: { createdAt: Date; id: string }) =>
  one.createdAt.getTime() - other.createdAt.getTime() || (one.id < other.id ? -1 : 1);

/** Rows with a unique key. */
function rowsBy<Row extends { id: string; state: string } & Record<Key, string>, Key extends string>(
  key: Key,
) {
  const rows = new Map<string, Row>();
  const byId = (id: string): Row | null => rows.values().find((row) => row.id === id) ?? null;
  return {
    all: () => [...rows.values()],
    byId,
    byKey: (value: string): Row | null => rows.get(value) ?? null,
    insert(row: Row): Row {
      const stored = rows.get(row[key]) ?? row;
      rows.set(stored[key], stored);
      return stored;
    },
    change(id: string, from: Row["state"], values: Partial<Row>): Row | null {
      const row = byId(id);
      if (row?.state !== from) return row;
      const changed = { ...row, ...values };
      rows.set(changed[key], changed);
      return changed;
    },
  };
}
