import { type RawBuilder, sql } from "kysely";
import { DAY_MS } from "../../core/dates.ts";

/** Nothing waits for more than a day before it is given up; for a week after that, money is looked for. */
const LATE_CHARGE_WINDOW_MS = 8 * DAY_MS;

/**
 * Canceled rows that may yet turn out to be charged: asked about whenever they are twice as old as when the provider last answered, and
 * every day, so that a week costs some fifteen questions. What is to be given back is asked about until it is.
 */
export const mayBeChargedLate = (
  now: Date,
  isToBeGivenBack = sql<boolean>`mismatch is not null`,
): RawBuilder<boolean> => sql<boolean>`
  status = 'canceled' and (created_at > ${new Date(now.getTime() - LATE_CHARGE_WINDOW_MS)} or ${isToBeGivenBack})
  and ${now}::timestamptz - asked_at >= least(greatest(asked_at - created_at, interval '10 minutes'), interval '1 day')`;
