import type { ProductRunCounts } from "@stoa/sdk";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { EmptyState } from "../../components/empty-state.tsx";
import { Chips } from "../../components/studio/chips.tsx";
import { ProductSelect } from "../../components/studio/product-select.tsx";
import { SellerPage } from "../../components/studio/seller-page.tsx";
import { StudioList } from "../../components/studio/studio-list.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatCount, formatPercent } from "../../lib/format.ts";
import { queryOf } from "../../lib/list-code.ts";
import { editorPath } from "../../lib/studio-links.ts";
import { useListKeys } from "../../lib/use-keys.ts";
import { useSearchChange } from "../../lib/use-search-change.ts";
import { runCountsQuery, runsRequest } from "../../queries/studio.ts";

const route = getRouteApi("/studio-shell/studio/runs");

export default function ProductRuns() {
  return (
    <SellerPage
      title="Runs"
      intro="How often buyers ran your products, and why runs failed. What they typed and got is theirs alone."
    >
      <RunList />
    </SellerPage>
  );
}

function RunList() {
  useListKeys();
  const search = route.useSearch();
  const result = useQuery({ ...runCountsQuery(search), placeholderData: keepPreviousData });
  const change = useSearchChange();
  const { page: _, ...filters } = search;
  const request = runsRequest(filters);
  return (
    <>
      <search className="row wrap studio-filters">
        <Chips
          label="Order"
          name="sort"
          value={search.sort}
          options={[
            [undefined, "Most runs"],
            ["failures", "Most failures"],
          ]}
        />
        <ProductSelect value={search.product} onChange={(product) => change({ product })} />
      </search>
      <StudioList
        result={result}
        page={search.page}
        noun={["product with runs", "products with runs"]}
        code={{
          curl: curlOf("GET", `/products/runs?${queryOf(request)}`),
          sdk: `for await (const { product, failed30Days } of stoa.products.runCounts(${JSON.stringify(request)})) console.log(product.title, failed30Days);`,
        }}
        empty={
          <EmptyState title={search.product === undefined ? "No runs yet" : "No runs of this product yet"}>
            Each run of a buyer counts here, with its reason if it fails. Your own runs do not.
          </EmptyState>
        }
      >
        {(items) => <RunTable items={items} />}
      </StudioList>
    </>
  );
}

const RunTable = ({ items }: { items: ProductRunCounts[] }) => (
  <table>
    <thead>
      <tr>
        <th>Product</th>
        <th className="r">30 days</th>
        <th className="r">Failed</th>
        <th>Why, in 30 days</th>
        <th className="r">Buyers</th>
        <th className="r">Ever</th>
      </tr>
    </thead>
    <tbody>
      {items.map((counts) => (
        <RunRow key={counts.product.id} counts={counts} />
      ))}
    </tbody>
  </table>
);

function RunRow({ counts }: { counts: ProductRunCounts }) {
  const { product, last30Days, failed30Days, failures30Days, buyers, total } = counts;
  return (
    <tr>
      <td className="name">
        <Link to={editorPath(product)} className="studio-row-link m" data-row dir="auto">
          {product.title}
        </Link>
      </td>
      <td className="r" data-label="30 days">
        {formatCount(last30Days)}
      </td>
      <td className="r" data-label="Failed">
        {failed30Days === 0 ? (
          <span className="soft">0</span>
        ) : (
          <span className="bad m">
            {formatCount(failed30Days)} ({formatPercent(failed30Days / last30Days)})
          </span>
        )}
      </td>
      <td>
        <span className="row wrap">
          {failures30Days.slice(0, 3).map(({ code, runs }) => (
            <code key={code} className="tag">
              {code} {formatCount(runs)}
            </code>
          ))}
        </span>
      </td>
      <td className="r soft" data-label="Buyers">
        {formatCount(buyers)}
      </td>
      <td className="r soft" data-label="Ever">
        {formatCount(total)}
      </td>
    </tr>
  );
}
