import type { ExecutionDetail, WorkflowStep } from "@stoa/sdk";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { curlOf } from "../../lib/curl.ts";
import { formatDuration, formatWait } from "../../lib/duration.ts";
import { formatCost, formatCount, formatExactTime, formatTime } from "../../lib/format.ts";
import { providerName } from "../../lib/providers.ts";
import { describeRunFailure } from "../../lib/run-errors.ts";
import { CopyButton } from "../copy-button.tsx";
import { AlertIcon, CheckIcon, CloseIcon, ResumeIcon } from "../icons.tsx";
import { ShowAsCode } from "../show-as-code.tsx";
import { StatusTag, type Tone } from "../status-tag.tsx";
import { OutputText } from "./output-text.tsx";
import {
  LOOK_WORDS,
  type ShownStep,
  type StepLook,
  stepCost,
  stepSeconds,
  TYPE_NAMES,
} from "./step-state.ts";

const TONES: Record<StepLook, Tone> = {
  wait: "neutral",
  run: "accent",
  done: "good",
  fail: "bad",
  ask: "warning",
  skip: "neutral",
};

const capitalize = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

interface StepPaneProps {
  step: ShownStep;
  steps: ShownStep[];
  execution: ExecutionDetail;
  actions: RunActions;
  /** Above it: the way back to the whole run. */
  top?: ReactNode;
}

export interface RunActions {
  decide: (stepId: string, decision: "approve" | "reject") => void;
  retry: () => void;
  isPending: boolean;
  /** For the button: the amount that a retry is about to cost. */
  retryAmount: string;
}

/** One step of a run: what it asks for, what it gave, or why it failed. */
export function StepPane({ step, steps, execution, actions, top }: StepPaneProps) {
  const { id, type, look, run, items, model } = step;
  const isFailure = look === "fail" && step.defined?.onError !== "continue";
  const canRetry = isFailure && ["failed", "canceled"].includes(execution.status);
  return (
    <aside className="step-pane" aria-label={`Step ${id}`}>
      {top}
      <div className="row between step-head">
        <div className="stack">
          <h2 className="h3">{id}</h2>
          <span className="sm soft">
            {[TYPE_NAMES[type] ?? type, run?.provider && `${model}, ${providerName(run.provider)}`]
              .filter(Boolean)
              .join(", ")}
          </span>
        </div>
        <StatusTag tone={TONES[look]}>
          {look === "ask" ? "Waits for you" : capitalize(LOOK_WORDS[look])}
        </StatusTag>
      </div>
      {look === "ask" && run && (
        <Approval step={step} steps={steps} run={run} actions={actions} executionId={execution.id} />
      )}
      {look === "fail" && run && <Failure step={step} run={run} />}
      {canRetry && <Retry step={step} steps={steps} actions={actions} executionId={execution.id} />}
      {look === "wait" && <p className="soft">{whyItWaits(step, steps)}</p>}
      {look === "skip" && run?.status === "skipped" && (
        <p className="soft">Its condition was not met, so the run continues without it.</p>
      )}
      {run?.decision && run.decidedAt && (
        <p className="soft">
          You {run.decision} this{" "}
          <time title={formatExactTime(run.decidedAt)}>{formatTime(run.decidedAt)}</time>.
        </p>
      )}
      {items.length > 0 && <Items items={items} />}
      {run?.status === "completed" && type !== "approval" && type !== "delay" && (
        <StepOutput output={run.output} label={items.length > 0 ? "Outputs" : "Output"} />
      )}
      {run && <StepFacts step={step} run={run} />}
    </aside>
  );
}

const whyItWaits = ({ needs }: ShownStep, steps: ShownStep[]): string => {
  const open = needs.filter((id) => steps.some((step) => step.id === id && step.look !== "done"));
  return open.length > 0
    ? `It starts after ${new Intl.ListFormat("en").format(open)}.`
    : "It has not started.";
};

interface ApprovalProps {
  step: ShownStep;
  steps: ShownStep[];
  run: WorkflowStep;
  actions: RunActions;
  executionId: string;
}

function Approval({ step, steps, run, actions, executionId }: ApprovalProps) {
  const [shown, show] = useState(0);
  const before = steps.filter(({ id, run }) => step.needs.includes(id) && run?.status === "completed");
  const current = before[shown] ?? before[0];
  const cost = steps.reduce((sum, one) => sum + (stepCost(one) ?? 0), 0);
  const isFinal = step.defined?.onError !== "continue";
  const isTwoSided = before.length > 1;
  return (
    <>
      <p className="question" dir="auto">
        {run.prompt ?? "May this run continue?"}
      </p>
      {isTwoSided && (
        <div className="tabs">
          {before.map(({ id }, at) => (
            <button
              key={id}
              type="button"
              aria-pressed={current?.id === id}
              className={current?.id === id ? "on" : ""}
              onClick={() => show(at)}
            >
              {id}
            </button>
          ))}
        </div>
      )}
      {current && (
        <StepOutput output={current.run?.output} label={isTwoSided ? "" : `Output of ${current.id}`} />
      )}
      <div className="decide">
        <button
          type="button"
          className="btn primary"
          disabled={actions.isPending}
          onClick={() => actions.decide(step.id, "approve")}
        >
          <CheckIcon /> Approve
        </button>
        <button
          type="button"
          className="btn danger"
          disabled={actions.isPending}
          onClick={() => actions.decide(step.id, "reject")}
        >
          <CloseIcon /> Reject
        </button>
      </div>
      <p className="xs soft">
        {isFinal ? "Reject ends the run." : "Reject makes this step fail; the run continues without it."} The
        finished steps have cost {cost === 0 ? "nothing" : formatCost(cost)}.
        {run.dueAt &&
          ` Without an answer it fails in ${formatWait((Date.parse(run.dueAt) - Date.now()) / 1_000)}.`}
      </p>
      <ShowAsCode
        curl={curlOf("POST", `/ai/executions/${executionId}/steps/${step.id}/approve`)}
        sdk={`await stoa.ai.executions.approve("${executionId}", "${step.id}");`}
      />
    </>
  );
}

function Failure({ step, run }: { step: ShownStep; run: WorkflowStep }) {
  const failed = step.items.find(({ status }) => status === "failed") ?? run;
  const error = failed.error ?? run.error;
  const problem = describeRunFailure(
    { code: error?.code ?? "", message: error?.message ?? "The step failed." },
    { provider: failed.provider ?? step.defined?.do?.provider ?? step.defined?.provider ?? null },
  );
  return (
    <div className="strip bad">
      <AlertIcon size={20} />
      <div className="grow">
        <b>{problem.fact}</b> {problem.advice}
        {step.defined?.onError === "continue" && " The run continues without this step."}
      </div>
    </div>
  );
}

interface RetryProps {
  step: ShownStep;
  steps: ShownStep[];
  actions: RunActions;
  executionId: string;
}

function Retry({ step, steps, actions, executionId }: RetryProps) {
  const finished = steps.filter(({ look }) => look === "done").length;
  return (
    <div className="stack">
      <button type="button" className="btn primary" disabled={actions.isPending} onClick={actions.retry}>
        <ResumeIcon /> Retry from {step.id}
        {actions.retryAmount}
      </button>
      <p className="xs soft">
        It runs with the same input and keys.
        {finished > 0 &&
          ` The ${finished === 1 ? "finished step is" : `${finished} finished steps are`} not repeated and not charged again.`}
      </p>
      <ShowAsCode
        curl={curlOf("POST", `/ai/executions/${executionId}/retry`)}
        sdk={`await stoa.ai.executions.retry("${executionId}");`}
      />
    </div>
  );
}

/** More of a long list would make a click on its step slow. */
const [MOST_ITEMS, MOST_LINES] = [20, 40];

function Items({ items }: { items: WorkflowStep[] }) {
  const [isWhole, showWhole] = useState(false);
  const shown = isWhole ? items : items.slice(0, MOST_ITEMS);
  return (
    <div className="stack">
      <table className="map-items">
        <thead>
          <tr>
            <th>Item</th>
            <th>Output</th>
            <th className="r">Cost</th>
            <th className="r desk">Time</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((item) => (
            <ItemRow key={item.index} item={item} />
          ))}
        </tbody>
      </table>
      {items.length > shown.length && (
        <button type="button" className="btn s" onClick={() => showWhole(true)}>
          Show all {items.length}
        </button>
      )}
    </div>
  );
}

function ItemRow({ item }: { item: WorkflowStep }) {
  const { index, status, output, error, usage } = item;
  const seconds = stepSeconds(item);
  const text = error?.message ?? (output === null ? status : textOf(output));
  return (
    <tr>
      <td className="soft num">{(index ?? 0) + 1}</td>
      <td className="item-text">
        <span className={status === "failed" ? "cut bad" : "cut"} dir="auto" title={text.slice(0, 500)}>
          {text.slice(0, 200)}
        </span>
      </td>
      <td className="r nowrap">
        {usage ? (usage.estimatedCost === 0 ? "free" : formatCost(usage.estimatedCost)) : "–"}
      </td>
      <td className="r soft nowrap desk">{seconds === null ? "–" : formatDuration(seconds)}</td>
    </tr>
  );
}

export const textOf = (output: unknown): string =>
  typeof output === "string" ? output : (JSON.stringify(output, null, 2) ?? "");

export function StepOutput({
  output,
  label,
  actions,
}: {
  output: unknown;
  label: string;
  actions?: ReactNode;
}) {
  const [isWhole, showWhole] = useState(false);
  const text = textOf(output);
  const isSource = typeof output !== "string";
  const lines = isSource && !isWhole ? text.split("\n") : [];
  const isFolded = lines.length > MOST_LINES;
  return (
    <div className="stack">
      <div className="row between">
        <span className="label">{label}</span>
        <span className="row wrap">
          {actions}
          <CopyButton text={text} />
        </span>
      </div>
      {output === null || output === undefined ? (
        <p className="soft">Nothing, or not stored any more.</p>
      ) : (
        <div className="said" dir="auto">
          <OutputText text={isFolded ? lines.slice(0, MOST_LINES).join("\n") : text} isSource={isSource} />
        </div>
      )}
      {isFolded && (
        <button type="button" className="btn s" onClick={() => showWhole(true)}>
          Show all {formatCount(lines.length)} lines
        </button>
      )}
    </div>
  );
}

function StepFacts({ step, run }: { step: ShownStep; run: WorkflowStep }) {
  const cost = stepCost(step);
  const usage = step.items.length > 0 ? null : run.usage;
  const facts: [string, ReactNode][] = [
    [
      "Started",
      run.startedAt && (
        <time key="t" title={formatExactTime(run.startedAt)}>
          {formatTime(run.startedAt)}
        </time>
      ),
    ],
    ["Attempts", run.attempt > 1 && run.attempt],
    ["Tokens", usage && `${formatCount(usage.promptTokens)} in, ${formatCount(usage.completionTokens)} out`],
    ["Cost", cost !== null && (cost === 0 ? "free" : formatCost(cost))],
    [
      "Its own run",
      run.executionId && (
        <Link key="run" className="link" to="/runs/$executionId" params={{ executionId: run.executionId }}>
          Open
        </Link>
      ),
    ],
  ];
  return (
    <>
      <dl className="kv beam thin">
        {facts.map(
          ([term, fact]) =>
            fact && (
              <div key={term}>
                <dt>{term}</dt>
                <dd>{fact}</dd>
              </div>
            ),
        )}
      </dl>
      {run.possiblyRepeated && (
        <p className="xs soft">
          The service restarted during this step, so the provider may have been asked and paid twice.
        </p>
      )}
    </>
  );
}
