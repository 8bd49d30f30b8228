import "./search.css";
import type { Facets } from "@stoa/sdk";
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { FormEvent, ReactNode } from "react";
import { CloseIcon } from "../../components/icons.tsx";
import { Pager } from "../../components/pager.tsx";
import { ProductCard, ProductRow } from "../../components/product-card.tsx";
import { SortSelect } from "../../components/sort-select.tsx";
import type { ProductSearch } from "../../first-requests.ts";
import { formatCount, formatMoney, formatPercent } from "../../lib/format.ts";
import { LANGUAGES, languageName } from "../../lib/languages.ts";
import { providerName } from "../../lib/providers.ts";
import { useTitle } from "../../lib/use-title.ts";
import { categoriesQuery, facetsQuery, resultsQuery } from "../../queries/market.ts";

const route = getRouteApi("/search");

const SORTS = [
  { value: "relevance", label: "Relevance" },
  { value: "trending", label: "Trending" },
  { value: "rating", label: "Best rated" },
  { value: "publishedAt", label: "Newest" },
  { value: "price", label: "Price" },
  { value: "passRate", label: "Measured best" },
] as const;

export default function Search() {
  const search = route.useSearch();
  useTitle(search.q ? `${search.q} – Search` : "Search");
  return (
    <main className="market search" id="content">
      <h1 className="hidden">Search products</h1>
      <div className="cols">
        <FacetColumn search={search} />
        <Results search={search} />
      </div>
    </main>
  );
}

function useChange() {
  const navigate = route.useNavigate();
  /** Any change of a filter leads to the first page. */
  return (changes: Partial<Record<keyof ProductSearch, unknown>>) =>
    navigate({ search: (old) => ({ ...old, page: undefined, ...changes }) as ProductSearch });
}

function Results({ search }: { search: ProductSearch }) {
  const { data } = useSuspenseQuery(resultsQuery(search));
  const { data: products, meta } = data;
  const count = `${meta.totalIsEstimate ? "At least " : ""}${formatCount(meta.total)}`;
  return (
    <div className="results">
      <div className="row between wrap">
        <p className="hint" role="status">
          <Hint search={search} corrected={meta.correctedSearch} />
          <span className="soft">
            {count} {meta.total === 1 ? "result" : "results"}
          </span>
        </p>
        <a href="#filters" className="btn phone">
          Filters
        </a>
        <Arrangement search={search} />
      </div>
      <Chips search={search} />
      {products.length === 0 ? (
        <NoResults search={search} />
      ) : search.view === "list" ? (
        <div className="beam rows">
          {products.map((product) => (
            <ProductRow key={product.id} product={product} />
          ))}
        </div>
      ) : (
        <div className="grid three beam">
          {products.map((product, at) => (
            <ProductCard key={product.id} product={product} isFirst={at < 6} />
          ))}
        </div>
      )}
      <Pager page={search.page} hasMore={data.hasMore} />
    </div>
  );
}

function Hint({ search, corrected }: { search: ProductSearch; corrected: string | undefined }) {
  if (corrected === undefined || search.q === undefined) return null;
  return (
    <>
      Showing results for <b>{corrected}</b>.{" "}
    </>
  );
}

function Arrangement({ search }: { search: ProductSearch }) {
  const change = useChange();
  return (
    <span className="row">
      <SortSelect
        sorts={SORTS}
        value={search.sort ?? "relevance"}
        onChange={(sort) => change({ sort: sort === "relevance" ? undefined : sort })}
      />
      <span className="seg">
        <Link
          from="/search"
          to="/search"
          search={(old) => ({ ...old, view: undefined })}
          {...current(search.view !== "list")}
        >
          Grid
        </Link>
        <Link
          from="/search"
          to="/search"
          search={(old) => ({ ...old, view: "list" })}
          {...current(search.view === "list")}
        >
          List
        </Link>
      </span>
    </span>
  );
}

const current = (isCurrent: boolean) => (isCurrent ? { "aria-current": "true" as const } : {});

const FILTERS = [
  "type",
  "category",
  "provider",
  "tag",
  "lang",
  "minPrice",
  "maxPrice",
  "minRating",
  "testedOn",
  "minPassRate",
] as const;
const FILTER_LABELS: Partial<Record<(typeof FILTERS)[number], string>> = {
  minPrice: "from",
  maxPrice: "up to",
  minRating: "stars from",
  testedOn: "tested on",
  minPassRate: "pass rate from",
  lang: "language",
};

function valueLabel(name: (typeof FILTERS)[number], value: unknown): string {
  const text = String(value);
  if (name === "minPassRate") return formatPercent(Number(value));
  return name === "lang" ? languageName(text) : name === "provider" ? providerName(text) : text;
}

function Chips({ search }: { search: ProductSearch }) {
  const active = FILTERS.filter((name) => search[name] !== undefined);
  if (active.length === 0) return null;
  return (
    <div className="row wrap chips">
      {active.map((name) => (
        <Link
          key={name}
          from="/search"
          to="/search"
          search={(old) => ({ ...old, page: undefined, [name]: undefined })}
          className="chip"
          aria-label={`Remove the filter ${FILTER_LABELS[name] ?? name}: ${valueLabel(name, search[name])}`}
        >
          {FILTER_LABELS[name] && <b>{FILTER_LABELS[name]}</b>} {valueLabel(name, search[name])}
          <CloseIcon size={13} />
        </Link>
      ))}
      <Link to="/search" search={search.q ? { q: search.q } : {}} className="link sm">
        Remove all
      </Link>
    </div>
  );
}

function NoResults({ search }: { search: ProductSearch }) {
  const hasFilters = FILTERS.some((name) => search[name] !== undefined);
  return (
    <div className="beam none">
      <h2>Nothing matches{search.q ? ` “${search.q}”` : ""}</h2>
      <p className="soft">
        {hasFilters ? "Remove a filter, or search for fewer words." : "Search for fewer or other words."}
      </p>
      <p>
        <Link to="/search" search={{}} className="link">
          Show all products
        </Link>
      </p>
    </div>
  );
}

/** A choice of a filter: a click sets it, a second click removes it. */
interface Choice {
  label: string;
  count: number;
  filter: Partial<ProductSearch>;
}

function FacetColumn({ search }: { search: ProductSearch }) {
  const { data: facets } = useSuspenseQuery(facetsQuery(search));
  const { data: categories } = useSuspenseQuery(categoriesQuery);
  const nameOf = (slug: string) => categories.data.find((category) => category.slug === slug)?.name ?? slug;
  const choicesOf = (
    name: "category" | "provider" | "tag" | "testedOn",
    toLabel = (value: string) => value,
  ) => facets[name].map(({ value, count }) => ({ label: toLabel(value), count, filter: { [name]: value } }));
  return (
    <aside className="facets-column" aria-label="Filters" id="filters">
      <Facet title="Type" choices={typeChoices(facets)} search={search} />
      <Facet title="Category" choices={choicesOf("category", nameOf)} search={search} />
      <Facet title="Price" choices={priceChoices(facets)} search={search}>
        <PriceRange search={search} currency={facets.currency} />
      </Facet>
      <Facet title="Runs on" choices={choicesOf("provider", providerName)} search={search} />
      <Facet title="Tag" choices={choicesOf("tag").slice(0, 10)} search={search} />
      <Facet title="Pass rate, lower bound" choices={passRateChoices(facets)} search={search} />
      <Facet title="Tested on" choices={choicesOf("testedOn").slice(0, 10)} search={search} />
      <Facet title="Rating" choices={ratingChoices(facets)} search={search} />
      <Language search={search} />
    </aside>
  );
}

const typeChoices = ({ type }: Facets): Choice[] =>
  type.map(({ value, count }) => ({
    label: value === "WORKFLOW" ? "Workflows" : "Prompts",
    count,
    filter: { type: value === "WORKFLOW" ? "workflow" : "prompt" },
  }));

function priceChoices({ price, currency }: Facets): Choice[] {
  const money = (amount: number) => formatMoney(amount, currency).replace(/[.,]00$/, "");
  return price.map(({ from, to, count }) => ({
    label: to === null ? `${money(from)} and more` : `${money(from)} to ${money(to)}`,
    count,
    filter: { ...(from > 0 && { minPrice: from }), ...(to !== null && { maxPrice: to }) },
  }));
}

const ratingChoices = ({ rating }: Facets): Choice[] =>
  rating.map(({ from, count }) => ({
    label: `${from} ${from === 1 ? "star" : "stars"} and more`,
    count,
    filter: { minRating: from },
  }));

/** None where no product is measured. */
const passRateChoices = ({ passRate }: Facets): Choice[] =>
  passRate.some(({ count }) => count > 0)
    ? passRate.map(({ from, count }) => ({
        label: `${formatPercent(from)} and more`,
        count,
        filter: { minPassRate: from },
      }))
    : [];

/** The fields of one facet, so that another choice replaces the first. */
const cleared = (choices: Choice[]): Partial<ProductSearch> =>
  Object.fromEntries(choices.flatMap(({ filter }) => Object.keys(filter)).map((name) => [name, undefined]));

interface FacetProps {
  title: string;
  choices: Choice[];
  search: ProductSearch;
  children?: ReactNode;
}

function Facet({ title, choices, search, children }: FacetProps) {
  if (choices.length === 0) return null;
  const none = cleared(choices);
  const isChosen = ({ filter }: Choice) =>
    Object.keys(none).every(
      (name) => search[name as keyof ProductSearch] === filter[name as keyof ProductSearch],
    );
  return (
    <div>
      <h2>{title}</h2>
      <ul>
        {choices.map((choice) => (
          <li key={choice.label}>
            <Link
              from="/search"
              to="/search"
              search={(old) => ({
                ...old,
                page: undefined,
                ...none,
                ...(!isChosen(choice) && choice.filter),
              })}
              className={isChosen(choice) ? "facet on" : "facet"}
              aria-current={isChosen(choice) ? "true" : undefined}
              resetScroll={false}
            >
              <span className="cut">{choice.label}</span>
              <b>{formatCount(choice.count)}</b>
            </Link>
          </li>
        ))}
      </ul>
      {children}
    </div>
  );
}

/** Any range, beside those with counts. */
function PriceRange({ search, currency }: { search: ProductSearch; currency: string }) {
  const change = useChange();
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const amount = (name: string) => (form.get(name) === "" ? undefined : Number(form.get(name)));
    void change({ minPrice: amount("minPrice"), maxPrice: amount("maxPrice") });
  };
  const field = (name: "minPrice" | "maxPrice", label: string) => (
    <input
      key={search[name]}
      className="input"
      type="number"
      name={name}
      aria-label={`Price ${label.toLowerCase()}, in ${currency}`}
      placeholder={label}
      min={0}
      max={999_999}
      step="any"
      defaultValue={search[name]}
    />
  );
  return (
    <form className="row price-range" onSubmit={submit}>
      {field("minPrice", "From")}
      {field("maxPrice", "To")}
      <button type="submit" className="btn s">
        Set
      </button>
    </form>
  );
}

function Language({ search }: { search: ProductSearch }) {
  const change = useChange();
  const { lang } = search;
  const known = lang === undefined || LANGUAGES.includes(lang) ? LANGUAGES : [lang, ...LANGUAGES];
  return (
    <div>
      <h2>Language</h2>
      <select
        className="input"
        aria-label="Language"
        value={lang ?? ""}
        onChange={(event) => change({ lang: event.target.value || undefined })}
      >
        <option value="">Any</option>
        {known.map((tag) => (
          <option key={tag} value={tag}>
            {languageName(tag)}
          </option>
        ))}
      </select>
    </div>
  );
}
