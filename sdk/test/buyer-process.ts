import { Stoa, StoaError } from "../src/index.ts";
import { type BuyerInput, readJournal, recordPurchase } from "./purchase-journal.ts";

const CONCURRENT_PURCHASES = 16;
const TIMEOUT_MS = 2_000;

/** Makes the purchases that the journal does not have, as a program does that was killed and started again. */
process.once("message", async (input: BuyerInput) => {
  const done = new Set(readJournal(input.journal).map(([index]) => index));
  const missing = input.purchases.keys().filter((index) => !done.has(index));
  const buyNext = async () => {
    for (const index of missing) recordPurchase(input.journal, index, await buy(input, index));
  };
  await Promise.all(Array.from({ length: CONCURRENT_PURCHASES }, buyNext));
  process.send?.("done");
  process.disconnect();
});

/** Tries under the same key until the service answers. */
async function buy({ baseUrl, purchases }: BuyerInput, index: number): Promise<string> {
  const { apiKey, productId, idempotencyKey } = purchases[index]!;
  const stoa = new Stoa({ baseUrl, apiKey, timeoutMs: TIMEOUT_MS });
  while (true) {
    try {
      return (await stoa.purchases.create({ productId }, { idempotencyKey })).orderId;
    } catch (error) {
      if (!(error instanceof StoaError && error.isRetryable)) throw error;
    }
  }
}
