import "./workflow-run.css";
import type { ExecutionDetail, ProductDetail } from "@stoa/sdk";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { lazy, type ReactNode, useMemo } from "react";
import { stoa } from "../../api.ts";
import { PlayIcon, StopIcon } from "../../components/icons.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import { Part } from "../../components/part.tsx";
import { ReceiptButton } from "../../components/running/receipt-dialog.tsx";
import { RunFailureStrip } from "../../components/running/run-failure.tsx";
import { RunInput } from "../../components/running/run-input.tsx";
import { isActive, useSeconds, useStop } from "../../components/running/run-output.tsx";
import { ShareButton } from "../../components/running/share-dialog.tsx";
import { type RunActions, StepOutput, StepPane } from "../../components/running/step-pane.tsx";
import { type ShownStep, showSteps, stepCost } from "../../components/running/step-state.ts";
import { CostFigure, Tally } from "../../components/running/tally.tsx";
import { useWorkflowCosts } from "../../components/running/workflow-costs.ts";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { StatusTag, type Tone } from "../../components/status-tag.tsx";
import { formatDuration } from "../../lib/duration.ts";
import { statusOf } from "../../lib/errors.ts";
import { useEndOfRun, useFollowedRun } from "../../lib/follow-run.ts";
import { formatCost, formatExactTime, formatTime } from "../../lib/format.ts";
import { showError } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useRunKeys } from "../../lib/use-run-keys.ts";
import { parseDefinition } from "../../lib/workflow-definition.ts";
import { executionQuery, stepsQuery, versionQuery } from "../../queries/running.ts";

const Graph = lazy(() => import("../../components/running/workflow-graph.tsx"));

/** Beside the events, in case one is missed. */
const POLL_MS = 15_000;

interface WorkflowRunProps {
  executionId: string;
  /** undefined: it cannot be read any more. */
  product: ProductDetail | undefined;
  /** Below the result. */
  more?: ReactNode;
}

/** A run of a workflow, step by step, as it happens. */
export default function WorkflowRun({ executionId, product, more }: WorkflowRunProps) {
  const {
    data: execution,
    error,
    refetch,
  } = useQuery({
    ...executionQuery(executionId),
    refetchInterval: ({ state }) => (state.data && isActive(state.data) ? POLL_MS : false),
  });
  // A request that fails once does not take away what is known; a run that was deleted is gone.
  if (error && (!execution || statusOf(error) === 404))
    return (
      <div className="run-list">
        <ErrorStrip error={error} onRetry={() => void refetch()} />
      </div>
    );
  if (!execution) return <SkeletonRows />;
  return <KnownRun execution={execution} product={product} more={more} />;
}

interface KnownRunProps {
  execution: ExecutionDetail;
  product: ProductDetail | undefined;
  more: ReactNode;
}

function KnownRun({ execution, product, more }: KnownRunProps) {
  const { step: chosen } = useSearch({ strict: false }) as { step?: string };
  const isRunning = isActive(execution);
  const followed = useFollowedRun(execution.id, isRunning);
  useEndOfRun(execution.id, execution.status);
  const { data: runs } = useQuery({
    ...stepsQuery(execution.id),
    refetchInterval: isRunning ? POLL_MS : false,
  });
  const defined = useDefinition(product, execution.productVersion);
  const steps = useMemo(() => showSteps(defined, runs ?? []), [defined, runs]);
  const { isStopping, stop } = useStop(isRunning ? execution.id : undefined);
  const { start, isPending } = useChanges(execution.id);
  const costs = useWorkflowCosts(product, execution, steps);
  const spent = execution.usage
    ? execution.usage.costKnown
      ? execution.usage.estimatedCost
      : null
    : steps.reduce((sum, step) => sum + (stepCost(step) ?? 0), 0);
  useRunKeys({ run: () => {}, ...(isRunning && { stop: () => void stop() }) });
  const selected = steps.find(({ id }) => id === chosen) ?? stepInNeed(steps, execution);
  const retryAmount =
    costs.rest === null ? "" : costs.rest === 0 ? ", free" : `, about ${formatCost(costs.rest)}`;
  const actions: RunActions = {
    decide: (stepId, kind) => start({ stepId, kind }),
    retry: () => start({ stepId: "", kind: "retry" }),
    isPending,
    retryAmount,
  };
  return (
    <>
      <div className="run-meter workflow-meter">
        <div className="stack">
          <RunState execution={execution} steps={steps} isInterrupted={followed.phase === "interrupted"} />
          <Tally spent={spent} range={costs.range} />
        </div>
        <CostFigure spent={spent} range={costs.range} />
        {isRunning ? (
          <button type="button" className="btn danger" disabled={isStopping} onClick={() => void stop()}>
            <StopIcon /> {isStopping ? "Canceling" : "Cancel run"}
          </button>
        ) : (
          product && (
            <Link
              to="/run/$productId"
              params={{ productId: product.id }}
              search={{ from: execution.id }}
              className="btn"
            >
              <PlayIcon /> Run again
            </Link>
          )
        )}
      </div>
      <div className="workflow-lay">
        <Part fallback={<SkeletonRows count={3} />}>
          <Graph steps={steps} selected={selected?.id} />
        </Part>
        {selected ? (
          <StepPane
            key={selected.id}
            step={selected}
            steps={steps}
            execution={execution}
            actions={actions}
            top={
              chosen !== undefined &&
              !isRunning && (
                <Link
                  to="."
                  search={(old: object) => ({ ...old, step: undefined })}
                  className="link sm"
                  resetScroll={false}
                >
                  {execution.status === "completed" ? "Show the result" : "Show the whole run"}
                </Link>
              )
            }
          />
        ) : (
          <ResultPane execution={execution} canRetry={steps.length > 0} actions={actions} more={more} />
        )}
      </div>
      {selected?.look === "ask" && (
        <div className="stopbar phone">
          <button
            type="button"
            className="btn primary"
            disabled={isPending}
            onClick={() => actions.decide(selected.id, "approve")}
          >
            Approve
          </button>
          <button
            type="button"
            className="btn danger"
            disabled={isPending}
            onClick={() => actions.decide(selected.id, "reject")}
          >
            Reject
          </button>
        </div>
      )}
    </>
  );
}

/** null: it is not known, and the page shows the steps that have started. */
function useDefinition(product: ProductDetail | undefined, version: string) {
  // A product that was read without its content was still run: to read the version opens nothing new.
  const own = product?.version === version ? product.content : null;
  const { data } = useQuery({
    ...versionQuery(product?.id ?? "", version),
    enabled: product !== undefined && product.access.reason !== "none" && own === null,
  });
  const content = own ?? data?.content;
  return useMemo(() => parseDefinition(content)?.steps ?? null, [content]);
}

/** The step that a person should see: it waits for them, has failed, or runs. A run that has completed shows its result. */
function stepInNeed(steps: ShownStep[], { status }: ExecutionDetail): ShownStep | undefined {
  if (status === "completed") return undefined;
  const isFatal = ({ look, defined }: ShownStep) => look === "fail" && defined?.onError !== "continue";
  return (
    steps.find(({ look }) => look === "ask") ??
    (status === "failed" ? steps.find(isFatal) : undefined) ??
    steps.find(({ look }) => look === "run")
  );
}

interface Change {
  stepId: string;
  kind: "approve" | "reject" | "retry";
}

const REFUSED: Record<Change["kind"], string> = {
  approve: "The step was not approved",
  reject: "The step was not rejected",
  retry: "The run was not retried",
};

function useChanges(executionId: string) {
  const client = useQueryClient();
  const refresh = async () => {
    await client.invalidateQueries({ queryKey: executionQuery(executionId).queryKey });
    void client.invalidateQueries({ queryKey: ["executions"] });
  };
  const { start, isPending, variables } = useAction({
    run: async ({ stepId, kind }: Change, idempotencyKey) => {
      if (kind === "retry") await stoa.ai.executions.retry(executionId, { idempotencyKey });
      else await stoa.ai.executions[kind](executionId, stepId, { idempotencyKey });
      await refresh();
    },
    onError: (error) => {
      showError(REFUSED[variables?.kind ?? "retry"], error);
      // Another tab may have been faster.
      void refresh();
    },
  });
  return { start, isPending };
}

const FINISHED = new Set(["done", "skip"]);

interface RunStateProps {
  execution: ExecutionDetail;
  steps: ShownStep[];
  isInterrupted: boolean;
}

function RunState({ execution, steps, isInterrupted }: RunStateProps) {
  const { status, createdAt, duration } = execution;
  const isRunning = isActive(execution);
  const seconds = useSeconds(createdAt, isRunning);
  const finished = steps.filter(({ look }) => FINISHED.has(look)).length;
  const [tone, word] = describeState(execution, steps);
  return (
    <div className="row sm wrap" role="status">
      {status === "running" ? (
        <>
          <span className="run-live" aria-hidden="true" />
          <span className="m">{word}</span>
        </>
      ) : (
        <StatusTag tone={tone}>{word}</StatusTag>
      )}
      {isInterrupted && <span className="warning">Connection lost. The run continues.</span>}
      {steps.length > 0 && (
        <span className="m num">
          {finished} of {steps.length} steps
        </span>
      )}
      <span className="soft num desk" title={formatExactTime(createdAt)}>
        {isRunning && status !== "waiting"
          ? formatDuration(seconds)
          : status === "waiting"
            ? `started ${formatTime(createdAt)}`
            : duration !== null && formatDuration(duration)}
      </span>
    </div>
  );
}

function describeState({ status }: ExecutionDetail, steps: ShownStep[]): [Tone, string] {
  const named = (look: ShownStep["look"]) => steps.find((step) => step.look === look)?.id;
  const failed = steps.find(({ look, defined }) => look === "fail" && defined?.onError !== "continue")?.id;
  const [asking, running] = [named("ask"), named("run")];
  if (status === "queued") return ["neutral", "Queued"];
  if (status === "waiting" && asking) return ["warning", "Waits for your approval"];
  if (status === "waiting") return ["accent", running ? `Waiting in ${running}` : "Waiting"];
  if (status === "running") return ["accent", running ? `Running ${running}` : "Running"];
  if (status === "completed") return ["good", "Completed"];
  if (status === "failed") return ["bad", failed ? `Failed at ${failed}` : "Failed"];
  return ["neutral", "Canceled"];
}

interface ResultPaneProps {
  execution: ExecutionDetail;
  canRetry: boolean;
  actions: RunActions;
  more: ReactNode;
}

function ResultPane({ execution, canRetry, actions, more }: ResultPaneProps) {
  const { status, output } = execution;
  return (
    <aside className="step-pane" aria-label="The run">
      {status === "completed" && (
        <>
          <h2 className="h3">Result</h2>
          <StepOutput
            output={output}
            label=""
            actions={
              <>
                <ShareButton execution={execution} />
                <ReceiptButton executionId={execution.id} />
              </>
            }
          />
        </>
      )}
      {(status === "failed" || status === "canceled") && (
        <>
          <RunFailureStrip execution={execution} followed={NOT_FOLLOWED} />
          {canRetry && (
            <div className="stack">
              <button
                type="button"
                className="btn primary"
                disabled={actions.isPending}
                onClick={actions.retry}
              >
                Retry the run{actions.retryAmount}
              </button>
              <p className="xs soft">Finished steps are not repeated and not charged again.</p>
            </div>
          )}
        </>
      )}
      {isActive(execution) && (
        <p className="soft">The steps start in a moment. The run continues without this page.</p>
      )}
      <div className="stack beam thin">
        <h2 className="h3">Input</h2>
        <RunInput variables={execution.variables} />
      </div>
      {more}
    </aside>
  );
}

const NOT_FOLLOWED = { phase: "ended", text: "", failure: null } as const;
