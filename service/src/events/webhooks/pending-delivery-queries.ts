import type { EventType } from "@stoa/contract";
import { sql } from "kysely";
import type { Tx } from "../../platform/db/database.ts";

/** The caller holds the lock of the queue, so a running attempt is recorded too late. */
const pendingDeliveries = (tx: Tx, endpointId: string) =>
  tx.updateTable("webhook_deliveries").where("endpoint_id", "=", endpointId).where("due_at", "is not", null);

type FinalStatus = "skipped" | "canceled";

const toFinalValues = (status: FinalStatus, now: Date) => ({
  // A delivery that had ended before a manual retry keeps its status.
  status: sql<string>`case when status in ('pending', 'retrying') then ${status} else status end`,
  due_at: null,
  is_manual: false,
  resume_at: null,
  is_urgent: false,
  lease_token: null,
  lease_until: null,
  leased_by: null,
  leases: 0,
  ended_at: now,
});

export const endPendingDeliveries = (tx: Tx, endpointId: string, status: FinalStatus, now: Date) =>
  pendingDeliveries(tx, endpointId).set(toFinalValues(status, now)).execute();

/** A test event goes to its endpoint whatever types that wants. */
export const cancelUnsubscribedDeliveries = (tx: Tx, endpointId: string, wanted: EventType[], now: Date) =>
  pendingDeliveries(tx, endpointId)
    .set(toFinalValues("canceled", now))
    .where("event_id", "in", (db) =>
      db
        .selectFrom("events")
        .select("id")
        .where("type", "not in", [...wanted, "test"]),
    )
    .execute();
