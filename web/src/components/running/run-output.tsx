import "./run-output.css";
import type { ExecutionDetail } from "@stoa/sdk";
import { useEffect, useState } from "react";
import { noticeEndOfSession, stoa } from "../../api.ts";
import { formatDuration } from "../../lib/duration.ts";
import type { FollowedRun } from "../../lib/follow-run.ts";
import { formatCount } from "../../lib/format.ts";
import { type CostRange, costOf, estimateTokens } from "../../lib/run-costs.ts";
import { runStatus } from "../../lib/runs.ts";
import { showError } from "../../lib/toasts.ts";
import { CopyButton } from "../copy-button.tsx";
import { StopIcon } from "../icons.tsx";

import { StatusTag } from "../status-tag.tsx";
import { OutputText, ViewSwitch } from "./output-text.tsx";
import { RunFailureStrip } from "./run-failure.tsx";
import { useModels } from "./run-target.ts";
import { CostFigure, Tally } from "./tally.tsx";

const ACTIVE = new Set(["queued", "running", "waiting"]);
export const isActive = ({ status }: { status: string }): boolean => ACTIVE.has(status);

/** Rendering a longer text anew for each piece would slow the page down. */
const RENDERED_WHILE_STREAMING = 40_000;

export function RunStatus({ status }: { status: string }) {
  const [tone, word] = runStatus({ status });
  return <StatusTag tone={tone}>{word}</StatusTag>;
}

interface RunMeterProps {
  execution: ExecutionDetail;
  followed: FollowedRun;
  range: CostRange | null;
  promptTokens?: number;
}

/** Seconds since a time, while it runs. */
export function useSeconds(since: string, isRunning: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isRunning) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, [isRunning]);
  return Math.max(0, (now - Date.parse(since)) / 1_000);
}

/** A prompt runs for ten minutes at most: if it seems longer, the clock of this computer is wrong. */
const LONGEST_SECONDS = 900;

function usePromptSeconds(since: string, isRunning: boolean): number {
  const [shownSince] = useState(() => new Date().toISOString());
  const bySince = useSeconds(since, isRunning);
  const byShown = useSeconds(shownSince, isRunning);
  return bySince > LONGEST_SECONDS ? byShown : bySince;
}

/** What a prompt's run has cost: an estimate while it writes, then the counted amount. */
export function RunMeter({ execution, followed, range, promptTokens = 0 }: RunMeterProps) {
  const { provider, model, usage, status } = execution;
  const models = useModels(provider ?? undefined);
  const isRunning = isActive(execution);
  const tokens = isRunning ? estimateTokens(followed.text) : (usage?.completionTokens ?? 0);
  const known = models.find(({ id }) => id === model);
  const estimated = provider === "sandbox" ? 0 : costOf(known, promptTokens, tokens);
  const spent = usage ? (usage.costKnown ? usage.estimatedCost : null) : isRunning ? estimated : null;
  const hasCost = usage !== null || isRunning;
  return (
    <div className="run-meter">
      <div className="stack">
        <div className="row sm wrap">
          <span className="row" role="status">
            {isRunning ? (
              <>
                <span className="run-live" aria-hidden="true" />
                <span className="m">{PHASES[followed.phase]}</span>
              </>
            ) : (
              <RunStatus status={status} />
            )}
          </span>
          <RunFigures execution={execution} tokens={tokens} />
        </div>
        <Tally spent={spent} range={range} />
      </div>
      {hasCost && <CostFigure spent={spent} range={range} isEstimate={isRunning} />}
    </div>
  );
}

const PHASES: Record<FollowedRun["phase"], string> = {
  connecting: "Starting",
  following: "Streaming",
  interrupted: "Connection lost. The run continues, and shows here again",
  ended: "Ending",
};

function RunFigures({ execution, tokens }: { execution: ExecutionDetail; tokens: number }) {
  const isRunning = isActive(execution);
  const running = usePromptSeconds(execution.createdAt, isRunning);
  const seconds = isRunning ? running : (execution.duration ?? 0);
  const parts = [
    tokens > 0 && `${isRunning ? "about " : ""}${formatCount(tokens)} tokens`,
    tokens > 0 && seconds >= 1 && `${Math.round(tokens / seconds)} a second`,
    (seconds > 0 || !isRunning) && formatDuration(seconds),
  ].filter(Boolean);
  return <span className="soft num">{parts.join(", ")}</span>;
}

/** The text of a run: what the API has stored, else what has been streamed so far. */
export const outputOf = ({ output }: ExecutionDetail, { text }: FollowedRun): string =>
  typeof output === "string" && output.length >= text.length ? output : text;

interface RunOutputProps {
  execution: ExecutionDetail;
  followed: FollowedRun;
  /** More buttons beside Copy and Stop. */
  actions?: React.ReactNode;
  last4?: string | undefined;
  onRetry?: () => void;
}

export function RunOutput({ execution, followed, actions, last4, onRetry }: RunOutputProps) {
  const [isSource, showSource] = useState(false);
  const text = outputOf(execution, followed);
  const isRunning = isActive(execution);
  const isErased = !isRunning && execution.status === "completed" && text === "" && execution.output === null;
  const isEmpty = !isRunning && text === "" && execution.status !== "completed";
  if (isEmpty)
    return (
      <RunFailureStrip
        execution={execution}
        followed={followed}
        last4={last4}
        {...(onRetry && { onRetry })}
      />
    );
  return (
    <>
      <div className={isRunning ? "row wrap run-actions is-running" : "row wrap run-actions"}>
        <ViewSwitch isSource={isSource} onChange={showSource} />
        <span className="grow" />
        {actions}
        <CopyButton text={text} />
        {isRunning && <StopButton executionId={execution.id} />}
      </div>
      <article
        className={isRunning ? "run-output reading is-writing" : "run-output reading"}
        dir="auto"
        aria-busy={isRunning}
        aria-label="Output"
      >
        <OutputText text={text} isSource={isSource} {...(isRunning && { most: RENDERED_WHILE_STREAMING })} />
        {isErased && (
          <p className="soft">The output is not stored any more. Texts of runs are erased after 30 days.</p>
        )}
        {!isRunning && execution.status === "completed" && execution.output === "" && (
          <p className="soft">The model answered with an empty text.</p>
        )}
      </article>
      {execution.finishReason === "length" && (
        <p className="strip warning output-note">
          <span>
            <b>The answer reached its limit and was cut.</b> Set a higher limit for the answer, then run
            again.
          </span>
        </p>
      )}
      <RunFailureStrip
        execution={execution}
        followed={followed}
        last4={last4}
        {...(onRetry && { onRetry })}
      />
    </>
  );
}

/** Sends one request, however often it is pressed. */
export function StopButton({ executionId, label = "Stop" }: { executionId: string; label?: string }) {
  const { isStopping, stop } = useStop(executionId);
  return (
    <button type="button" className="btn s danger" disabled={isStopping} onClick={() => void stop()}>
      <StopIcon /> {isStopping ? "Stopping" : label} <span className="kbd desk">Esc</span>
    </button>
  );
}

export function useStop(executionId: string | undefined) {
  const [stopping, setStopping] = useState<string | null>(null);
  const isStopping = stopping !== null && stopping === executionId;
  const stop = async () => {
    if (executionId === undefined || isStopping) return;
    setStopping(executionId);
    try {
      await stoa.ai.executions.cancel(executionId);
    } catch (error) {
      setStopping(null);
      noticeEndOfSession(error);
      // It ended at the same moment.
      if ((error as { status?: number }).status !== 409) showError("The run was not stopped", error);
    }
  };
  return { isStopping, stop };
}
