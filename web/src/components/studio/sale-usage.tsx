import type { SaleDetail } from "@stoa/sdk";
import { useQuery } from "@tanstack/react-query";
import { formatCount } from "../../lib/format.ts";
import { saleRunsQuery } from "../../queries/selling.ts";
import { ErrorStrip } from "../page-error.tsx";
import { SkeletonRows } from "../skeleton.tsx";
import { Time } from "../time.tsx";

const ACCESS: Record<string, string> = {
  active: "The buyer can use it.",
  held: "Held while the refund is in progress.",
  revoked: "The buyer can no longer use it.",
};

/** What the buyer did with the product since the purchase: numbers, never texts. */
export function SaleUsage({ sale }: { sale: SaleDetail }) {
  const { data, error, refetch } = useQuery(saleRunsQuery(sale.orderId));
  const { firstUsedAt, access } = sale;
  return (
    <section className="beam thin">
      <h2 className="h3">Use since the purchase</h2>
      <p>
        {firstUsedAt === null ? (
          "Never opened, downloaded or run."
        ) : (
          <>
            First used <Time iso={firstUsedAt} />.
          </>
        )}{" "}
        {access !== null && <span className="soft">{ACCESS[access]}</span>}
      </p>
      {error && <ErrorStrip error={error} onRetry={() => void refetch()} />}
      {!data && !error && <SkeletonRows count={1} />}
      {data && data.total > 0 && (
        <p>
          <b className="num">{formatCount(data.total)}</b> {data.total === 1 ? "run" : "runs"}:{" "}
          {formatCount(data.completed)} completed,{" "}
          <span className={data.failed > 0 ? "bad m" : ""}>{formatCount(data.failed)} failed</span>
          {data.canceled > 0 && `, ${formatCount(data.canceled)} canceled`}
          {data.lastAt && (
            <>
              , the last <Time iso={data.lastAt} />
            </>
          )}
          .
        </p>
      )}
      {data && data.total === 0 && <p className="soft">No runs.</p>}
      {data && data.failures.length > 0 && (
        <p className="row wrap">
          {data.failures.map(({ code, runs }) => (
            <code key={code} className="tag">
              {code} {formatCount(runs)}
            </code>
          ))}
        </p>
      )}
    </section>
  );
}
