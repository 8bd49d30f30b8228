import { type RawBuilder, sql } from "kysely";
import { DAY_MS } from "../days.ts";

/** Nothing waits for more than a day before it is given up; for a week after that, money is looked for. */
const ASKED_AFTER_FOR_MS = 8 * DAY_MS;

/**
 * Canceled rows that may yet turn out to be charged: asked about whenever they are twice as old as when the provider last answered, and
 * every day, so that a week costs some fifteen questions. Where another amount was taken, until that is given back.
 */
export const mayBeChargedLate = (now: Date): RawBuilder<boolean> => sql<boolean>`
  status = 'canceled' and (created_at > ${new Date(now.getTime() - ASKED_AFTER_FOR_MS)} or mismatch is not null)
  and ${now}::timestamptz - asked_at >= least(greatest(asked_at - created_at, interval '10 minutes'), interval '1 day')`;
