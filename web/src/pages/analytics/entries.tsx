import "./analytics.css";
import type { AnalyticsEntry } from "@stoa/sdk";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { EmptyState } from "../../components/empty-state.tsx";
import { ChevronIcon } from "../../components/icons.tsx";
import { Id } from "../../components/id.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import { Pager } from "../../components/pager.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { ProductSelect } from "../../components/studio/product-select.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatSpan } from "../../lib/day-span.ts";
import { formatExactTime, formatMoney, LOCALE } from "../../lib/format.ts";
import { useTitle } from "../../lib/use-title.ts";
import {
  ENTRIES_PER_PAGE,
  type EntriesSearch,
  FIGURES,
  type Figure,
  givenQuery,
  proofMonths,
  proofQuery,
  spanOf,
  zoneOf,
} from "../../queries/analytics.ts";
import { canReadAnalytics, useAccount } from "../../session.ts";
import { Comparison } from "./comparison.tsx";
import { ProofByMonth } from "./proof-by-month.tsx";

const route = getRouteApi("/studio-shell/studio/analytics/entries");

const NAMES: Record<Figure, string> = {
  netRevenue: "Net revenue",
  grossRevenue: "Gross revenue",
  refunds: "Refunds",
  disputes: "Disputes",
  platformFees: "Marketplace fees",
  referralCommissions: "Referral commissions",
  tax: "Tax",
};

const KINDS: Record<string, string> = {
  sale: "Sale",
  refund: "Refund",
  dispute_opened: "Dispute opened",
  dispute_won: "Dispute won",
  dispute_lost: "Dispute lost",
};

const ACCOUNTS: Record<string, string> = {
  seller: "your part",
  referrer: "referrer's part",
  platform_revenue: "marketplace's fee",
  tax_payable: "tax",
};

/** The ledger entries that add up to a figure. */
export default function Entries() {
  const search = route.useSearch();
  const account = useAccount();
  const figure = search.figure ?? "netRevenue";
  useTitle(`${NAMES[figure]} in the ledger`);
  return (
    <main className="work" id="content">
      <nav className="crumb" aria-label="Breadcrumb">
        <Link to="/studio/analytics" search={spanSearch(search)} className="link">
          Analytics
        </Link>
        <ChevronIcon /> <span>Ledger</span>
      </nav>
      <div className="row between wrap">
        <h1 className="page-title">{NAMES[figure]} in the ledger</h1>
        <ShowAsCode {...codeOf(search, figure)} />
      </div>
      {canReadAnalytics(account) ? <Proof search={search} figure={figure} /> : null}
    </main>
  );
}

const spanSearch = ({ figure: _figure, page: _page, ...span }: EntriesSearch) => span;

function codeOf(search: EntriesSearch, figure: Figure) {
  const query = { ...givenQuery(search), figure };
  return {
    curl: curlOf("GET", `/analytics/entries?${new URLSearchParams(query)}`),
    sdk: `for await (const entry of stoa.analytics.entries(${JSON.stringify(query)})) console.log(entry);`,
  };
}

function Proof({ search, figure }: { search: EntriesSearch; figure: Figure }) {
  const months = proofMonths(search);
  return (
    <>
      <Choices search={search} figure={figure} />
      <p className="sm soft analytics-meta">
        {formatSpan(spanOf(search))}, days in {zoneOf(search).replaceAll("_", " ")}
      </p>
      {months ? (
        <ProofByMonth
          key={JSON.stringify([search, months])}
          search={search}
          figure={figure}
          months={months}
        />
      ) : (
        <ProofByEntry search={search} />
      )}
    </>
  );
}

function ProofByEntry({ search }: { search: EntriesSearch }) {
  const { data, error, refetch, isPlaceholderData } = useQuery(proofQuery(search));
  return (
    <>
      {error && <ErrorStrip error={error} onRetry={() => void refetch()} />}
      {!data && !error && <SkeletonRows />}
      {data && (
        <div
          className={isPlaceholderData ? "analytics-report loading" : "analytics-report"}
          aria-busy={isPlaceholderData}
        >
          <Comparison
            sum={data.entries.meta.sum ?? 0}
            total={data.entries.meta.total}
            figure={data.revenue.summary[data.figure]}
            currency={data.revenue.currency}
          />
          {data.entries.data.length > 0 && (
            <EntryTable entries={data.entries.data} zone={data.revenue.timezone} />
          )}
          {data.entries.meta.total === 0 && (
            <EmptyState title="No entries">The ledger has none of this kind in these days.</EmptyState>
          )}
          <Pager page={data.page} hasMore={data.page * ENTRIES_PER_PAGE < data.entries.meta.total} />
        </div>
      )}
    </>
  );
}

function Choices({ search, figure }: { search: EntriesSearch; figure: Figure }) {
  const navigate = route.useNavigate();
  const change = (changed: { figure?: Figure; product?: string | undefined }) =>
    void navigate({
      search: (old: EntriesSearch) => ({ ...old, page: undefined, ...changed }) as EntriesSearch,
    });
  return (
    <div className="row wrap analytics-choices">
      <select
        className="input"
        aria-label="Figure"
        value={figure}
        onChange={({ target }) => change({ figure: target.value as Figure })}
      >
        {FIGURES.map((each) => (
          <option key={each} value={each}>
            {NAMES[each]}
          </option>
        ))}
      </select>
      <ProductSelect value={search.product} onChange={(product) => change({ product })} />
    </div>
  );
}

interface EntryTableProps {
  entries: AnalyticsEntry[];
  /** The entries' times are those by which they belong to the days. */
  zone: string;
}

function EntryTable({ entries, zone }: EntryTableProps) {
  const time = new Intl.DateTimeFormat(LOCALE, { dateStyle: "medium", timeStyle: "short", timeZone: zone });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reached by the keyboard
    <section className="analytics-scroll beam" aria-label="Ledger entries" tabIndex={0}>
      <table className="analytics-entries">
        <thead>
          <tr>
            <th>Time</th>
            <th>Entry</th>
            <th>Product</th>
            <th>Order</th>
            <th className="r">Amount</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry) => (
            <tr key={`${entry.transactionId} ${entry.account}`}>
              <td className="nowrap">
                <time dateTime={entry.occurredAt} title={formatExactTime(entry.occurredAt)}>
                  {time.format(new Date(entry.occurredAt))}
                </time>
              </td>
              <td className="nowrap" title={`Ledger transaction ${entry.transactionId}`}>
                {KINDS[entry.kind] ?? entry.kind}
                <span className="soft">, {ACCOUNTS[entry.account] ?? entry.account}</span>
              </td>
              <td dir="auto" className="analytics-product">
                {entry.product.title}
              </td>
              <td>
                <Id id={entry.orderId} />
              </td>
              <td className="r nowrap">{formatMoney(entry.amount, entry.currency)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
