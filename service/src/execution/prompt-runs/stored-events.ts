import { errorCodes } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { GrowingText } from "../../core/growing-text.ts";
import { toId } from "../../core/ids.ts";
import { errorBodyOf } from "../../platform/http/error-response.ts";
import type { StreamedEvent } from "../../platform/http/route.ts";
import { type ExecutionRow, findExecution, findTexts, notifyExecution } from "../executions/queries.ts";
import { openTexts } from "../executions/texts.ts";
import { toUsage } from "../executions/usage.ts";
import { toDeltaEvent, toStartedEvent, toStreamedEnd } from "./event-format.ts";
import type { EndEvent } from "./live-runs.ts";

/** Interval of the notifications that this process has a reader. */
const WATCH_INTERVAL_MS = 1_000;

/** The events of a prompt run from the database: the output that its process shares, or all of it after the end. */
export async function* streamStoredEvents(
  ctx: Context,
  execution: ExecutionRow,
  offset: number,
  signal: AbortSignal,
): AsyncGenerator<StreamedEvent> {
  if (offset === 0) yield toStartedEvent(execution.id);
  let watchedAt = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    const row = await findExecution(ctx.db, execution.userId, execution.id);
    // The execution was deleted meanwhile.
    if (!row) return;
    const hasEnded = row.completedAt !== null;
    const { text, isLast } = sliceOutput(await readOutput(ctx, row), offset);
    const start = offset;
    const pieceAt = () => text.after(offset - start, hasEnded && isLast);
    for (let piece = pieceAt(); piece !== ""; piece = pieceAt()) {
      offset += piece.length;
      yield toDeltaEvent(piece, offset);
    }
    if (!isLast) continue;
    if (hasEnded) return yield toStreamedEnd(toEndEvent(ctx, row, await readOutput(ctx, row)));
    if (performance.now() - watchedAt > WATCH_INTERVAL_MS) {
      await notifyExecution(ctx.db, "execution_watch", row.id);
      watchedAt = performance.now();
    }
    await ctx.liveRuns.waitForRemoteChange(row.id, signal);
  }
}

/** UTF-16 units. A slow reader holds one slice in memory, and reads the next one from the database. */
const SLICE = 512 * 1024;

function sliceOutput(output: string | null, offset: number): { text: GrowingText; isLast: boolean } {
  const left = output?.slice(offset) ?? "";
  // A copy, because a slice of a string keeps the whole string in memory.
  const copy = Buffer.from(left.slice(0, SLICE), "utf16le").toString("utf16le");
  return { text: new GrowingText(copy), isLast: left.length <= SLICE };
}

export async function readOutput(ctx: Context, row: ExecutionRow): Promise<string | null> {
  const sealed = (await findTexts(ctx.db, row.id))?.sealed;
  return sealed ? (openTexts(ctx, row, sealed).output as string) : null;
}

function toEndEvent(ctx: Context, row: ExecutionRow, output: string | null): EndEvent {
  const error = toRunError(row);
  if (error) return { type: "execution.failed", data: errorBodyOf(ctx, error) };
  return { type: "execution.completed", data: toExecutionResult(row, output) };
}

/** The stored result; its output is null if it is not stored. */
export const toExecutionResult = <Output>(row: ExecutionRow, output: Output) => ({
  executionId: toId("exec", row.id),
  output,
  usage: toUsage(row),
  metadata: {
    model: row.model,
    duration: (row.durationMs ?? 0) / 1000,
    provider: row.provider,
    finishReason: row.finishReason,
    attempts: row.attempts,
    productVersion: row.productVersion,
    mode: row.mode,
  },
});

/** null: the run has completed or still runs. */
export function toRunError(row: ExecutionRow): ApiError | null {
  if (row.status !== "failed" && row.status !== "canceled") return null;
  const executionId = toId("exec", row.id);
  const message = row.errorMessage ?? undefined;
  if (row.status === "canceled")
    return new ApiError("INVALID_STATE", message, { executionId, current: "canceled" });
  const code = errorCodes.find((known) => known === row.errorCode);
  if (!code) return new ApiError("SERVICE_UNAVAILABLE", message, { executionId });
  return new ApiError(code, message, { ...row.fault, executionId });
}
