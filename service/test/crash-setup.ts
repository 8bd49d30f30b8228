import assert from "node:assert/strict";
import {
  type Charge,
  createFakePayments,
  type FakeStore,
  memoryStore,
  type Payout,
  type Refund,
  startFakeProvider,
} from "../src/integrations/payments/fake-payments.ts";
import { DEAD_AFTER_SECONDS } from "../src/platform/http/idempotency.ts";
import { type CrashingService, startCrashingService } from "./crashing-service.ts";
import { type Market, type MarketOptions, openMarket, type Reply } from "./market.ts";
import { becomes } from "./until.ts";

/** A market whose processes crash, and a payment provider that survives them. */
export interface CrashSetup {
  market: Market;
  /** The provider's data. */
  books: FakeStore;
  /** The provider's effects, one entry per id. */
  done: { charges: Charge[]; refunds: Refund[]; payouts: Payout[] };
  /** Called after a charge and before its answer. */
  onceCharged: () => void;
  /** The fail point at which the market's own process throws; "": none. */
  failsAt: string;
  /** Starts another process of the market, which dies at the named fail point. */
  startDoomed(diesAt?: string): Promise<CrashingService>;
  close(): Promise<void>;
}

export async function openCrashSetup(config: MarketOptions["config"] = {}): Promise<CrashSetup> {
  const books = memoryStore();
  const done: CrashSetup["done"] = { charges: [], refunds: [], payouts: [] };
  const store: FakeStore = {
    ...books,
    async insertOrGet(charge) {
      const kept = await books.insertOrGet(charge);
      if (kept === charge) done.charges.push(charge);
      site.onceCharged();
      return kept;
    },
    async insertRefund(refund) {
      const kept = await books.insertRefund(refund);
      if (kept === refund) done.refunds.push(refund);
      return kept;
    },
    async insertPayout(payout) {
      const kept = await books.insertPayout(payout);
      if (kept === payout) done.payouts.push(payout);
      return kept;
    },
  };
  const provider = await startFakeProvider({ store, now: () => market.clock.now });
  const market = await openMarket({
    config,
    payments: createFakePayments({ origin: provider.origin }),
    failPoints: (name) => {
      if (name === site.failsAt) throw new Error(`died at ${name}`);
    },
  });
  const site: CrashSetup = {
    market,
    books,
    done,
    onceCharged: () => {},
    failsAt: "",
    startDoomed: (diesAt) => startCrashingService(market, provider.origin, diesAt),
    async close() {
      await market.close();
      await provider.close();
    },
  };
  return site;
}

/** Repeats the request after the process that held the Idempotency-Key counts as dead, and PostgreSQL has released its locks. */
export async function repeatAfterCrash(
  { clock }: Market,
  repeat: () => Promise<Reply>,
  silentMs = DEAD_AFTER_SECONDS * 1000 + 1,
): Promise<Reply> {
  clock.forward(silentMs);
  return becomes(repeat, ({ body }) => body.error?.code !== "IDEMPOTENCY_IN_PROGRESS", "a released key");
}

/** Asserts that the process died during the request. */
export async function assertKilledBy({ ended }: CrashingService, asked: Promise<unknown>): Promise<void> {
  await assert.rejects(asked);
  assert.equal(await ended, "SIGKILL");
}
