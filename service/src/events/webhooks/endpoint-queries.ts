import type { EventType } from "@stoa/contract";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { countRows, offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";

export interface EndpointValues {
  url: string;
  description: string;
  /** null: all. */
  eventTypes: EventType[] | null;
  signatureContent: "timestamp_body" | "body";
  signaturePrefix: boolean;
  disabledBy: "owner" | "gone" | "failing" | null;
}

export interface EndpointRow extends EndpointValues {
  id: string;
  userId: string;
  createdAt: Date;
}

/** Callback endpoints included. */
const allEndpoints = (db: Queries) =>
  db
    .selectFrom("webhookEndpoints as e")
    .where("e.deletedAt", "is", null)
    .select([
      "e.id",
      "e.userId",
      "e.url",
      "e.description",
      "e.eventTypes",
      "e.signatureContent",
      "e.signaturePrefix",
      "e.disabledBy",
      "e.createdAt",
    ])
    .$castTo<EndpointRow>();

const endpoints = (db: Queries) => allEndpoints(db).where("e.isCallback", "=", false);

export const findAnyEndpoint = (db: Queries, userId: string, id: string) =>
  allEndpoints(db).where("e.userId", "=", userId).where("e.id", "=", id).executeTakeFirst();

export const findEndpoint = (db: Queries, userId: string, id: string) =>
  endpoints(db).where("e.userId", "=", userId).where("e.id", "=", id).executeTakeFirst();

export async function listEndpoints(db: Queries, userId: string, paging: Paging): Promise<Page<EndpointRow>> {
  const items = await endpoints(db)
    .where("e.userId", "=", userId)
    .orderBy("e.id", "desc")
    .limit(paging.limit)
    .offset(offsetOf(paging))
    .execute();
  return { items, total: await countEndpoints(db, userId) };
}

export interface EndpointForAdmin extends EndpointRow {
  ownerName: string;
  failingSince: Date | null;
  failedDeliveries: number;
}

export interface EndpointFilter extends Paging {
  ownerId?: string | undefined;
  status?: "enabled" | "failing" | "disabled" | undefined;
}

function filterEndpoints(db: Queries, { ownerId, status }: EndpointFilter) {
  let found = endpoints(db);
  if (ownerId !== undefined) found = found.where("e.userId", "=", ownerId);
  if (status !== undefined)
    found = found.where("e.disabledBy", status === "disabled" ? "is not" : "is", null);
  return status === "failing" ? found.where("e.failingSince", "is not", null) : found;
}

export async function listAllEndpoints(db: Queries, filter: EndpointFilter): Promise<Page<EndpointForAdmin>> {
  const items = await filterEndpoints(db, filter)
    .innerJoin("users as u", "u.id", "e.userId")
    .select(["u.name as ownerName", "e.failingSince", "e.failedDeliveries"])
    .orderBy("e.id", "desc")
    .limit(filter.limit)
    .offset(offsetOf(filter))
    .$castTo<EndpointForAdmin>()
    .execute();
  return { items, ...(await countRows(db, filterEndpoints(db, filter))) };
}

export async function listEndpointIds(db: Queries, userId: string): Promise<string[]> {
  const rows = await allEndpoints(db).where("e.userId", "=", userId).execute();
  return rows.map(({ id }) => id);
}

export async function countEndpoints(db: Queries, userId: string): Promise<number> {
  const { total } = await db
    .selectFrom("webhookEndpoints")
    .select((row) => row.fn.countAll<number>().as("total"))
    .where("userId", "=", userId)
    .where("isCallback", "=", false)
    .where("deletedAt", "is", null)
    .executeTakeFirstOrThrow();
  return total;
}

/** An endpoint always has a queue. */
export async function insertEndpoint(
  tx: Tx,
  endpoint: EndpointValues & { id: string; userId: string; createdAt: Date },
): Promise<void> {
  await tx
    .insertInto("webhookEndpoints")
    .values({ ...endpoint, updatedAt: endpoint.createdAt })
    .execute();
  await tx.insertInto("webhookQueues").values({ endpointId: endpoint.id, userId: endpoint.userId }).execute();
}

export interface EndpointChange extends Partial<EndpointValues> {
  updatedAt: Date;
  deletedAt?: Date;
  failingSince?: null;
  failedDeliveries?: number;
  emailedDay?: number;
}

export const updateEndpoint = (tx: Tx, id: string, change: EndpointChange) =>
  tx.updateTable("webhookEndpoints").set(change).where("id", "=", id).execute();

/** Only endpoints without any delivery in the log. */
export const deleteEndpointsDeletedBefore = (db: Queries, before: Date) =>
  db
    .deleteFrom("webhookEndpoints as e")
    .where("e.deletedAt", "<", before)
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom("webhookDeliveries as d").whereRef("d.endpointId", "=", "e.id"))),
    )
    .execute();

/** Only those that are marked as deleted. */
export const deleteEndpointsOfUser = (db: Queries, userId: string) =>
  db.deleteFrom("webhookEndpoints").where("userId", "=", userId).where("deletedAt", "is not", null).execute();
