import { randomUUID } from "node:crypto";
import type { ErrorCode } from "@stoa/contract";
import { sql } from "kysely";
import type { Context } from "../../core/context.ts";
import { digestOf } from "../../core/digest.ts";
import { ApiError } from "../../core/errors.ts";
import { failPoint } from "../../core/fail-points.ts";
import type { Queries } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import { isWorkerPresent } from "../db/presence.ts";
import { sealedColumn } from "../db/sealed-columns.ts";
import { bodyTextOf, type RenderedResponse } from "./envelope.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** null: the request has none, or the context serves no request. */
    idempotencyKey: IdempotencyKey | null;
  }
}

/** Without a renewal for this long, the request's process counts as dead. */
export const LEASE_SECONDS = 30;
const RENEW_EVERY_MS = 10_000;
/**
 * A process without a session lock that has not renewed for this long is dead. The time is longer than the renewal
 * interval. The lock alone may be missing for a moment, such as during a restart of PostgreSQL.
 */
export const DEAD_AFTER_SECONDS = 12;
export const RETENTION_HOURS = 24;

/** Errors after which money may have moved or a provider may have billed: a repeat gets the stored error. */
const STORED_ERRORS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "INSUFFICIENT_FUNDS",
  "CONTENT_FILTERED",
  "PROVIDER_ERROR",
  "PROVIDER_BAD_RESPONSE",
  "PROVIDER_TIMEOUT",
]);

/** Whether a repeat must not act. After the errors beside STORED_ERRORS, the result is unknown or already written. */
export const isFinalError = (code: ErrorCode): boolean =>
  STORED_ERRORS.has(code) || ["INTERNAL_ERROR", "SERVICE_UNAVAILABLE", "INVALID_STATE"].includes(code);

export interface IdempotentRequest {
  caller: string;
  route: string;
  key: string;
  body: Buffer;
}

export interface IdempotentResponse extends RenderedResponse {
  error?: ErrorCode;
  /** The response to a repeat, if this one shows a secret. */
  replayAs?: RenderedResponse;
  /** The name of the stream that the first request returned. */
  streamName?: string;
}

/** The Idempotency-Key of the current request. */
export interface IdempotencyKey {
  /**
   * Binds the key to what the request writes, in that transaction: a repeat reads the resource and never acts again.
   * Throws when a repeat has taken the lease over, so that the transaction fails. The first of several resources counts.
   */
  bind(tx: Queries, resource: string): Promise<void>;
  /** Releases the key, because the bound resource came to nothing: a repeat may act. */
  unbind(): Promise<unknown>;
}

/** runOnce calls these with a context that has the key. */
export interface IdempotentActions {
  /** The first run of the handler. */
  run(ctx: Context): Promise<IdempotentResponse>;
  /** Returns the present state of what the first request wrote; null: nothing, so the repeat acts. */
  resume(ctx: Context, resource: string): Promise<IdempotentResponse | null>;
  /** The stream's name while the first request runs; null: it returns none, so a repeat is refused until it ends. */
  findRunningStream(resource: string): Promise<string | null>;
}

interface Row {
  leaseToken: string;
  digest: Buffer;
  status: number | null;
  sealedBody: string | null;
  sealedResource: string | null;
}

const sealContext = ({ caller, route, key }: Omit<IdempotentRequest, "body">) =>
  `idempotency|${caller}|${route}|${key}`;
const resourceContext = (request: Omit<IdempotentRequest, "body">) => `${sealContext(request)}|resource`;

const ofRow = {
  table: "idempotency_keys",
  key: { caller: "text", route: "text", key: "text" },
  bound: { caller: "t.caller", route: "t.route", key: "t.key" },
} as const;

export const sealedBodies = sealedColumn({
  ...ofRow,
  column: "sealed_body",
  contextOf: ({ caller, route, key }) => sealContext({ caller, route, key }),
});

export const sealedResources = sealedColumn({
  ...ofRow,
  column: "sealed_resource",
  contextOf: ({ caller, route, key }) => resourceContext({ caller, route, key }),
});

const afterSeconds = (now: Date, seconds: number) => new Date(now.getTime() + seconds * 1000);

/**
 * Claims the key, or the lease of a dead request: the row then has our token. One statement, so one winner. A row in use
 * is read without a lock, since the transaction that binds it may hold one.
 */
async function claim(ctx: Context, request: IdempotentRequest, token: string): Promise<Row> {
  const now = ctx.now();
  const digest = digestOf(request.body);
  const isSilent = sql`k.lease_until < ${afterSeconds(now, LEASE_SECONDS - DEAD_AFTER_SECONDS)}`;
  const isExpired = sql`k.created_at < ${afterSeconds(now, -RETENTION_HOURS * 3600)}`;
  const isFree = sql`(${isExpired} or (
    k.status is null and (k.sealed_resource is null or k.request_digest = ${digest})
    and (k.lease_until < ${now} or (${isSilent} and not ${isWorkerPresent(sql`k.process_lock`)}))))`;
  const columns = sql`lease_token, request_digest as digest, status, sealed_body,
                      sealed_resource`;
  const { rows } = await sql<Row>`${prepared("claim_idempotency_key")}
    with seen as (
      select * from idempotency_keys k
       where caller = ${request.caller} and route = ${request.route} and key = ${request.key}),
    taken as (
      insert into idempotency_keys as k
             (caller, route, key, request_digest, lease_token, lease_until, process_lock, created_at)
      select ${request.caller}, ${request.route}, ${request.key}, ${digest}::bytea, ${token}::uuid,
             ${afterSeconds(now, LEASE_SECONDS)}::timestamptz, ${ctx.presence.key}::integer, ${now}::timestamptz
       where not exists (select from seen k where not ${isFree})
      on conflict (caller, route, key) do update
        set lease_token = excluded.lease_token, lease_until = excluded.lease_until, process_lock = excluded.process_lock,
            request_digest = excluded.request_digest, status = null, sealed_body = null,
            sealed_resource = case when not ${isExpired} then k.sealed_resource end,
            created_at = case when ${isExpired} or k.sealed_resource is null then excluded.created_at else k.created_at end
        where ${isFree}
      returning *)
    select ${columns} from taken
    union all
    select ${columns} from seen where not exists (select from taken)`.execute(ctx.db);
  // The first request released the key between our insert and our select: a retry may succeed at once.
  return rows[0] ?? inProgress();
}

function inProgress(): never {
  throw new ApiError("IDEMPOTENCY_IN_PROGRESS", undefined, undefined, 1);
}

async function replay(
  ctx: Context,
  request: IdempotentRequest,
  row: Row,
  { findRunningStream }: IdempotentActions,
): Promise<IdempotentResponse> {
  if (!row.digest.equals(digestOf(request.body))) throw new ApiError("IDEMPOTENCY_KEY_REUSED");
  if (row.status === null || row.sealedBody === null) {
    const { sealedResource } = row;
    const streamName =
      sealedResource && (await findRunningStream(ctx.vault.open(sealedResource, resourceContext(request))));
    return streamName ? { status: 200, body: "", headers: REPLAYED, streamName } : inProgress();
  }
  const body = ctx.vault.open(row.sealedBody, sealContext(request));
  const replayed = { status: row.status, body, headers: REPLAYED };
  return body.startsWith(STREAM) ? { ...replayed, streamName: body.slice(STREAM.length) } : replayed;
}

const REPLAYED = { "idempotent-replayed": "true" };

/** A stored stream is its name after this prefix, with which no envelope begins. */
const STREAM = "stream:";

const storedBodyOf = ({ replayAs: repeat, stream, ...outcome }: IdempotentResponse): string =>
  stream?.name ? STREAM + stream.name : bodyTextOf(repeat ?? outcome);

/** Every statement is fenced by the token: a request that lost its lease neither binds, stores nor releases. */
function leaseOf(ctx: Context, request: IdempotentRequest, token: string) {
  const { caller, route, key } = request;
  const where = { caller, route, key, leaseToken: token };
  const update = (db: Queries) => db.updateTable("idempotencyKeys").where((row) => row.and(where));
  return {
    async bind(tx: Queries, resource: string): Promise<void> {
      const sealed = ctx.vault.seal(resource, resourceContext(request));
      const { numUpdatedRows } = await update(tx)
        .set((row) => ({ sealedResource: row.fn.coalesce("sealedResource", row.val(sealed)) }))
        .executeTakeFirst();
      if (numUpdatedRows === 0n) inProgress();
    },
    unbind: () => update(ctx.db).set({ sealedResource: null }).execute(),
    renew: () =>
      update(ctx.db)
        .where("status", "is", null)
        .set({ leaseUntil: afterSeconds(ctx.now(), LEASE_SECONDS) })
        .execute(),
    keep: (outcome: IdempotentResponse) =>
      update(ctx.db)
        .set({
          status: (outcome.replayAs ?? outcome).status,
          sealedBody: ctx.vault.seal(storedBodyOf(outcome), sealContext(request)),
        })
        .execute(),
    /** Keeps the binding, so that the next repeat resumes at once. */
    async release(): Promise<void> {
      await ctx.db
        .deleteFrom("idempotencyKeys")
        .where((row) => row.and(where))
        .where("sealedResource", "is", null)
        .execute();
      await update(ctx.db)
        .set({ leaseUntil: new Date(0) })
        .execute();
    },
  };
}

type Lease = ReturnType<typeof leaseOf>;

/**
 * Runs a request once for its Idempotency-Key. Repeats get the first answer, or the resource that the first request
 * wrote before its process died. Refusals are not stored.
 */
export async function runOnce(
  ctx: Context,
  request: IdempotentRequest,
  actions: IdempotentActions,
): Promise<IdempotentResponse> {
  const token = randomUUID();
  const row = await claim(ctx, request, token);
  if (row.leaseToken !== token) return replay(ctx, request, row, actions);
  const lease = leaseOf(ctx, request, token);
  const outcome = await whileRenewed(ctx, lease, () => runOrResume(ctx, request, lease, row, actions));
  failPoint(ctx, "idempotency: answered, not kept");
  const isRefusal = outcome.error !== undefined && !STORED_ERRORS.has(outcome.error);
  try {
    await (isRefusal ? lease.release() : lease.keep(outcome));
  } catch (error) {
    // The work is done and the response is sent. Repeats are refused until the lease ends.
    ctx.log.error({ route: request.route, err: error }, "the response to an Idempotency-Key was not stored");
  }
  return outcome;
}

async function runOrResume(
  ctx: Context,
  request: IdempotentRequest,
  lease: Lease,
  row: Row,
  { run, resume }: IdempotentActions,
) {
  const serving: Context = { ...ctx, idempotencyKey: lease };
  if (row.sealedResource === null) return run(serving);
  const resumed = await resume(serving, ctx.vault.open(row.sealedResource, resourceContext(request)));
  if (resumed) return { ...resumed, headers: { ...resumed.headers, ...REPLAYED } };
  await lease.unbind();
  return run(serving);
}

/** A failed renewal is not fatal: the next one may succeed, and every write checks the token. */
async function whileRenewed<T>(ctx: Context, lease: Lease, work: () => Promise<T>): Promise<T> {
  const timer = setInterval(() => {
    lease.renew().catch((error) => ctx.log.warn({ err: error }, "the lease of a request was not renewed"));
  }, RENEW_EVERY_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

export async function deleteExpiredIdempotencyKeys(ctx: Context): Promise<void> {
  await ctx.db
    .deleteFrom("idempotencyKeys")
    .where("createdAt", "<", afterSeconds(ctx.now(), -RETENTION_HOURS * 3600))
    .execute();
}

/** For an account that closes: stored responses have personal data. */
export const deleteIdempotencyKeysOf = (db: Queries, caller: string) =>
  db.deleteFrom("idempotencyKeys").where("caller", "=", caller).execute();
