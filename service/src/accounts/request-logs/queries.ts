import { type SqlBool, sql } from "kysely";
import { minUuidAt } from "../../core/ids.ts";
import type { Queries } from "../../platform/db/database.ts";
import { countRows, EMPTY_PAGE, offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";

export interface RequestRow {
  id: string;
  at: Date;
  requestId: string;
  method: string;
  path: string;
  operation: string | null;
  status: number;
  errorCode: string | null;
  durationMs: number;
  credential: "key" | "session" | "token";
  apiKeyId: string | null;
  userAgent: string | null;
}

export interface RequestFilter extends Paging {
  method?: string | undefined;
  /** The first and the last status. */
  statuses?: readonly [number, number] | undefined;
  /** The beginning of the path. */
  path?: string | undefined;
  /** null: the id names no key, so nothing matches. */
  apiKeyId?: string | null | undefined;
  credential?: RequestRow["credential"] | undefined;
  errorCode?: string | undefined;
  requestId?: string | undefined;
  from?: Date | undefined;
  to?: Date | undefined;
  /** null: the id names no request, so nothing matches. */
  before?: string | null | undefined;
}

/** Requests of accounts that were closed meanwhile are left out. */
export const insertRequests = (db: Queries, rows: readonly (RequestRow & { userId: string })[]) =>
  sql`
    insert into request_logs (id, user_id, at, request_id, method, path, operation, status, error_code, duration_ms,
                              credential, api_key_id, user_agent)
    select r.id, r."userId", r.at, r."requestId", r.method, r.path, r.operation, r.status, r."errorCode", r."durationMs",
           r.credential, r."apiKeyId", r."userAgent"
      from jsonb_to_recordset(${JSON.stringify(rows)}) as r
           (id uuid, "userId" uuid, at timestamptz, "requestId" text, method text, path text, operation text, status smallint,
            "errorCode" text, "durationMs" real, credential text, "apiKeyId" uuid, "userAgent" text)
      join users u on u.id = r."userId" and u.closed_at is null`.execute(db);

/** A path is searched in so many of the newest requests, and pages end there: an account can have millions. */
const MAX_SEARCHED = 50_000;

/** The newest requests of an account by what an index finds, and of these the matching ones. */
function ownRequests(db: Queries, userId: string, filter: RequestFilter) {
  const { method, statuses, path, apiKeyId, credential, errorCode, requestId, from, to, before } = filter;
  let newest = db.selectFrom("requestLogs").selectAll().where("userId", "=", userId);
  if ((statuses && statuses[0] >= 400) || errorCode !== undefined)
    newest = newest.where(sql<SqlBool>`status >= 400`);
  if (apiKeyId !== undefined) newest = newest.where("apiKeyId", "=", apiKeyId);
  if (before !== undefined) newest = newest.where("id", "<", before);
  if (from !== undefined) newest = newest.where("id", ">=", minUuidAt(from));
  if (to !== undefined) newest = newest.where("id", "<", minUuidAt(to));
  let own = db.selectFrom(newest.orderBy("id", "desc").limit(MAX_SEARCHED).as("r"));
  if (statuses) own = own.where("r.status", ">=", statuses[0]).where("r.status", "<=", statuses[1]);
  if (method !== undefined) own = own.where("r.method", "=", method);
  if (credential !== undefined) own = own.where("r.credential", "=", credential);
  if (errorCode !== undefined) own = own.where("r.errorCode", "=", errorCode);
  if (requestId !== undefined) own = own.where("r.requestId", "=", requestId);
  if (path !== undefined) own = own.where(sql<SqlBool>`starts_with(r.path, ${path})`);
  return own;
}

export async function listRequests(
  db: Queries,
  userId: string,
  filter: RequestFilter,
): Promise<Page<RequestRow>> {
  if (filter.apiKeyId === null || filter.before === null) return EMPTY_PAGE;
  const items = await ownRequests(db, userId, filter)
    .selectAll()
    .orderBy("r.id", "desc")
    .limit(filter.limit)
    .offset(offsetOf(filter))
    .$castTo<RequestRow>()
    .execute();
  const matching = ownRequests(db, userId, { ...filter, before: undefined }).select("r.id");
  return { items, ...(await countRows(db, matching)) };
}

export async function deleteRequestsBefore(db: Queries, id: string, limit: number): Promise<number> {
  const old = db.selectFrom("requestLogs").select("id").where("id", "<", id).orderBy("id").limit(limit);
  const { numDeletedRows } = await db.deleteFrom("requestLogs").where("id", "in", old).executeTakeFirst();
  return Number(numDeletedRows);
}

/** Of accounts that were closed since: a request that was written during the closing stayed. */
export const deleteRequestsOfClosedAccounts = (db: Queries, since: Date) =>
  db
    .deleteFrom("requestLogs")
    .where("userId", "in", (users) => users.selectFrom("users").select("id").where("closedAt", ">=", since))
    .execute();

export const deleteRequestsOf = (db: Queries, userId: string) =>
  db.deleteFrom("requestLogs").where("userId", "=", userId).execute();
