import { type Execution, type ExecutionDetail, executionTypes } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { EMPTY_PAGE, mapPage, type Page, type Paging } from "../../platform/db/paging.ts";
import { areExpiredLeasesConclusive } from "./leases.ts";
import {
  type ExecutionRow,
  eraseExecution,
  eraseTextsBefore,
  failAllAbandoned,
  findExecution,
  findTexts,
  listExecutions,
} from "./queries.ts";
import { findShare } from "./shares.ts";
import { openTexts, startOfTextRetention } from "./texts.ts";
import { toUsage } from "./usage.ts";

export function toExecution(row: ExecutionRow): Execution {
  return {
    id: toId("exec", row.id),
    type: row.type,
    mode: row.mode,
    status: row.status,
    productId: toId("prod", row.productId),
    productVersion: row.productVersion,
    provider: row.provider,
    model: row.model,
    usage: toUsage(row),
    duration: row.durationMs === null ? null : row.durationMs / 1000,
    error: row.errorCode === null ? null : { code: row.errorCode, message: row.errorMessage ?? "" },
    createdAt: row.createdAt.toISOString(),
    completedAt: row.completedAt?.toISOString() ?? null,
    cancelRequestedAt: row.cancelRequestedAt?.toISOString() ?? null,
  };
}

interface ExecutionQuery extends Paging {
  status?: string | undefined;
  productId?: string | undefined;
  type?: string | undefined;
  mode?: ExecutionRow["mode"] | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

export async function listOwnExecutions(
  ctx: Context,
  caller: Member,
  query: ExecutionQuery,
): Promise<Page<Execution>> {
  const productId = query.productId === undefined ? undefined : toUuid("prod", query.productId);
  const type = executionTypes.find((known) => known === query.type);
  if (productId === null || (query.type !== undefined && type === undefined)) return EMPTY_PAGE;
  const page = await listExecutions(ctx.db, caller.userId, {
    ...query,
    type,
    productId,
    from: query.from === undefined ? undefined : new Date(query.from),
    to: query.to === undefined ? undefined : new Date(query.to),
  });
  return mapPage(page, toExecution);
}

export async function mustFindExecution(
  ctx: Context,
  caller: Member,
  executionId: string,
): Promise<ExecutionRow> {
  const id = toUuid("exec", executionId);
  const row = id ? await findExecution(ctx.db, caller.userId, id) : undefined;
  if (!row) throw new ApiError("EXECUTION_NOT_FOUND");
  return row;
}

export async function readExecution(
  ctx: Context,
  caller: Member,
  executionId: string,
): Promise<ExecutionDetail> {
  const row = await mustFindExecution(ctx, caller, executionId);
  const sealed = (await findTexts(ctx.db, row.id))?.sealed;
  const texts = sealed ? openTexts(ctx, row, sealed) : null;
  return {
    ...toExecution(row),
    variables: texts?.variables ?? null,
    output: texts?.output ?? null,
    finishReason: row.finishReason,
    attempts: row.attempts,
    share: row.status === "completed" ? await findShare(ctx, row) : null,
  };
}

export async function deleteExecution(ctx: Context, caller: Member, executionId: string) {
  const { id } = await mustFindExecution(ctx, caller, executionId);
  if (await eraseExecution(ctx.db, id, ctx.now())) return { id: toId("exec", id), deleted: true as const };
  throw new ApiError("INVALID_STATE", "The execution has not ended: cancel it first.", {
    current: (await mustFindExecution(ctx, caller, executionId)).status,
    allowed: ["completed", "failed", "canceled"],
  });
}

/** Fails the runs whose process died. */
export async function failAbandonedRuns(ctx: Context): Promise<void> {
  if (areExpiredLeasesConclusive(ctx)) await failAllAbandoned(ctx.db, ctx.now());
}

/** Erases texts that are older than 30 days. */
export const eraseOldTexts = (ctx: Context) => eraseTextsBefore(ctx.db, startOfTextRetention(ctx));
