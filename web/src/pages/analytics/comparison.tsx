import { formatCount, formatMoney } from "../../lib/format.ts";

interface ComparisonProps {
  sum: number;
  total: number;
  figure: number;
  currency: string;
}

/** Both numbers come from the service by different ways: the sum from the ledger, the figure from stored sums. */
export const Comparison = ({ sum, total, figure, currency }: ComparisonProps) => (
  <dl className="facts analytics-proof">
    <div>
      <dt className="label">Sum of {formatCount(total)} entries</dt>
      <dd>
        <strong>{formatMoney(sum, currency)}</strong>
      </dd>
    </div>
    <div>
      <dt className="label">Analytics</dt>
      <dd>
        <strong>{formatMoney(figure, currency)}</strong>
        {sum === figure ? (
          <span className="sm good">Equal to the ledger</span>
        ) : (
          <span className="sm bad">Not equal. Something may have been sold meanwhile: reload the page.</span>
        )}
      </dd>
    </div>
  </dl>
);
