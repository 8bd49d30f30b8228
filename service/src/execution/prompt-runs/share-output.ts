import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../../core/context.ts";
import { updatePartialOutput } from "../executions/queries.ts";
import { sealTexts } from "../executions/texts.ts";
import type { PromptRun } from "./run-record.ts";

const SHARE_INTERVAL_MS = 250;
/** A process with readers repeats its notification within this time. */
const WATCH_TIMEOUT_MS = 5_000;

/** Stores the output so far while other processes have readers of this run. */
export function shareWhenWatched(ctx: Context, run: PromptRun): void {
  let watchedUntil = 0;
  let isSharing = false;
  run.live.onWatch = () => {
    watchedUntil = performance.now() + WATCH_TIMEOUT_MS;
    if (isSharing || !run.variables) return;
    isSharing = true;
    void share(ctx, run, () => performance.now() < watchedUntil)
      .catch((error) =>
        ctx.log.warn(
          { execution: run.id, err: error },
          "the output of a run could not be stored for other processes",
        ),
      )
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
