import type { EvaluationDetail } from "@stoa/sdk";
import { useQuery } from "@tanstack/react-query";
import { Fragment, useState } from "react";
import { formatCost, formatCount } from "../../lib/format.ts";
import { EVALUATION_POLL_MS, evaluationQuery } from "../../queries/evaluations.ts";
import { ErrorStrip } from "../page-error.tsx";
import { SkeletonRows } from "../skeleton.tsx";

type Column = EvaluationDetail["columns"][number];
type Result = EvaluationDetail["results"][number];

/** Tests by models: how many runs passed, and on request why the others did not. */
export function EvaluationResults({ evaluationId }: { evaluationId: string }) {
  const { data, error } = useQuery({
    ...evaluationQuery(evaluationId),
    refetchInterval: ({ state }) => (state.data?.status === "running" ? EVALUATION_POLL_MS : false),
  });
  const [open, setOpen] = useState<{ testCase: number; column: number } | null>(null);
  if (error) return <ErrorStrip error={error} />;
  if (!data) return <SkeletonRows count={3} />;
  const columns = data.columns.flatMap((column, at) => (column.kind === "judge" ? [] : [{ column, at }]));
  const resultsOf = (testCase: number, column: number) =>
    data.results.filter((result) => result.case === testCase && result.column === column);
  return (
    <div className="test-scroll stack">
      <JudgeNote evaluation={data} />
      <table className="verdicts">
        <caption className="hidden">Passed runs of each test on each model</caption>
        <thead>
          <tr>
            <th>Test</th>
            {columns.map(({ column, at }) => (
              <th key={at}>{columnLabel(column)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {data.cases.map((testCase, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: results name tests by their index
            <Fragment key={at}>
              <tr>
                <td dir="auto">{testCase.title}</td>
                {columns.map(({ column, at: columnAt }) => (
                  <td key={columnAt}>
                    <Cell
                      results={resultsOf(at, columnAt)}
                      label={`${testCase.title}, ${columnLabel(column)}`}
                      isOpen={open?.testCase === at && open.column === columnAt}
                      onToggle={(isOpen) => setOpen(isOpen ? { testCase: at, column: columnAt } : null)}
                    />
                  </td>
                ))}
              </tr>
              {open?.testCase === at && (
                <tr>
                  <td colSpan={columns.length + 1}>
                    {resultsOf(at, open.column).map((result) => (
                      <RunVerdict key={result.repeat} result={result} />
                    ))}
                  </td>
                </tr>
              )}
            </Fragment>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const columnLabel = ({ kind, model, isSandbox }: Column): string => {
  const name = model ?? "As its steps say";
  const shown = isSandbox ? `${name} (practice)` : name;
  return kind === "baseline" ? `${shown}, bare` : shown;
};

interface CellProps {
  results: Result[];
  label: string;
  isOpen: boolean;
  onToggle: (isOpen: boolean) => void;
}

function Cell({ results, label, isOpen, onToggle }: CellProps) {
  if (results.length === 0) return <span className="soft">–</span>;
  const counted = results.filter(({ isPassed }) => isPassed !== null);
  const passed = counted.filter(({ isPassed }) => isPassed === true).length;
  const judged = results.flatMap(({ judgment }) => judgment ?? []);
  const judgedPassed = judged.filter(({ outcome }) => outcome === "passed").length;
  const tone = counted.length === 0 ? "" : passed === counted.length ? "good" : passed === 0 ? "bad" : "";
  return (
    <button
      type="button"
      className={`btn quiet s num ${tone}`}
      aria-expanded={isOpen}
      onClick={() => onToggle(!isOpen)}
    >
      <span className="hidden">{label}: </span>
      {counted.length === 0 ? "not counted" : `${formatCount(passed)} of ${formatCount(counted.length)}`}
      {judged.length > 0 && `, judged ${formatCount(judgedPassed)} of ${formatCount(judged.length)}`}
    </button>
  );
}

const RunVerdict = ({ result }: { result: Result }) => (
  <div className="stack run-verdict">
    <p className="sm">
      <b>
        Run {formatCount(result.repeat + 1)}: {verdictOf(result)}
      </b>
      {result.cost !== null && <span className="soft num">, {formatCost(result.cost)}</span>}
    </p>
    {result.verdicts.some(({ isPassed }) => !isPassed) && (
      <ul className="sm soft">
        {result.verdicts
          .filter(({ isPassed }) => !isPassed)
          .map((verdict, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: verdicts have no ids and do not move
            <li key={at}>
              <code>{verdict.type}</code> <span dir="auto">{verdict.reason}</span>
            </li>
          ))}
      </ul>
    )}
    {result.judgment && <JudgmentWords judgment={result.judgment} />}
    {result.output !== null && (
      <pre className="codeblock wrap" dir="auto">
        {result.output}
      </pre>
    )}
  </div>
);

type Judgment = NonNullable<Result["judgment"]>;

/** The judge's verdict is never part of the run's. */
const JudgmentWords = ({ judgment: { outcome, verdicts } }: { judgment: Judgment }) => (
  <>
    <p className="sm">Judged: {outcome}</p>
    {verdicts.length > 0 && (
      <ul className="sm soft">
        {verdicts
          .flatMap((verdict) => verdict.assertions ?? [verdict])
          .map((verdict, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: verdicts have no ids and do not move
            <li key={at}>
              <code>{verdict.type}</code> {verdict.outcome.replace("_", " ")}:{" "}
              <span dir="auto">{verdict.reason}</span>
            </li>
          ))}
      </ul>
    )}
  </>
);

function JudgeNote({ evaluation: { judge, judgedCases } }: { evaluation: EvaluationDetail }) {
  if (judgedCases === 0) return null;
  if (!judge)
    return (
      <p className="sm soft">
        Without a judge, the rubrics of {judgedCases === 1 ? "one test" : `${formatCount(judgedCases)} tests`}{" "}
        have no verdict.
      </p>
    );
  return (
    <p className="sm soft">
      “Judged” is what <b dir="auto">{judge.model}</b>
      {judge.isSandbox && " (practice, not a model)"} says about the rubrics
      {judge.embedding && (
        <>
          , and what the embeddings of <b dir="auto">{judge.embedding.model}</b>
          {judge.embedding.isSandbox && " (practice, not a model)"} say about similarity
        </>
      )}
      . It is no part of the other numbers.
    </p>
  );
}

function verdictOf({ status, errorCode, isPassed }: Result): string {
  if (status === "failed") return `gave no output (${errorCode ?? "failed"})`;
  if (isPassed === null) return "not counted";
  return isPassed ? "passed" : "did not pass";
}
