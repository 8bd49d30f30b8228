import type { Context } from "../../core/context.ts";
import type { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { inSpan, markFailed } from "../../core/telemetry/tracing.ts";
import type { Prepared } from "./prepare-run.ts";
import type { Run } from "./run-record.ts";

/** A run of a prompt as a span, and counted: which product, and how it ended. Its texts are nowhere in it. */
export const traceRun = <Outcome extends { result: unknown } | { error: ApiError }>(
  ctx: Context,
  run: Run,
  prepared: Prepared,
  work: () => Promise<Outcome>,
): Promise<Outcome> =>
  inSpan("run prompt", {}, async (span) => {
    if (span.isRecording()) span.setAttributes(toAttributes(run, prepared));
    const outcome = await work();
    const status = statusOf(run, outcome);
    span.setAttribute("stoa.execution.status", status);
    if ("error" in outcome) markFailed(span, status === "canceled" ? status : outcome.error.code);
    ctx.metrics.runs(1, { "stoa.execution.type": "PROMPT", "stoa.execution.status": status });
    return outcome;
  });

const toAttributes = ({ id, mode }: Run, { product, version }: Prepared) => ({
  "stoa.execution.id": toId("exec", id),
  "stoa.execution.type": "PROMPT",
  "stoa.execution.mode": mode,
  "stoa.product.id": toId("prod", product.id),
  "stoa.product.version": version,
});

function statusOf({ live }: Run, outcome: object): "completed" | "failed" | "canceled" {
  if ("result" in outcome) return "completed";
  return live.givenUp ? "canceled" : "failed";
}
