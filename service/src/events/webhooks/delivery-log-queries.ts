import type { CallbackType, DeliveryStatus, EventType } from "@stoa/contract";
import { sql } from "kysely";
import { minUuidAt } from "../../core/ids.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { countRows, EMPTY_PAGE, offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";

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
  /** The last attempt; null: none yet. */
  attemptedAt: Date | null;
  durationMs: number | null;
  responseStatus: number | null;
  error: string | null;
}

const deliveries = (db: Queries) =>
  db
    .selectFrom("webhookDeliveries as d")
    .innerJoin("events as e", "e.id", "d.eventId")
    .leftJoinLateral(
      (row) =>
        row
          .selectFrom("webhookAttempts as a")
          .select(["a.startedAt", "a.durationMs", "a.status", "a.error"])
          .whereRef("a.deliveryId", "=", "d.id")
          .whereRef("a.n", "=", "d.attempts")
          .where("a.isLate", "=", false)
          .limit(1)
          .as("last"),
      (join) => join.onTrue(),
    )
    .select([
      "last.startedAt as attemptedAt",
      "last.durationMs",
      "last.status as responseStatus",
      "last.error",
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
  eventType?: string | undefined;
  /** Of the last attempt: the first and the last status; `none`: no response. */
  responseStatuses?: readonly [number, number] | "none" | undefined;
  from?: Date | undefined;
  to?: Date | undefined;
}

/** Event types and responses are in other tables, so that a filter by them reads each delivery that it searches. */
const MAX_SEARCHED = 10_000;

export async function listDeliveries(
  db: Queries,
  endpointId: string,
  filter: DeliveryFilter,
): Promise<Page<DeliveryRow>> {
  if (filter.eventId === null || filter.before === null) return EMPTY_PAGE;
  const matching = () => matchingDeliveries(db, endpointId, filter);
  const page = matching().orderBy("d.id", "desc").limit(filter.limit).offset(offsetOf(filter));
  // The index finds the page first, so that only its rows are read.
  const items = await deliveries(db).where("d.id", "in", page).orderBy("d.id", "desc").execute();
  return { items, ...(await countRows(db, matching())) };
}

/** Ids are UUIDv7 and sort by time. */
function matchingDeliveries(db: Queries, endpointId: string, filter: DeliveryFilter) {
  const { before, status, eventId, from, to, eventType, responseStatuses } = filter;
  let own = db.selectFrom("webhookDeliveries").where("endpointId", "=", endpointId);
  if (before) own = own.where("id", "<", before);
  if (from) own = own.where("id", ">=", minUuidAt(from));
  if (to) own = own.where("id", "<", minUuidAt(to));
  if (status) own = own.where("status", "=", status);
  if (eventId) own = own.where("eventId", "=", eventId);
  const columns = own.select(["id", "eventId", "attempts"]);
  const isSearch = eventType !== undefined || responseStatuses !== undefined;
  const searched = isSearch ? columns.orderBy("id", "desc").limit(MAX_SEARCHED) : columns;
  let found = db.selectFrom(searched.as("d")).select("d.id");
  if (eventType)
    found = found.where(({ exists, selectFrom }) =>
      exists(
        selectFrom("events as e")
          .select("e.id")
          .whereRef("e.id", "=", "d.eventId")
          .where("e.type", "=", eventType),
      ),
    );
  if (responseStatuses)
    found = found.where(({ exists, selectFrom }) => {
      const last = selectFrom("webhookAttempts as a")
        .select("a.id")
        .whereRef("a.deliveryId", "=", "d.id")
        .whereRef("a.n", "=", "d.attempts")
        .where("a.isLate", "=", false);
      if (responseStatuses === "none") return exists(last.where("a.status", "is", null));
      const [first, end] = responseStatuses;
      return exists(last.where("a.status", ">=", first).where("a.status", "<=", end));
    });
  return found;
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
