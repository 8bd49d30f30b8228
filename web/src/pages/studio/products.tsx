import "./products.css";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type DragEvent, lazy, useState } from "react";
import { EmptyState } from "../../components/empty-state.tsx";
import { FilterSelect, FilterText } from "../../components/filters.tsx";
import { PlusIcon, UploadIcon } from "../../components/icons.tsx";
import { Part } from "../../components/part.tsx";
import { SortSelect } from "../../components/sort-select.tsx";
import { Chips } from "../../components/studio/chips.tsx";
import { StudioList } from "../../components/studio/studio-list.tsx";
import { curlOf } from "../../lib/curl.ts";
import { queryOf } from "../../lib/list-code.ts";
import { PRODUCT_STATUS_LABELS } from "../../lib/product-status.ts";
import { NEW_PRODUCT } from "../../lib/studio-links.ts";
import { useListKeys } from "../../lib/use-keys.ts";
import { useSearchChange } from "../../lib/use-search-change.ts";
import { useTitle } from "../../lib/use-title.ts";
import {
  ownProductsQuery,
  PRODUCT_STATUSES,
  type ProductSort,
  type ProductsSearch,
  productsRequest,
} from "../../queries/studio.ts";
import { ExportButton } from "./export-button.tsx";
import { ProductTable } from "./product-table.tsx";

const ImportDialog = lazy(() => import("./import-dialog.tsx"));

const route = getRouteApi("/studio-shell/studio/products");

const SORTS: { value: ProductSort; label: string }[] = [
  { value: "updatedAt", label: "Last change" },
  { value: "createdAt", label: "Newest" },
  { value: "title", label: "Title" },
  { value: "price", label: "Price" },
  { value: "popularity", label: "Sales" },
  { value: "rating", label: "Rating" },
];

export default function Products() {
  useTitle("Products");
  useListKeys();
  const search = route.useSearch();
  const change = useSearchChange();
  const navigate = route.useNavigate();
  const [dropped, setDropped] = useState<File | null>(null);
  const openImport = (file: File | null) => {
    setDropped(file);
    void navigate({ search: (old) => ({ ...old, import: true }) });
  };
  const result = useQuery({ ...ownProductsQuery(search), placeholderData: keepPreviousData });
  return (
    <main className="work studio" id="content" {...useDrop(openImport)}>
      <div className="row between wrap">
        <h1 className="page-title">Products</h1>
        <div className="row wrap">
          <ExportButton />
          <button type="button" className="btn" onClick={() => openImport(null)}>
            <UploadIcon /> Import
          </button>
          <Link to={NEW_PRODUCT} className="btn primary">
            <PlusIcon /> New product
          </Link>
        </div>
      </div>
      <Filters search={search} onChange={change} />
      <StudioList
        result={result}
        page={search.page}
        noun={["product", "products"]}
        code={codeOf(search)}
        empty={<NoProducts search={search} />}
      >
        {(products) => <ProductTable products={products} />}
      </StudioList>
      {search.import && (
        <Part>
          <ImportDialog
            file={dropped}
            onClose={() => void navigate({ search: (old) => ({ ...old, import: undefined }), replace: true })}
          />
        </Part>
      )}
    </main>
  );
}

/** A file that is dropped anywhere on the page opens the import. */
function useDrop(onFile: (file: File) => void) {
  return {
    onDragOver: (event: DragEvent) => {
      if (event.dataTransfer.types.includes("Files")) event.preventDefault();
    },
    onDrop: (event: DragEvent) => {
      const [file] = event.dataTransfer.files;
      if (!file) return;
      event.preventDefault();
      onFile(file);
    },
  };
}

interface FiltersProps {
  search: ProductsSearch;
  onChange: (changes: Record<string, string | undefined>) => void;
}

const Filters = ({ search, onChange }: FiltersProps) => (
  <search className="row wrap studio-filters">
    <FilterText
      label="Search your products"
      placeholder="Title, tag or text"
      value={search.q}
      onChange={(q) => onChange({ q })}
    />
    <Chips
      label="Status"
      name="status"
      value={search.status}
      options={[
        [undefined, "All"],
        ...PRODUCT_STATUSES.map((status) => [status, PRODUCT_STATUS_LABELS[status]] as const),
      ]}
    />
    <FilterSelect
      label="Type"
      none="Prompts and workflows"
      value={search.type}
      options={[
        ["prompt", "Prompts"],
        ["workflow", "Workflows"],
      ]}
      onChange={(type) => onChange({ type })}
    />
    <SortSelect
      sorts={SORTS}
      value={search.sort ?? "updatedAt"}
      onChange={(sort) => onChange({ sort: sort === "updatedAt" ? undefined : sort })}
    />
  </search>
);

function codeOf(search: ProductsSearch) {
  const request = productsRequest(search);
  return {
    curl: curlOf("GET", `/products?${queryOf(request)}`),
    sdk: `for await (const product of stoa.products.list(${JSON.stringify(request)})) console.log(product.title);`,
  };
}

function NoProducts({ search: { q, status, type, page } }: { search: ProductsSearch }) {
  const isFiltered = q ?? status ?? type ?? page;
  if (isFiltered === undefined)
    return (
      <EmptyState
        title="No products yet"
        action={
          <Link to={NEW_PRODUCT} className="btn primary">
            New product
          </Link>
        }
        curl={curlOf("POST", "/products", {
          title: "Haiku",
          type: "PROMPT",
          price: 4.99,
          content: "Write a haiku about {{topic}}.",
        })}
      >
        Write a prompt or a workflow, or drop a file with products on this page.
      </EmptyState>
    );
  return (
    <EmptyState
      title="No such products"
      action={
        <Link to="/studio/products" className="btn">
          Show all products
        </Link>
      }
    >
      None of your products matches these filters.
    </EmptyState>
  );
}
