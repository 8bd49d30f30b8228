import type { EventType } from "@stoa/contract";
import { sql } from "kysely";
import type { Tx } from "../../platform/db/database.ts";

/** The caller holds the lock of the queue, so a running attempt is recorded too late. */
const pendingDeliveries = (tx: Tx, endpointId: string) =>
  tx.updateTable("webhookDeliveries").where("endpointId", "=", endpointId).where("dueAt", "is not", null);

type FinalStatus = "skipped" | "canceled";

const toFinalValues = (status: FinalStatus, now: Date) => ({
  // A delivery that had ended before a manual retry keeps its status.
  status: sql<string>`case when status in ('pending', 'retrying') then ${status} else status end`,
  dueAt: null,
  isManual: false,
  resumeAt: null,
  isUrgent: false,
  leaseToken: null,
  leaseUntil: null,
  leasedBy: null,
  leases: 0,
  endedAt: now,
});

export const endPendingDeliveries = (tx: Tx, endpointId: string, status: FinalStatus, now: Date) =>
  pendingDeliveries(tx, endpointId).set(toFinalValues(status, now)).execute();

/** Test events need no subscription. */
export const cancelUnsubscribedDeliveries = (
  tx: Tx,
  endpointId: string,
  subscribed: EventType[],
  now: Date,
) =>
  pendingDeliveries(tx, endpointId)
    .set(toFinalValues("canceled", now))
    .where("eventId", "in", (db) =>
      db
        .selectFrom("events")
        .select("id")
        .where("type", "not in", [...subscribed, "test"]),
    )
    .execute();
