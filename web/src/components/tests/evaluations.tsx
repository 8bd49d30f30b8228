import type { Evaluation, TestSet } from "@stoa/sdk";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { formatCost, formatCount } from "../../lib/format.ts";
import { showError } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { EVALUATION_POLL_MS, evaluationsQuery } from "../../queries/evaluations.ts";
import { ErrorStrip } from "../page-error.tsx";
import { StatusTag, type Tone } from "../status-tag.tsx";
import { Time } from "../time.tsx";
import { EvaluationResults } from "./evaluation-results.tsx";
import { NewEvaluation } from "./new-evaluation.tsx";
import { ReEvaluationLimits } from "./re-evaluation-limits.tsx";
import { useTestedProduct } from "./tested-product.ts";

/** Starts evaluations of the stored version, and shows the newest ones. */
export function Evaluations({ testSet }: { testSet: TestSet }) {
  const product = useTestedProduct();
  const { data: evaluations, error } = useQuery({
    ...evaluationsQuery(product.id),
    refetchInterval: ({ state }) =>
      state.data?.some(({ status }) => status === "running") ? EVALUATION_POLL_MS : false,
  });
  const isWorkflow = product.type === "WORKFLOW";
  const [shown, setShown] = useState<string | null>(null);
  const current = shown ?? evaluations?.[0]?.id ?? null;
  return (
    <section className="beam thin stack">
      <h2 className="h3">Evaluations</h2>
      <p className="soft">
        An evaluation runs every test on every model, several times, with your own keys, and once more on the
        bare model without the product. {isWorkflow && "Of a workflow, that is the model of its last call. "}
        The newest complete one of the version on sale is on the product’s page.
      </p>
      {testSet.cases.length > 0 && <NewEvaluation testSet={testSet} onStart={setShown} />}
      {error && <ErrorStrip error={error} />}
      {evaluations && evaluations.length > 0 && (
        <EvaluationTable evaluations={evaluations} current={current} onShow={setShown} />
      )}
      {current !== null && <EvaluationResults key={current} evaluationId={current} />}
      {evaluations && evaluations.length > 0 && <ReEvaluationLimits />}
    </section>
  );
}

const STARTERS: Record<string, string> = {
  model_deprecated: "Repeated: a model is deprecated",
  price_changed: "Repeated: a price changed",
  schedule: "Repeated by schedule",
};

const STATUSES: Record<string, readonly [Tone, string]> = {
  running: ["accent", "Running"],
  completed: ["good", "Complete"],
  failed: ["bad", "Stopped"],
  canceled: ["neutral", "Canceled"],
};

interface EvaluationTableProps {
  evaluations: Evaluation[];
  current: string | null;
  onShow: (evaluationId: string) => void;
}

const EvaluationTable = ({ evaluations, current, onShow }: EvaluationTableProps) => (
  <div className="test-scroll">
    <table>
      <thead>
        <tr>
          <th>Started</th>
          <th>Version</th>
          <th>Status</th>
          <th className="r">Passed</th>
          <th className="r">Cost</th>
          <th>
            <span className="hidden">Change</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {evaluations.map((evaluation) => (
          <EvaluationRow
            key={evaluation.id}
            evaluation={evaluation}
            isShown={evaluation.id === current}
            onShow={() => onShow(evaluation.id)}
          />
        ))}
      </tbody>
    </table>
  </div>
);

interface EvaluationRowProps {
  evaluation: Evaluation;
  isShown: boolean;
  onShow: () => void;
}

function EvaluationRow({ evaluation, isShown, onShow }: EvaluationRowProps) {
  const client = useQueryClient();
  const cancel = useAction({
    run: async () => await stoa.evaluations.cancel(evaluation.id),
    onSuccess: () => client.invalidateQueries({ queryKey: ["evaluations", evaluation.productId] }),
    onError: (error) => showError("The evaluation was not canceled", error),
  });
  const products = evaluation.columns.filter(({ kind }) => kind === "product");
  const sum = (field: "passed" | "n", columns = products) =>
    columns.reduce((total, column) => total + column[field], 0);
  const judged = evaluation.columns.filter(
    ({ judgedColumn }) => judgedColumn !== null && evaluation.columns[judgedColumn]?.kind === "product",
  );
  const [tone, label] = STATUSES[evaluation.status] ?? ["neutral", evaluation.status];
  return (
    <tr aria-current={isShown || undefined}>
      <td>
        <button type="button" className="link" onClick={onShow}>
          <Time iso={evaluation.createdAt} />
        </button>
        {STARTERS[evaluation.startedBy] && <p className="sm soft">{STARTERS[evaluation.startedBy]}</p>}
      </td>
      <td className="num">{evaluation.version}</td>
      <td>
        <StatusTag tone={tone}>{label}</StatusTag>
        {evaluation.error && <p className="sm soft">{evaluation.error.message}</p>}
      </td>
      <td className="r num">
        {formatCount(sum("passed"))} of {formatCount(sum("n"))}
        {evaluation.judge && (
          <p className="xs soft">
            {evaluation.judge.model}: {formatCount(sum("passed", judged))} of {formatCount(sum("n", judged))}
          </p>
        )}
      </td>
      <td className="r num">{formatCost(evaluation.cost)}</td>
      <td className="r">
        {evaluation.status === "running" && (
          <button type="button" className="btn s" disabled={cancel.isPending} onClick={() => cancel.start()}>
            Cancel
          </button>
        )}
      </td>
    </tr>
  );
}
