import type { RunReceipt } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import type { ItemSource } from "../../core/read-each.ts";
import type { Queries } from "../../platform/db/database.ts";
import type { StreamedEvent } from "../../platform/http/route.ts";
import type { ExecutionRow } from "./queries.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** Registered in base.ts, so that the execution history imports neither prompt runs nor the workflow engine. */
    executionKinds: {
      readonly PROMPT: ExecutionKind;
      readonly WORKFLOW: ExecutionKind<AsyncIterable<StreamedEvent>>;
    };
  }
}

/** What differs between executions of one type and those of another; the history is the same for all. */
export interface ExecutionKind<Events = ItemSource<StreamedEvent>> {
  /** Whether `lastEventId` has the form of this kind's event ids. null means the beginning and is always valid. */
  isEventId(lastEventId: string | null): boolean;
  /** The events after `lastEventId` (null: from the beginning), up to the one that ends the execution. */
  streamEvents(
    ctx: Context,
    execution: ExecutionRow,
    lastEventId: string | null,
    signal: AbortSignal,
  ): Events;
  /** Called after `cancel_requested_at` is written. Resolves when the execution has ended, or when it cannot end yet. */
  cancel(ctx: Context, execution: ExecutionRow): Promise<void>;
  /** The names of the models that were called, without repeats. */
  listModels(db: Queries, execution: ExecutionRow): Promise<string[]>;
  /** The usage of each step, for the run receipt. Prompts have no steps. */
  listStepUsage?(db: Queries, execution: ExecutionRow): Promise<NonNullable<RunReceipt["steps"]>>;
}
