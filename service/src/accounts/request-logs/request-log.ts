import { type LoggedRequest, REQUEST_LOG_RETENTION_DAYS } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { minUuidAt, newUuid, toId, toUuid } from "../../core/ids.ts";
import type { Tx } from "../../platform/db/database.ts";
import { mapPage, type Paging } from "../../platform/db/paging.ts";
import type { AnsweredRequest } from "../../platform/http/server-dependencies.ts";
import {
  deleteRequestsBefore,
  deleteRequestsOf,
  deleteRequestsOfClosedAccounts,
  insertRequests,
  listRequests,
  type RequestRow,
} from "./queries.ts";

declare module "../../core/context.ts" {
  interface Context {
    requestLog: RequestLog;
  }
}

export const FLUSH_INTERVAL_MS = 1_000;
/** Of one account in an interval, and of all: requests beyond them are left out, so that nobody fills the log. */
const MAX_OF_ACCOUNT = 100;
const MAX_WAITING = 1_000;
const MAX_TEXT = 300;
const DELETE_BATCH_SIZE = 5_000;

type LoggedRow = RequestRow & { userId: string };

/** Buffers requests: one statement each second instead of one for each request. A crash loses a second of them. */
export class RequestLog {
  #waiting: LoggedRow[] = [];
  readonly #countByAccount = new Map<string, number>();
  #lost = 0;
  #writing: Promise<void> = Promise.resolve();

  add(ctx: Context, request: AnsweredRequest): void {
    const { userId } = request.caller;
    const ofAccount = this.#countByAccount.get(userId) ?? 0;
    if (this.#waiting.length >= MAX_WAITING || ofAccount >= MAX_OF_ACCOUNT) {
      this.#lost++;
      return;
    }
    this.#countByAccount.set(userId, ofAccount + 1);
    this.#waiting.push(toRow(ctx, request));
  }

  /** Waits for a running write first. Requests that could not be written are dropped: the log is no reason to fill the memory. */
  flush(ctx: Context): Promise<void> {
    this.#writing = this.#writing.catch(() => {}).then(() => this.#flush(ctx));
    return this.#writing;
  }

  async #flush({ db, log }: Context): Promise<void> {
    const rows = this.#waiting;
    this.#waiting = [];
    this.#countByAccount.clear();
    if (this.#lost > 0) log.debug({ lost: this.#lost }, "more requests than the request log takes");
    this.#lost = 0;
    if (rows.length > 0) await insertRequests(db, rows);
  }
}

function toRow(ctx: Context, { caller, path, userAgent, ...request }: AnsweredRequest): LoggedRow {
  const at = ctx.now();
  return {
    id: newUuid(at),
    at,
    userId: caller.userId,
    path: storable(path),
    userAgent: userAgent === null ? null : storable(userAgent),
    credential: caller.kind,
    apiKeyId: caller.kind === "key" ? caller.keyId : null,
    ...request,
  };
}

/** PostgreSQL stores no NUL and no half of a surrogate pair. */
const storable = (text: string): string => text.slice(0, MAX_TEXT).toWellFormed().replaceAll("\0", "\ufffd");

export const flushRequestLog = (ctx: Context) => ctx.requestLog.flush(ctx);

interface RequestQuery extends Paging {
  before?: string | undefined;
  method?: string | undefined;
  status?: string | undefined;
  path?: string | undefined;
  apiKeyId?: string | undefined;
  credential?: RequestRow["credential"] | undefined;
  errorCode?: string | undefined;
  requestId?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

export async function listOwnRequests(
  ctx: Context,
  { userId }: Member,
  { before, apiKeyId, status, from, to, ...query }: RequestQuery,
) {
  const page = await listRequests(ctx.db, userId, {
    ...query,
    ...(before !== undefined && { before: toUuid("req", before) }),
    ...(apiKeyId !== undefined && { apiKeyId: toUuid("key", apiKeyId) }),
    ...(status !== undefined && { statuses: statusRange(status) }),
    ...(from !== undefined && { from: new Date(from) }),
    ...(to !== undefined && { to: new Date(to) }),
  });
  return mapPage(page, toLoggedRequest);
}

/** Of 404, or of 4xx. */
const statusRange = (status: string): [number, number] => [
  Number(status.replace("xx", "00")),
  Number(status.replace("xx", "99")),
];

const toLoggedRequest = ({
  id,
  requestId,
  at,
  method,
  path,
  apiKeyId,
  ...row
}: RequestRow): LoggedRequest => ({
  ...{ id: toId("req", id), requestId, at: at.toISOString(), method, path },
  ...{ operation: row.operation, status: row.status, errorCode: row.errorCode },
  durationMs: Math.round(row.durationMs * 10) / 10,
  credential: row.credential,
  apiKeyId: apiKeyId && toId("key", apiKeyId),
  userAgent: row.userAgent,
});

export const deleteRequestLog = (tx: Tx, userId: string) => deleteRequestsOf(tx, userId);

/** After the closing: a write that began before it may have ended later. A write of another process stays until the night's deletion. */
export async function deleteLateRequests(ctx: Context, userId: string): Promise<void> {
  await ctx.requestLog.flush(ctx);
  await deleteRequestsOf(ctx.db, userId);
}

/** Deletes in batches, so that no statement takes long. */
export async function deleteOldRequests(ctx: Context): Promise<void> {
  await deleteRequestsOfClosedAccounts(ctx.db, daysAfter(ctx.now(), -1));
  const before = minUuidAt(daysAfter(ctx.now(), -REQUEST_LOG_RETENTION_DAYS));
  while ((await deleteRequestsBefore(ctx.db, before, DELETE_BATCH_SIZE)) > 0);
}
