import { randomUUID } from "node:crypto";
import type { ErrorCode } from "@stoa/contract";
import { sql } from "kysely";
import type { Context } from "../context.ts";
import type { Queries } from "../db/database.ts";
import { sealedColumn } from "../db/sealed.ts";
import { digestOf } from "../digest.ts";
import { ApiError } from "../errors.ts";
import { type Rendered, textOf } from "./envelope.ts";

/** Longer than any request may run, so that a lease that ran out belongs to a dead process. */
export const LEASE_SECONDS = 180;
export const KEPT_HOURS = 24;

/** Errors after which money may have moved or a provider may have billed: a repeat must hear the same, and do nothing. */
const OUTCOMES: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "INSUFFICIENT_FUNDS",
  "CONTENT_FILTERED",
  "PROVIDER_ERROR",
  "PROVIDER_BAD_RESPONSE",
  "PROVIDER_TIMEOUT",
]);

export interface Repeatable {
  caller: string;
  route: string;
  key: string;
  body: Buffer;
}

export interface Outcome extends Rendered {
  error?: ErrorCode;
  /** What a repeat is answered in the place of this, because this shows a secret. */
  repeat?: Rendered;
  /** The name of the stream that the first request was answered with. */
  again?: string;
}

interface Kept {
  leaseToken: string;
  digest: Buffer;
  status: number | null;
  sealedBody: string | null;
}

const sealContext = ({ caller, route, key }: Omit<Repeatable, "body">) =>
  `idempotency|${caller}|${route}|${key}`;

export const sealedBodies = sealedColumn({
  table: "idempotency_keys",
  column: "sealed_body",
  key: { caller: "text", route: "text", key: "text" },
  bound: { caller: "t.caller", route: "t.route", key: "t.key" },
  contextOf: ({ caller, route, key }) => sealContext({ caller, route, key }),
});

const afterSeconds = (now: Date, seconds: number) => new Date(now.getTime() + seconds * 1000);

/** Takes the key, or a dead request's lease on it: the row then carries our token. One statement, so one winner. */
async function claim(ctx: Context, request: Repeatable, token: string): Promise<Kept> {
  const now = ctx.now();
  const { rows } = await sql<Kept>`
    with taken as (
      insert into idempotency_keys (caller, route, key, request_digest, lease_token, lease_until, created_at)
      values (${request.caller}, ${request.route}, ${request.key}, ${digestOf(request.body)}, ${token},
              ${afterSeconds(now, LEASE_SECONDS)}, ${now})
      on conflict (caller, route, key) do update
        set lease_token = excluded.lease_token, lease_until = excluded.lease_until,
            request_digest = excluded.request_digest, created_at = excluded.created_at,
            status = null, sealed_body = null
        where (idempotency_keys.status is null and idempotency_keys.lease_until < ${now})
           or idempotency_keys.created_at < ${afterSeconds(now, -KEPT_HOURS * 3600)}
      returning *)
    select lease_token as "leaseToken", request_digest as digest, status, sealed_body as "sealedBody" from taken
    union all
    select lease_token, request_digest, status, sealed_body from idempotency_keys
     where caller = ${request.caller} and route = ${request.route} and key = ${request.key}
       and not exists (select 1 from taken)`.execute(ctx.db);
  // Nothing seen: the first request released the key between our insert and our look. It may be tried at once.
  if (!rows[0]) throw new ApiError("IDEMPOTENCY_IN_PROGRESS", undefined, undefined, 1);
  return rows[0];
}

function replay(ctx: Context, request: Repeatable, kept: Kept): Outcome {
  if (!kept.digest.equals(digestOf(request.body))) throw new ApiError("IDEMPOTENCY_KEY_REUSED");
  if (kept.status === null || kept.sealedBody === null) {
    throw new ApiError("IDEMPOTENCY_IN_PROGRESS", undefined, undefined, 1);
  }
  const body = ctx.vault.open(kept.sealedBody, sealContext(request));
  const replayed = { status: kept.status, body, headers: { "idempotent-replayed": "true" } };
  return body.startsWith(STREAM) ? { ...replayed, again: body.slice(STREAM.length) } : replayed;
}

/** Of a stream its name is kept, by which it is found again; an envelope begins otherwise. */
const STREAM = "stream:";

const keptOf = ({ repeat, stream, ...outcome }: Outcome): string =>
  stream?.name ? STREAM + stream.name : textOf(repeat ?? outcome);

/** Fenced by the token: a request that lost its lease neither stores nor releases. */
const mine = (ctx: Context, request: Repeatable, token: string) => {
  const { caller, route, key } = request;
  const where = { caller, route, key, lease_token: token };
  return {
    keep: (outcome: Outcome) =>
      ctx.db
        .updateTable("idempotency_keys")
        .set({
          status: (outcome.repeat ?? outcome).status,
          sealed_body: ctx.vault.seal(keptOf(outcome), sealContext(request)),
        })
        .where((row) => row.and(where))
        .execute(),
    release: () =>
      ctx.db
        .deleteFrom("idempotency_keys")
        .where((row) => row.and(where))
        .execute(),
  };
};

/** Runs a request once for its Idempotency-Key; repeats get the first answer. Refusals are not kept. */
export async function runOnce(
  ctx: Context,
  request: Repeatable,
  run: () => Promise<Outcome>,
): Promise<Outcome> {
  const token = randomUUID();
  const kept = await claim(ctx, request, token);
  if (kept.leaseToken !== token) return replay(ctx, request, kept);
  const row = mine(ctx, request, token);
  const outcome = await run();
  const isRefusal = outcome.error !== undefined && !OUTCOMES.has(outcome.error);
  try {
    await (isRefusal ? row.release() : row.keep(outcome));
  } catch (error) {
    // The work is done: its answer goes out, and the lease keeps a repeat away for a while.
    ctx.log.error({ route: request.route, err: error }, "the answer to an Idempotency-Key was not kept");
  }
  return outcome;
}

/** Deletes what no repeat can ask for any more. */
export async function forgetOldAnswers(ctx: Context): Promise<void> {
  await ctx.db
    .deleteFrom("idempotency_keys")
    .where("created_at", "<", afterSeconds(ctx.now(), -KEPT_HOURS * 3600))
    .execute();
}

/** Of an account that closes: answers hold what it bought and ran. */
export const forgetAnswersTo = (db: Queries, caller: string) =>
  db.deleteFrom("idempotency_keys").where("caller", "=", caller).execute();
