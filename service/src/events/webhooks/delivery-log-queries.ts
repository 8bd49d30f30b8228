import type { CallbackType, DeliveryStatus, EventType } from "@stoa/contract";
import { sql } from "kysely";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { countRows, offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";

export interface DeliveryRow {
  id: string;
  endpointId: string;
  eventId: string;
  eventType: EventType | CallbackType;
  /** As stored: not yet unsealed. */
  body: string;
  sealedBody: string | null;
  status: DeliveryStatus;
  attempts: number;
  dueAt: Date | null;
  createdAt: Date;
  endedAt: Date | null;
}

const deliveries = (db: Queries) =>
  db
    .selectFrom("webhookDeliveries as d")
    .innerJoin("events as e", "e.id", "d.eventId")
    .select([
      "d.id",
      "d.endpointId",
      "d.eventId",
      "e.type as eventType",
      "e.body",
      "e.sealedBody",
      "d.status",
      "d.attempts",
      "d.dueAt",
      "d.createdAt",
      "d.endedAt",
    ])
    .$castTo<DeliveryRow>();

export const findDelivery = (db: Queries, userId: string, id: string) =>
  deliveries(db)
    .innerJoin("webhookEndpoints as p", "p.id", "d.endpointId")
    .where("p.userId", "=", userId)
    .where("d.id", "=", id)
    .executeTakeFirst();

export interface DeliveryFilter extends Paging {
  status?: DeliveryStatus | undefined;
  /** null: the id names no event, so nothing matches. */
  eventId?: string | null | undefined;
  /** null: the id names no delivery, so nothing matches. */
  before?: string | null | undefined;
}

export async function listDeliveries(
  db: Queries,
  endpointId: string,
  filter: DeliveryFilter,
): Promise<Page<DeliveryRow>> {
  const { before } = filter;
  if (filter.eventId === null || before === null) return { items: [], total: 0 };
  const matching = () => {
    const own = db.selectFrom("webhookDeliveries").where("endpointId", "=", endpointId);
    const older = before ? own.where("id", "<", before) : own;
    const ofStatus = filter.status ? older.where("status", "=", filter.status) : older;
    return (filter.eventId ? ofStatus.where("eventId", "=", filter.eventId) : ofStatus).select("id");
  };
  const page = matching().orderBy("id", "desc").limit(filter.limit).offset(offsetOf(filter));
  // The index finds the page first, so that only its rows are read.
  const items = await deliveries(db).where("d.id", "in", page).orderBy("d.id", "desc").execute();
  return { items, ...(await countRows(db, matching())) };
}

export interface AttemptRow {
  n: number;
  isLate: boolean;
  startedAt: Date;
  durationMs: number;
  url: string;
  requestHeaders: Record<string, string>;
  status: number | null;
  responseHeaders: Record<string, string> | null;
  responseBody: string | null;
  error: string | null;
}

export const listAttempts = (db: Queries, deliveryId: string): Promise<AttemptRow[]> =>
  db
    .selectFrom("webhookAttempts")
    .select([
      "n",
      "isLate",
      "startedAt",
      "durationMs",
      "url",
      "requestHeaders",
      "status",
      "responseHeaders",
      "responseBody",
      "error",
    ])
    .where("deliveryId", "=", deliveryId)
    .orderBy("n")
    .orderBy("id")
    .$castTo<AttemptRow>()
    .execute();

/** Saves the scheduled time for later. Returns false while the delivery is being attempted. */
export async function makeDueNow(tx: Tx, id: string, now: Date): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable("webhookDeliveries")
    .set({
      isManual: true,
      isUrgent: true,
      // A second manual retry keeps the time that the first one saved.
      resumeAt: sql<Date | null>`case when is_manual then resume_at else due_at end`,
      dueAt: now,
      endedAt: null,
    })
    .where("id", "=", id)
    .where("leaseToken", "is", null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}
