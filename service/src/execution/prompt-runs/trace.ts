import type { Context } from "../../core/context.ts";
import type { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { inSpan, markFailed } from "../../core/telemetry/tracing.ts";
import type { PreparedRun } from "./prepare-run.ts";
import type { PromptRun } from "./run-record.ts";

/** Records a run as a span and in metrics, without its texts. */
export const traceRun = <Outcome extends { result: unknown } | { error: ApiError }>(
  ctx: Context,
  run: PromptRun,
  prepared: PreparedRun,
  work: () => Promise<Outcome>,
): Promise<Outcome> =>
  inSpan("run prompt", {}, async (span) => {
    if (span.isRecording()) span.setAttributes(toAttributes(run, prepared));
    const result = await work();
    const status = statusOf(run, result);
    span.setAttribute("stoa.execution.status", status);
    if ("error" in result) markFailed(span, status === "canceled" ? status : result.error.code);
    ctx.metrics.runs(1, { "stoa.execution.type": "PROMPT", "stoa.execution.status": status });
    return result;
  });

const toAttributes = ({ id, mode }: PromptRun, { product, version }: PreparedRun) => ({
  "stoa.execution.id": toId("exec", id),
  "stoa.execution.type": "PROMPT",
  "stoa.execution.mode": mode,
  "stoa.product.id": toId("prod", product.id),
  "stoa.product.version": version,
});

function statusOf({ live }: PromptRun, result: object): "completed" | "failed" | "canceled" {
  if ("result" in result) return "completed";
  return live.abortReason ? "canceled" : "failed";
}
