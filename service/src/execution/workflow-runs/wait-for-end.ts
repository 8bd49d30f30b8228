import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../../core/context.ts";
import { hasRunEnded } from "./queries.ts";

/** Also without a notice. */
const POLL_MS = 1_000;

/** Resolves with whether a run has ended by then; the time is that of the process, because somebody holds a line open for it. */
export async function waitForEnd(ctx: Context, id: string, ms: number): Promise<boolean> {
  const until = performance.now() + ms;
  for (;;) {
    const reported = new AbortController();
    const forget = ctx.runNotifications.onRun(id, () => reported.abort());
    try {
      // Heard first, then looked at: what ends in between is not missed.
      if (await hasRunEnded(ctx.db, id)) return true;
      const left = until - performance.now();
      if (left <= 0 || ctx.shutdown.aborted) return false;
      await sleep(Math.min(left, POLL_MS), null, {
        signal: AbortSignal.any([reported.signal, ctx.shutdown]),
      }).catch(() => {});
    } finally {
      forget();
    }
  }
}
