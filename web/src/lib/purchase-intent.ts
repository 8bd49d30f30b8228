import { ApiError, type CreatePurchase } from "@stoa/sdk";

/** One idempotency key for each purchase that the buyer means, also after a reload: repeats of one intent are one order. */

interface Intent {
  terms: string;
  key: string;
}

const nameOf = ({ productId }: CreatePurchase) => `purchase-intent:${productId}`;

export function idempotencyKeyOf(purchase: CreatePurchase): string {
  const terms = JSON.stringify(purchase);
  const stored = readIntent(purchase);
  if (stored?.terms === terms) return stored.key;
  const key = crypto.randomUUID();
  try {
    sessionStorage.setItem(nameOf(purchase), JSON.stringify({ terms, key } satisfies Intent));
  } catch {
    // Full, or forbidden by the browser: the key still covers the repeats of this request.
  }
  return key;
}

function readIntent(purchase: CreatePurchase): Intent | null {
  try {
    return JSON.parse(sessionStorage.getItem(nameOf(purchase)) ?? "null") as Intent | null;
  } catch {
    return null;
  }
}

/** After a final answer, the next click is another intent. Without one, such as after a lost connection, it is the same. */
export function endIntent(purchase: CreatePurchase, error: unknown): void {
  const isFinal = error === null || (error instanceof ApiError && !error.isRetryable && error.status < 500);
  try {
    if (isFinal) sessionStorage.removeItem(nameOf(purchase));
  } catch {
    // See above: nothing is there.
  }
}
