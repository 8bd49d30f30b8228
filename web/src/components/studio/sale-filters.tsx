import type { ReactNode } from "react";
import { orderStatus } from "../../lib/orders.ts";
import { useSearchChange } from "../../lib/use-search-change.ts";
import { SALE_STATUSES, type SalesSearch } from "../../queries/selling-lists.ts";
import { DayFilter } from "../day-filter.tsx";
import { FilterSelect } from "../filters.tsx";
import { ProductSelect } from "./product-select.tsx";

interface SaleFiltersProps {
  search: SalesSearch;
  /** Further filters, which come first. */
  children?: ReactNode;
}

/** The filters of a list of sales. */
export function SaleFilters({ search: { status, product, from, to }, children }: SaleFiltersProps) {
  const change = useSearchChange();
  return (
    <search className="row wrap studio-filters">
      {children}
      <FilterSelect
        label="Status"
        none="Any status"
        value={status}
        options={SALE_STATUSES.map((each) => [each, orderStatus({ status: each })[1]] as const)}
        onChange={(value) => change({ status: value })}
      />
      <ProductSelect value={product} onChange={(value) => change({ product: value })} />
      <DayFilter label="From" value={from} max={to} onChange={(value) => change({ from: value })} />
      <DayFilter label="To" value={to} min={from} onChange={(value) => change({ to: value })} />
    </search>
  );
}
