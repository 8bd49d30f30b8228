import type { ModeratedProduct, ProductChecks } from "@stoa/sdk";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { formatCount, formatPercent, LOCALE } from "../../lib/format.ts";
import { sellerRecordQuery } from "../../queries/moderation.ts";

const monthOf = (iso: string): string =>
  new Date(iso).toLocaleDateString(LOCALE, { month: "long", year: "numeric" });

interface SellerRecordProps {
  moderated: ModeratedProduct;
  checks: ProductChecks;
}

/** What the seller did before, as facts without a verdict. */
export function SellerRecord({ moderated: { seller }, checks: { sellerRuns } }: SellerRecordProps) {
  const { data } = useQuery(sellerRecordQuery(seller.id));
  const { published = 0, rejected = 0, suspended = 0, ...others } = seller.products;
  const all = published + rejected + suspended + Object.values(others).reduce((sum, count) => sum + count, 0);
  return (
    <section className="beam thin stack" aria-label="Seller's record">
      <div className="row between">
        <h3>Seller's record</h3>
        <Link to="/admin/moderation" search={{ seller: seller.id }} className="link sm">
          {all === 1 ? "1 product" : `All ${formatCount(all)} products`}
        </Link>
      </div>
      <div className="facts">
        <div>
          <span className="label">Account since</span>
          <strong>{data ? monthOf(data.since) : "…"}</strong>
        </div>
        <div>
          <span className="label">On sale</span>
          <strong>
            {formatCount(published)} of {formatCount(all)}
          </strong>
        </div>
        <div>
          <span className="label">Rejected, suspended</span>
          <strong>
            {formatCount(rejected)}, {formatCount(suspended)}
          </strong>
        </div>
        <div>
          <span className="label">Refunded or disputed</span>
          <strong>{data ? returnedText(data) : "…"}</strong>
        </div>
        <div>
          <span className="label">Failed runs, 30 days</span>
          <strong>{failedText(sellerRuns)}</strong>
        </div>
      </div>
    </section>
  );
}

const failedText = ({ failed, n }: ProductChecks["sellerRuns"]): string =>
  n === 0 ? "no runs" : `${formatPercent(failed / n)} of ${formatCount(n)}`;

/** A share is nothing without its number. */
function returnedText({ paid, returned }: { paid: number; returned: number }): string {
  if (paid === 0) return "no sales";
  return `${formatPercent(returned / paid)} of ${formatCount(paid)}`;
}
