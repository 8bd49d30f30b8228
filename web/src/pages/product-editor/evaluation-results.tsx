import type { EvaluationDetail } from "@stoa/sdk";
import { useQuery } from "@tanstack/react-query";
import { Fragment, useState } from "react";
import { ErrorStrip } from "../../components/page-error.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { formatCost, formatCount } from "../../lib/format.ts";
import { evaluationQuery } from "../../queries/evaluations.ts";

const POLL_MS = 2_000;

type Column = EvaluationDetail["columns"][number];
type Result = EvaluationDetail["results"][number];

/** Tests by models: how many runs passed, and on request why the others did not. */
export function EvaluationResults({ evaluationId }: { evaluationId: string }) {
  const { data, error } = useQuery({
    ...evaluationQuery(evaluationId),
    refetchInterval: ({ state }) => (state.data?.status === "running" ? POLL_MS : false),
  });
  const [open, setOpen] = useState<{ testCase: number; column: number } | null>(null);
  if (error) return <ErrorStrip error={error} />;
  if (!data) return <SkeletonRows count={3} />;
  const resultsOf = (testCase: number, column: number) =>
    data.results.filter((result) => result.case === testCase && result.column === column);
  return (
    <div className="editor-scroll">
      <table className="verdicts">
        <caption className="hidden">Passed runs of each test on each model</caption>
        <thead>
          <tr>
            <th>Test</th>
            {data.columns.map((column, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: results name columns by their index
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
                {data.columns.map((column, columnAt) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: results name columns by their index
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
                  <td colSpan={data.columns.length + 1}>
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
  const passed = results.filter(({ isPassed }) => isPassed === true).length;
  const tone = passed === results.length ? "good" : passed === 0 ? "bad" : "";
  return (
    <button
      type="button"
      className={`btn quiet s num ${tone}`}
      aria-expanded={isOpen}
      onClick={() => onToggle(!isOpen)}
    >
      <span className="hidden">{label}: </span>
      {formatCount(passed)} of {formatCount(results.length)}
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
    {result.output !== null && (
      <pre className="codeblock wrap" dir="auto">
        {result.output}
      </pre>
    )}
  </div>
);

function verdictOf({ status, errorCode, isPassed }: Result): string {
  if (status === "failed") return `gave no output (${errorCode ?? "failed"})`;
  if (isPassed === null) return "not counted";
  return isPassed ? "passed" : "did not pass";
}
