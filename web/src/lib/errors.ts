import { ApiError, ConnectionError, StoaError, TimeoutError } from "@stoa/sdk";

interface ErrorDescription {
  text: string;
  /** For support, and to find the request in the log; null: the request reached no service. */
  requestId: string | null;
}

/** What an error says to people: what happened, and what to do. */
export function describeError(error: unknown): ErrorDescription {
  if (error instanceof ConnectionError || error instanceof TimeoutError)
    return { text: "The service did not answer. Check your connection, then try again.", requestId: null };
  if (error instanceof StoaError) {
    const { requestId = null } = error as { requestId?: string | null };
    return { text: error.message, requestId };
  }
  return { text: error instanceof Error ? error.message : String(error), requestId: null };
}

/** Nobody is signed in any more. After a sign-out in another tab the browser may have the cookie of a visitor, who is refused with 403. */
export const isSignedOut = (error: unknown): boolean =>
  statusOf(error) === 401 || (error instanceof ApiError && error.details["required"] === "account");

export const statusOf = (error: unknown): number | null =>
  error instanceof StoaError ? ((error as { status?: number }).status ?? null) : null;
