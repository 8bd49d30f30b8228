import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { ErrorStrip } from "../../components/page-error.tsx";
import { type DaySpan, formatSpan } from "../../lib/day-span.ts";
import { formatCount, formatMoney } from "../../lib/format.ts";
import { type EntriesSearch, type Figure, proofQuery, provenFiguresQuery } from "../../queries/analytics.ts";
import { Comparison } from "./comparison.tsx";

interface MonthProof {
  /** Of the entries in the ledger. */
  sum: number;
  total: number;
  figure: number;
}

interface ProofByMonthProps {
  search: EntriesSearch;
  figure: Figure;
  /** The last one first. */
  months: DaySpan[];
}

/** The sums of the ledger and of analytics for each month, which leads to its entries. */
export function ProofByMonth({ search, figure, months }: ProofByMonthProps) {
  const whole = useQuery(provenFiguresQuery(search));
  const { proofs, error, retry } = useMonthProofs(search, figure, months);
  const currency = whole.data?.currency;
  const problem = error ?? whole.error;
  const isComplete = proofs.length === months.length;
  return (
    <div className="analytics-report" aria-busy={!isComplete && !problem}>
      {problem && <ErrorStrip error={problem} onRetry={() => (error ? retry() : void whole.refetch())} />}
      {isComplete && whole.data ? (
        <Comparison {...addUp(proofs)} figure={whole.data.summary[figure]} currency={whole.data.currency} />
      ) : (
        <p className="analytics-proof" role="status">
          Adding up the ledger: {formatCount(proofs.length)} of {formatCount(months.length)} months
        </p>
      )}
      {currency !== undefined && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reached by the keyboard
        <section className="analytics-scroll beam" aria-label="Months" tabIndex={0}>
          <table className="analytics-entries">
            <thead>
              <tr>
                <th>Month</th>
                <th className="r">Entries</th>
                <th className="r">Ledger</th>
                <th className="r">Analytics</th>
                <th>
                  <span className="hidden">Comparison</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {months.map((month, at) => (
                <MonthRow key={month.from} month={month} proof={proofs[at]} currency={currency} />
              ))}
            </tbody>
          </table>
        </section>
      )}
    </div>
  );
}

interface MonthRowProps {
  month: DaySpan;
  proof: MonthProof | undefined;
  currency: string;
}

const MonthRow = ({ month, proof, currency }: MonthRowProps) => (
  <tr>
    <td className="nowrap">
      <Link
        to="/studio/analytics/entries"
        search={(old) => ({ ...old, preset: undefined, page: undefined, ...month })}
        className="link"
      >
        {formatSpan(month)}
      </Link>
    </td>
    <td className="r">{proof ? formatCount(proof.total) : "…"}</td>
    <td className="r nowrap">{proof ? formatMoney(proof.sum, currency) : "…"}</td>
    <td className="r nowrap">{proof ? formatMoney(proof.figure, currency) : "…"}</td>
    <td>
      {proof &&
        (proof.sum === proof.figure ? (
          <span className="sm good">Equal</span>
        ) : (
          <span className="sm bad">Not equal</span>
        ))}
    </td>
  </tr>
);

/** One request at a time, so that no proof takes the whole service. */
function useMonthProofs(search: EntriesSearch, figure: Figure, months: DaySpan[]) {
  const client = useQueryClient();
  const [proofs, setProofs] = useState<MonthProof[]>([]);
  const [error, setError] = useState<Error | null>(null);
  const month = months[proofs.length];
  useEffect(() => {
    if (month === undefined || error) return;
    let isOver = false;
    client
      .fetchQuery(proofQuery({ ...search, figure, page: 1, ...month }))
      .then(({ entries: { meta }, revenue }) => ({
        sum: meta.sum ?? 0,
        total: meta.total,
        figure: revenue.summary[figure],
      }))
      .then(
        (proof) => !isOver && setProofs((old) => [...old, proof]),
        (reason: Error) => !isOver && setError(reason),
      );
    return () => {
      isOver = true;
    };
  }, [client, month, error, figure, search]);
  return { proofs, error, retry: () => setError(null) };
}

/** No currency has more than three decimals. */
const THOUSANDTHS = 1_000;

function addUp(proofs: MonthProof[]): { sum: number; total: number } {
  const thousandths = proofs.reduce((sum, proof) => sum + Math.round(proof.sum * THOUSANDTHS), 0);
  return { sum: thousandths / THOUSANDTHS, total: proofs.reduce((sum, proof) => sum + proof.total, 0) };
}
