import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../../core/context.ts";
import { hasRunEnded } from "./queries.ts";

/** Interval for lost notifications. */
const POLL_MS = 1_000;

/** Resolves with whether the run ends within `ms`. The real clock counts, because a client holds its connection open. */
export async function waitForEnd(ctx: Context, id: string, ms: number): Promise<boolean> {
  const until = performance.now() + ms;
  for (;;) {
    const reported = new AbortController();
    let hasEnded = false;
    const unsubscribe = ctx.runNotifications.onRun(id, (isEnd) => {
      hasEnded ||= isEnd;
      reported.abort();
    });
    try {
      // Subscribes before it reads, so that it misses no end. A run of this process reports its end without a read.
      if (!ctx.localWorkers.drives(id) && (await hasRunEnded(ctx.db, id))) return true;
      const left = until - performance.now();
      if (left <= 0 || ctx.shutdown.aborted) return false;
      await sleep(Math.min(left, POLL_MS), null, {
        signal: AbortSignal.any([reported.signal, ctx.shutdown]),
      }).catch(() => {});
      if (hasEnded) return true;
    } finally {
      unsubscribe();
    }
  }
}
