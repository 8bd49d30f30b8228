import { ApiError } from "../errors.ts";
import { PaymentUnknown } from "../outside/payments.ts";

const RETRY_AFTER_SECONDS = 1;

/** Asks the provider where nothing of ours waits for the answer: whoever asked us may ask again. */
export async function orUnavailable<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof PaymentUnknown)) throw error;
    const message = "The payment provider does not answer. Try again soon.";
    throw new ApiError("SERVICE_UNAVAILABLE", message, undefined, RETRY_AFTER_SECONDS);
  }
}
