import "./home.css";
import { useSuspenseQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import type { FormEvent } from "react";
import { Colonnade } from "../../components/colonnade.tsx";
import { SearchIcon } from "../../components/icons.tsx";
import { ProductCard, ProductRow } from "../../components/product-card.tsx";
import { HOME_SECTIONS, HOME_TITLES, type HomeSection, homeFilters } from "../../first-requests.ts";
import { initialData } from "../../initial-data.ts";
import { formatCount } from "../../lib/format.ts";
import { useTitle } from "../../lib/use-title.ts";
import { categoriesQuery, homeProductsQuery } from "../../queries/market.ts";
import { useAccount } from "../../session.ts";
import { FirstSteps } from "./first-steps.tsx";

export default function Home() {
  const account = useAccount();
  useTitle("Prompts and workflows");
  const { data: trending } = useSuspenseQuery(homeProductsQuery("trending"));
  return (
    <main className="market" id="content">
      <div className="hero">
        <div>
          <h1 className="display">Prompts and workflows that you run yourself.</h1>
          <p>
            Buy once, then run it in the page with your own provider key. You see the cost before each run and
            the exact amount after it.
          </p>
          <HeroSearch />
        </div>
        <Colonnade products={trending.data} />
      </div>
      {(account !== null || initialData.environment === "test") && <FirstSteps />}
      {HOME_SECTIONS.map((sort) => (
        <Section key={sort} sort={sort} />
      ))}
      <Categories />
    </main>
  );
}

function HeroSearch() {
  const navigate = useNavigate();
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget).get("q")).trim();
    void navigate({ to: "/search", search: text ? { q: text } : {} });
  };
  return (
    <search>
      <form className="big" onSubmit={submit}>
        <SearchIcon size={20} />
        <input
          type="search"
          name="q"
          placeholder="What should the model do?"
          aria-label="Search"
          maxLength={200}
        />
        <button type="submit" className="btn primary">
          Search
        </button>
      </form>
    </search>
  );
}

function Section({ sort }: { sort: HomeSection }) {
  const { data } = useSuspenseQuery(homeProductsQuery(sort));
  if (data.data.length === 0) return null;
  return (
    <section className="beam">
      <div className="row between">
        <h2>{HOME_TITLES[sort]}</h2>
        <Link to="/search" search={{ sort, ...homeFilters(sort) }} className="link sm">
          See all{" "}
          {data.meta.totalIsEstimate
            ? `at least ${formatCount(data.meta.total)}`
            : formatCount(data.meta.total)}
        </Link>
      </div>
      {sort === "passRate" ? (
        <>
          {data.data.map((product) => (
            <ProductRow key={product.id} product={product} />
          ))}
          <p className="xs faint score-hint">
            The bar is the 95 % interval over the seller’s own tests, the ring is the model without the
            product.
          </p>
        </>
      ) : (
        <div className="grid">
          {data.data.map((product) => (
            <ProductCard key={product.id} product={product} isFirst={sort === "trending"} />
          ))}
        </div>
      )}
    </section>
  );
}

function Categories() {
  const { data } = useSuspenseQuery(categoriesQuery);
  const shown = data.data.filter(({ parent, products }) => parent === null && products > 0);
  if (shown.length === 0) return null;
  return (
    <section className="beam">
      <h2>Categories</h2>
      <ul className="cats">
        {shown.map(({ slug, name, products }) => (
          <li key={slug}>
            <Link to="/search" search={{ category: slug }}>
              <span className="m">{name}</span>
              <span className="num faint">{formatCount(products)}</span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}
