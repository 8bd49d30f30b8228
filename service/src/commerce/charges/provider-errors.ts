import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { PaymentUnknown } from "../../integrations/payments/payments.ts";

const RETRY_AFTER_SECONDS = 1;

/** A more recent request may still be in flight; no job repeats it. */
export const ASKED_RECENTLY_MS = 60_000;

/** For calls without a row of ours: the client may retry. */
export async function unavailableIfUnreachable<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof PaymentUnknown)) throw error;
    const message = "The payment provider does not answer. Try again soon.";
    throw new ApiError("SERVICE_UNAVAILABLE", message, undefined, RETRY_AFTER_SECONDS);
  }
}

/**
 * `row` names the row in log lines. Returns null without a usable answer: the row is committed, and its job asks again under the same id.
 */
export async function nullIfUnreachable<T>(
  { log }: Context,
  row: Record<string, string>,
  ask: () => Promise<T>,
): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    const fields = { ...row, err: error };
    if (error instanceof PaymentUnknown)
      log.warn(fields, "the payment provider did not answer; the row is unchanged");
    else log.error(fields, "the payment provider could not be asked; the row is unchanged");
    return null;
  }
}
