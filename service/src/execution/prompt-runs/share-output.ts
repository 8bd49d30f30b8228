import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../../core/context.ts";
import { updatePartialOutput } from "../executions/queries.ts";
import { sealTexts } from "../executions/texts.ts";
import type { PromptRun } from "./run-record.ts";

const SHARE_INTERVAL_MS = 250;
/** A reader of another process says so again, well before this is over. */
const WATCH_TIMEOUT_MS = 5_000;

/** While another process has readers of this run, what it has said is written where they find it. Otherwise nothing is. */
export function shareWhenWatched(ctx: Context, run: PromptRun): void {
  let watchedUntil = 0;
  let isSharing = false;
  run.live.onWatch = () => {
    watchedUntil = performance.now() + WATCH_TIMEOUT_MS;
    if (isSharing || !run.variables) return;
    isSharing = true;
    void share(ctx, run, () => performance.now() < watchedUntil)
      .catch((error) => ctx.log.warn({ execution: run.id, err: error }, "a run could not be shared"))
      .finally(() => {
        isSharing = false;
      });
  };
}

async function share(ctx: Context, run: PromptRun, isWatched: () => boolean): Promise<void> {
  for (let shared = 0; isWatched() && !run.live.endEvent; await sleep(SHARE_INTERVAL_MS)) {
    const { text } = run.live;
    if (text.length === shared) continue;
    shared = text.length;
    await updatePartialOutput(
      ctx.db,
      run.id,
      sealTexts(ctx, run, { variables: run.variables!, output: String(text) }),
    );
  }
}
