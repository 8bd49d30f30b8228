import type { EventType } from "@stoa/contract";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { countRows, offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";

export interface EndpointRow {
  id: string;
  userId: string;
  url: string;
  description: string;
  /** null: all. */
  eventTypes: EventType[] | null;
  signatureContent: "timestamp_body" | "body";
  signaturePrefix: boolean;
  disabledBy: "owner" | "gone" | "failing" | null;
  createdAt: Date;
}

/** Callback endpoints included. */
const allEndpoints = (db: Queries) =>
  db
    .selectFrom("webhook_endpoints as e")
    .where("e.deleted_at", "is", null)
    .select(["e.id", "e.user_id as userId", "e.url", "e.description", "e.event_types as eventTypes"])
    .select(["e.signature_content as signatureContent", "e.signature_prefix as signaturePrefix"])
    .select(["e.disabled_by as disabledBy", "e.created_at as createdAt"])
    .$castTo<EndpointRow>();

const endpoints = (db: Queries) => allEndpoints(db).where("e.is_callback", "=", false);

export const findAnyEndpoint = (db: Queries, userId: string, id: string) =>
  allEndpoints(db).where("e.user_id", "=", userId).where("e.id", "=", id).executeTakeFirst();

export const findEndpoint = (db: Queries, userId: string, id: string) =>
  endpoints(db).where("e.user_id", "=", userId).where("e.id", "=", id).executeTakeFirst();

export async function listEndpoints(db: Queries, userId: string, paging: Paging): Promise<Page<EndpointRow>> {
  const items = await endpoints(db)
    .where("e.user_id", "=", userId)
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
  if (ownerId !== undefined) found = found.where("e.user_id", "=", ownerId);
  if (status !== undefined)
    found = found.where("e.disabled_by", status === "disabled" ? "is not" : "is", null);
  return status === "failing" ? found.where("e.failing_since", "is not", null) : found;
}

export async function listAllEndpoints(db: Queries, filter: EndpointFilter): Promise<Page<EndpointForAdmin>> {
  const items = await filterEndpoints(db, filter)
    .innerJoin("users as u", "u.id", "e.user_id")
    .select(["u.name as ownerName", "e.failing_since as failingSince"])
    .select("e.failed_deliveries as failedDeliveries")
    .orderBy("e.id", "desc")
    .limit(filter.limit)
    .offset(offsetOf(filter))
    .$castTo<EndpointForAdmin>()
    .execute();
  return { items, ...(await countRows(db, filterEndpoints(db, filter))) };
}

export async function listEndpointIds(db: Queries, userId: string): Promise<string[]> {
  const rows = await allEndpoints(db).where("e.user_id", "=", userId).execute();
  return rows.map(({ id }) => id);
}

export async function countEndpoints(db: Queries, userId: string): Promise<number> {
  const { total } = await db
    .selectFrom("webhook_endpoints")
    .select((row) => row.fn.countAll<number>().as("total"))
    .where("user_id", "=", userId)
    .where("is_callback", "=", false)
    .where("deleted_at", "is", null)
    .executeTakeFirstOrThrow();
  return total;
}

export interface EndpointValues {
  url: string;
  description: string;
  event_types: EventType[] | null;
  signature_content: EndpointRow["signatureContent"];
  signature_prefix: boolean;
  disabled_by: EndpointRow["disabledBy"];
}

/** An endpoint always has a queue. */
export async function insertEndpoint(
  tx: Tx,
  endpoint: EndpointValues & { id: string; user_id: string; created_at: Date },
): Promise<void> {
  await tx
    .insertInto("webhook_endpoints")
    .values({ ...endpoint, updated_at: endpoint.created_at })
    .execute();
  await tx
    .insertInto("webhook_queues")
    .values({ endpoint_id: endpoint.id, user_id: endpoint.user_id })
    .execute();
}

export interface EndpointChange extends Partial<EndpointValues> {
  updated_at: Date;
  deleted_at?: Date;
  failing_since?: null;
  failed_deliveries?: number;
  emailed_day?: number;
}

export const updateEndpoint = (tx: Tx, id: string, change: EndpointChange) =>
  tx.updateTable("webhook_endpoints").set(change).where("id", "=", id).execute();

/** Only endpoints without any delivery in the log. */
export const deleteEndpointsDeletedBefore = (db: Queries, before: Date) =>
  db
    .deleteFrom("webhook_endpoints as e")
    .where("e.deleted_at", "<", before)
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom("webhook_deliveries as d").whereRef("d.endpoint_id", "=", "e.id"))),
    )
    .execute();

/** Only those that are marked as deleted. */
export const deleteEndpointsOfUser = (db: Queries, userId: string) =>
  db
    .deleteFrom("webhook_endpoints")
    .where("user_id", "=", userId)
    .where("deleted_at", "is not", null)
    .execute();
