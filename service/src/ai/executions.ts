import type { Execution, ExecutionDetail } from "@stoa/contract";
import type { Context, Member } from "../context.ts";
import { daysAfter } from "../days.ts";
import { mapPage, type Page, type Paging } from "../db/paging.ts";
import { ApiError } from "../errors.ts";
import { toId, toUuid } from "../ids.ts";
import { type Message, type ProviderAnswer, ProviderFault, type TokenUsage } from "../outside/ai-provider.ts";
import type { Cost } from "./cost.ts";
import {
  type CallOutcome,
  LEASE_MS,
  mustBeWithinLimits,
  type OpenCall,
  toCallEnd,
  toOpenCall,
} from "./provider-calls.ts";
import type { UsableKey } from "./provider-keys.ts";
import {
  type ExecutionEnd,
  type ExecutionRow,
  endExecution,
  eraseExecution,
  eraseTextsBefore,
  failAbandoned,
  findExecution,
  findTexts,
  insertExecution,
  listExecutions,
} from "./queries.ts";

const TEXTS_KEPT_DAYS = 30;

export interface Run {
  id: string;
  userId: string;
  /** Sealed with the output when it is done; null when nothing is to be stored. */
  variables: Record<string, string> | null;
  startedAtMs: number;
  /** What it took of its key's limits; null: the sandbox. */
  call: OpenCall | null;
}

interface RunWish {
  product: { id: string };
  version: string;
  key: UsableKey;
  model: string;
  messages: readonly Message[];
  variables: Record<string, string>;
  options: { maxTokens?: number | undefined; store: boolean };
}

const sealContext = (userId: string, id: string) => `execution|${userId}|${id}`;

/** Writes the run down before the provider is called, within the limits that the key's owner set. */
export async function startRun(ctx: Context, caller: Member, wish: RunWish): Promise<Run> {
  const id = ctx.newId();
  const now = ctx.now();
  const call = toOpenCall(ctx, wish.key, { ...wish, executionId: id });
  const refusedBy = await insertExecution(
    ctx.db,
    {
      id,
      userId: caller.userId,
      productId: wish.product.id,
      productVersion: wish.version,
      providerKeyId: wish.key.id,
      provider: wish.key.provider,
      model: wish.model,
      createdAt: now,
      leaseUntil: new Date(now.getTime() + LEASE_MS),
    },
    call?.reservation ?? null,
  );
  mustBeWithinLimits(refusedBy);
  return {
    id,
    userId: caller.userId,
    variables: wish.options.store ? wish.variables : null,
    startedAtMs: performance.now(),
    call,
  };
}

const durationOf = (run: Run) => Math.round(performance.now() - run.startedAtMs);

/** The provider was called, perhaps billed: a row that cannot be written must not lose the answer. */
async function end(ctx: Context, run: Run, values: ExecutionEnd, outcome: CallOutcome): Promise<void> {
  try {
    await endExecution(ctx.db, run.id, values, toCallEnd(ctx, run.call, outcome));
  } catch (error) {
    ctx.log.error({ execution: run.id, err: error }, "the end of an execution could not be recorded");
  }
}

/** What the provider counted, and what that costs. */
export interface Spent {
  usage: TokenUsage;
  cost: Cost;
}

const spentValues = ({ usage, cost }: Spent) => ({
  prompt_tokens: usage.promptTokens,
  completion_tokens: usage.completionTokens,
  cost_usd: cost.estimatedCost,
  cost_known: cost.costKnown,
});

export async function completed(ctx: Context, run: Run, answer: ProviderAnswer, cost: Cost): Promise<number> {
  const duration_ms = durationOf(run);
  const texts = run.variables && JSON.stringify({ variables: run.variables, output: answer.output });
  const ended = {
    status: "completed" as const,
    model: answer.model,
    sealed_texts: texts === null ? null : ctx.vault.seal(texts, sealContext(run.userId, run.id)),
    finish_reason: answer.finishReason,
    attempts: answer.attempts,
    ...spentValues({ usage: answer.usage, cost }),
    duration_ms,
    completed_at: ctx.now(),
  };
  await end(ctx, run, ended, { cost });
  return duration_ms;
}

interface Failure {
  cause: unknown;
  clientGone: boolean;
  /** A provider may count, and bill, although it gave no answer. */
  spent: Spent | null;
}

/** Records why there is no answer, and gives the error to throw. Nothing in it quotes the prompt or the key. */
export async function failed(ctx: Context, run: Run, failure: Failure): Promise<unknown> {
  const { cause, clientGone, spent } = failure;
  const told = toFailure(ctx, run, cause, clientGone);
  const ended = {
    status: clientGone ? ("canceled" as const) : ("failed" as const),
    error_code: told.recorded,
    error_message: told.error.message,
    attempts: cause instanceof ProviderFault ? cause.attempts : 0,
    ...(spent && spentValues(spent)),
    duration_ms: durationOf(run),
    completed_at: ctx.now(),
  };
  await end(ctx, run, ended, { cause, cost: spent?.cost ?? null });
  return told.recorded === "INTERNAL_ERROR" ? cause : told.error;
}

function toFailure(ctx: Context, run: Run, cause: unknown, clientGone: boolean) {
  const executionId = toId("exec", run.id);
  if (cause instanceof ProviderFault) {
    const details = { ...cause.details, executionId };
    return {
      recorded: cause.code,
      error: new ApiError(cause.code, cause.message, details, cause.retryAfterSeconds),
    };
  }
  const unavailable = (message: string) => new ApiError("SERVICE_UNAVAILABLE", message, { executionId });
  if (clientGone) return { recorded: "client_gone", error: unavailable("The caller went away.") };
  if (ctx.shutdown.aborted) {
    const error = unavailable("The service is shutting down; the call was given up.");
    return { recorded: "shutdown", error };
  }
  return { recorded: "INTERNAL_ERROR", error: new ApiError("INTERNAL_ERROR") };
}

function toExecution(row: ExecutionRow): Execution {
  const { promptTokens, completionTokens } = row;
  return {
    id: toId("exec", row.id),
    type: "PROMPT",
    status: row.status,
    productId: toId("prod", row.productId),
    productVersion: row.productVersion,
    provider: row.provider,
    model: row.model,
    usage:
      promptTokens === null || completionTokens === null
        ? null
        : {
            promptTokens,
            completionTokens,
            totalTokens: promptTokens + completionTokens,
            estimatedCost: Number(row.costUsd ?? 0),
            costKnown: row.costKnown ?? false,
          },
    duration: row.durationMs === null ? null : row.durationMs / 1000,
    error: row.errorCode === null ? null : { code: row.errorCode, message: row.errorMessage ?? "" },
    createdAt: row.createdAt.toISOString(),
    completedAt: row.completedAt?.toISOString() ?? null,
  };
}

interface ExecutionQuery extends Paging {
  status?: string | undefined;
  productId?: string | undefined;
  type?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

const nothing: Page<Execution> = { items: [], total: 0 };

export async function listOwnExecutions(
  ctx: Context,
  caller: Member,
  query: ExecutionQuery,
): Promise<Page<Execution>> {
  const productId = query.productId === undefined ? undefined : toUuid("prod", query.productId);
  if (productId === null || (query.type !== undefined && query.type !== "PROMPT")) return nothing;
  const page = await listExecutions(ctx.db, caller.userId, {
    ...query,
    productId,
    from: query.from === undefined ? undefined : new Date(query.from),
    to: query.to === undefined ? undefined : new Date(query.to),
  });
  return mapPage(page, toExecution);
}

async function mustFind(ctx: Context, caller: Member, executionId: string): Promise<ExecutionRow> {
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
  const row = await mustFind(ctx, caller, executionId);
  const sealed = (await findTexts(ctx.db, row.id))?.sealed;
  const texts = sealed
    ? (JSON.parse(ctx.vault.open(sealed, sealContext(caller.userId, row.id))) as {
        variables: Record<string, string>;
        output: string;
      })
    : null;
  return {
    ...toExecution(row),
    variables: texts?.variables ?? null,
    output: texts?.output ?? null,
    finishReason: row.finishReason,
    attempts: row.attempts,
  };
}

export async function removeExecution(ctx: Context, caller: Member, executionId: string) {
  const row = await mustFind(ctx, caller, executionId);
  if (row.status === "running") {
    throw new ApiError("INVALID_STATE", "The execution still runs.", {
      current: row.status,
      allowed: ["completed", "failed", "canceled"],
    });
  }
  await eraseExecution(ctx.db, row.id, ctx.now());
  return { id: toId("exec", row.id), deleted: true as const };
}

/** Ends runs whose process died, and forgets texts after 30 days. */
export async function tidyExecutions(ctx: Context): Promise<void> {
  const now = ctx.now();
  await failAbandoned(ctx.db, now);
  await eraseTextsBefore(ctx.db, daysAfter(now, -TEXTS_KEPT_DAYS));
}
