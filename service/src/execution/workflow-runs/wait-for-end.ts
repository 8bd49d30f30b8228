import type { WorkflowExecution } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { hasRunEnded } from "./queries.ts";

/** Interval for lost notifications. */
const POLL_MS = 1_000;

export interface AwaitedEnd {
  hasEnded: boolean;
  /** As a driver of this process wrote it; null: it must be read. */
  execution: WorkflowExecution | null;
}

/** Waits at most `ms` for the end of a run. The real clock counts, because a client holds its connection open. */
export async function waitForEnd(ctx: Context, id: string, ms: number): Promise<AwaitedEnd> {
  const until = performance.now() + ms;
  for (;;) {
    const { promise: reported, resolve: report } = Promise.withResolvers<WorkflowExecution | null>();
    const wake = () => report(null);
    // Without an execution, the report may be late and about an end before a retry: the run is read.
    const unsubscribe = ctx.runNotifications.onRun(id, report);
    ctx.shutdown.addEventListener("abort", wake);
    let timer: NodeJS.Timeout | undefined;
    try {
      // Subscribes before it reads, so that it misses no end. A run of this process reports its end without a read.
      if (!ctx.localWorkers.drives(id) && (await hasRunEnded(ctx.db, id)))
        return { hasEnded: true, execution: null };
      const left = until - performance.now();
      if (left <= 0 || ctx.shutdown.aborted) return { hasEnded: false, execution: null };
      timer = setTimeout(wake, Math.min(left, POLL_MS));
      const execution = await reported;
      if (execution) return { hasEnded: true, execution };
    } finally {
      clearTimeout(timer);
      unsubscribe();
      ctx.shutdown.removeEventListener("abort", wake);
    }
  }
}
