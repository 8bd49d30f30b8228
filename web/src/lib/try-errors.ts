import { ApiError, ConnectionError } from "@stoa/sdk";
import { formatWait } from "./duration.ts";
import { describeError, isSignedOut } from "./errors.ts";
import { formatDate, formatMoment } from "./format.ts";

export interface TryProblem {
  /** What happened. */
  fact: string;
  /** What to do. */
  advice: string;
  /** `buy`: no other try helps now. `sign-in`: members need neither a cookie of a guest nor a captcha. */
  next: "buy" | "retry" | "sign-in" | "input";
  requestId: string | null;
}

type Wording = Omit<TryProblem, "requestId">;

const limitOf = ({ details }: ApiError): string => String(details["limit"] ?? "");

/** The limits of the seller, by `details.limit`. */
const LIMITS: Record<string, (againAt: string | null) => Wording> = {
  visitor: (againAt) => ({
    fact: "You have used all your tries of this product for today.",
    advice: againAt ? `The next ones start ${formatMoment(againAt)}.` : "Come back tomorrow.",
    next: "buy",
  }),
  day: (againAt) => ({
    fact: "All tries of this product for today are used, by you and others.",
    advice: againAt ? `The next ones start ${formatMoment(againAt)}.` : "Come back tomorrow.",
    next: "buy",
  }),
  month: (againAt) => ({
    fact: "What the seller spends on tries in a month is used up.",
    advice: againAt ? `Tries are possible again from ${formatDate(againAt)}.` : "Come back next month.",
    next: "buy",
  }),
};

function toWording(error: ApiError, now: number): Wording | null {
  const { code, details, retryAfter, message } = error;
  const againAt = retryAfter === null ? null : new Date(now + retryAfter * 1_000).toISOString();
  if (code === "RATE_LIMIT_EXCEEDED")
    return (
      LIMITS[limitOf(error)]?.(againAt) ?? {
        fact: message,
        advice: retryAfter === null ? "" : `The next request works in ${formatWait(retryAfter)}.`,
        next: "retry",
      }
    );
  if (details.field === "captcha")
    return {
      fact: "The captcha was not accepted, or has expired.",
      advice: "Solve it again, or sign in: members need none.",
      next: "sign-in",
    };
  if (code === "INVALID_STATE")
    return { fact: "The seller no longer offers tries of this product.", advice: "", next: "buy" };
  if (details["reason"] === "try_out_unavailable")
    return {
      fact: "This product cannot be tried at the moment.",
      advice: "This try does not count. Try again in a minute.",
      next: "retry",
    };
  if (code === "CONTENT_FILTERED")
    return {
      fact: "The provider of the model filtered the content.",
      advice: "Change what you typed. This try counts.",
      next: "input",
    };
  return null;
}

/** Why a try was refused or failed, in words for visitors, with the next step. */
export function describeTryError(error: unknown, isMember: boolean, now = Date.now()): TryProblem {
  const { text, requestId } = describeError(error);
  if (error instanceof ConnectionError)
    return { fact: "The try ended early.", advice: `${text} It may count.`, next: "retry", requestId };
  if (!isMember && isSignedOut(error))
    return {
      fact: "Your browser sent no cookie, by which tries are counted.",
      advice: "Allow cookies of this site and load the page anew, or sign in.",
      next: "sign-in",
      requestId,
    };
  const worded = error instanceof ApiError ? toWording(error, now) : null;
  return worded ? { ...worded, requestId } : { fact: text, advice: "", next: "retry", requestId };
}
