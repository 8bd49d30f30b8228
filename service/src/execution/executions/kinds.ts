import type { RunReceipt } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import type { StreamedEvent } from "../../platform/http/route.ts";
import type { ExecutionRow, ExecutionType } from "./queries.ts";

/** What differs between executions of one type and those of another; the history is the same for all. */
export interface ExecutionKind {
  /** Whether one of its events can have this id; null: nothing was heard yet. */
  isEventId(lastEventId: string | null): boolean;
  /** What happens from after the last event heard (null: from the beginning) up to the one that ends it. */
  streamEvents(
    ctx: Context,
    execution: ExecutionRow,
    lastEventId: string | null,
    signal: AbortSignal,
  ): AsyncIterable<StreamedEvent>;
  /** `cancel_requested_at` is written: whoever runs it must hear of that. Resolves when it has ended, or cannot yet. */
  cancel(ctx: Context, execution: ExecutionRow): Promise<void>;
  /** What each of its steps took, for its receipt. */
  listStepUsage?(ctx: Context, execution: ExecutionRow): Promise<NonNullable<RunReceipt["steps"]>>;
}

/** app.ts gives them, so that this room knows nothing of the engine that runs workflows. */
export type ExecutionKinds = Readonly<Partial<Record<ExecutionType, ExecutionKind>>>;
