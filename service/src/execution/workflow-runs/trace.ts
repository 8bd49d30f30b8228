import { type Span, trace } from "@opentelemetry/api";
import type { Context } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { addSpanLink, inSpan, markFailed, tracer, withSpan } from "../../core/telemetry/tracing.ts";
import type { RunEnd } from "./run-end.ts";
import type { ClaimedRun, RunRow } from "./run-queries.ts";
import { NO_ITEM, type StepRun, type StepWork } from "./run-state.ts";
import type { RunInput } from "./sealed-texts.ts";
import type { PreparedStep } from "./step-result.ts";

/** One span for each lease of a run, in a trace of its own. */
export const traceDrive = ({ id }: ClaimedRun, drive: () => Promise<void>): Promise<void> =>
  inSpan("invoke_workflow", { "gen_ai.operation.name": "invoke_workflow" }, (span) => {
    if (span.isRecording()) span.setAttribute("stoa.execution.id", toId("exec", id));
    return drive();
  });

/** Adds the product to the span of the run, and links the request or step that started the run. */
export function traceRunInput({ productId, version, traceparent }: RunInput, { depth }: RunRow): void {
  const span = trace.getActiveSpan();
  if (!span?.isRecording()) return;
  span.setAttributes({
    "stoa.execution.type": "WORKFLOW",
    "stoa.product.id": toId("prod", productId),
    "stoa.product.version": version,
    "stoa.workflow.depth": depth,
  });
  addSpanLink(span, traceparent);
}

export function traceRunEnd(ctx: Context, runEnd: RunEnd, createdAt: Date): void {
  const { status } = runEnd;
  const errorType = status === "failed" ? runEnd.error.code : status === "canceled" ? status : null;
  ctx.metrics.runs(1, { "stoa.execution.type": "WORKFLOW", "stoa.execution.status": status });
  const seconds = (ctx.now().getTime() - createdAt.getTime()) / 1000;
  ctx.metrics.workflowDuration(seconds, errorType === null ? {} : { "error.type": errorType });
  const span = trace.getActiveSpan();
  span?.setAttribute("stoa.execution.status", status);
  if (span && errorType !== null) markFailed(span, errorType);
}

/** The span of a step or an item, from its preparation to its result, without waits. */
export class StepTrace {
  readonly #span: Span;

  constructor({ stepId, item, attempt }: StepRun, { type }: StepWork) {
    this.#span = tracer.startSpan(`step ${type}`, {
      attributes: {
        "stoa.step.id": stepId,
        "stoa.step.type": type,
        "stoa.step.attempt": attempt + 1,
        ...(item !== NO_ITEM && { "stoa.step.index": item }),
      },
    });
  }

  within<T>(work: () => T): T {
    return withSpan(this.#span, work);
  }

  /** The call of a step continues its span. */
  end(prepared: PreparedStep): void {
    if (prepared.kind === "call") return;
    this.#span.setAttribute("stoa.step.result", prepared.kind);
    if (prepared.kind === "failed") markFailed(this.#span, prepared.error.code);
    this.#span.end();
  }
}
