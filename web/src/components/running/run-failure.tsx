import "./run-output.css";
import type { ExecutionDetail } from "@stoa/sdk";
import type { ReactNode } from "react";
import type { FollowedRun, RunFailure } from "../../lib/follow-run.ts";
import { describeRunFailure, describeStartError, type RunProblem } from "../../lib/run-errors.ts";
import { AlertIcon } from "../icons.tsx";
import { Id } from "../id.tsx";

interface RunFailureStripProps {
  execution: ExecutionDetail;
  followed: FollowedRun;
  last4?: string | undefined;
  onRetry?: () => void;
}

/** Why a run failed, and what helps. */
export function RunFailureStrip({ execution, followed, last4, onRetry }: RunFailureStripProps) {
  const { status, provider, error } = execution;
  if (status !== "failed" && status !== "canceled") return null;
  const failure: RunFailure =
    status === "canceled"
      ? { code: "canceled", message: error?.message ?? "" }
      : (followed.failure ?? error ?? { code: "", message: "The run failed." });
  const problem = describeRunFailure(failure, { provider, last4 });
  return (
    <ProblemStrip problem={problem} isBad={status === "failed"}>
      {onRetry && (
        <button type="button" className="btn s" onClick={onRetry}>
          Run again
        </button>
      )}
    </ProblemStrip>
  );
}

/** A run that did not start. */
export const StartErrorStrip = ({
  error,
  provider,
  last4,
  children,
}: {
  error: unknown;
  provider: string | null;
  last4?: string | undefined;
  children?: ReactNode;
}) => <ProblemStrip problem={describeStartError(error, { provider, last4 })}>{children}</ProblemStrip>;

function ProblemStrip({
  problem: { fact, advice, requestId },
  isBad = true,
  children,
}: {
  problem: RunProblem;
  isBad?: boolean;
  children?: ReactNode;
}) {
  return (
    <div className={isBad ? "strip bad output-note" : "strip output-note"} role="alert">
      <AlertIcon size={20} />
      <div className="grow">
        <b>{fact}</b> {advice}
        {requestId !== null && (
          <div>
            <Id id={requestId} />
          </div>
        )}
      </div>
      {children}
    </div>
  );
}
