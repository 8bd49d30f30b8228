import "./seller.css";
import type { Seller as SellerProfile } from "@stoa/sdk";
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { Avatar } from "../../components/avatar.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { LinkIcon, StarIcon } from "../../components/icons.tsx";
import { Pager } from "../../components/pager.tsx";
import { ProductCard } from "../../components/product-card.tsx";
import { SortSelect } from "../../components/sort-select.tsx";
import type { SellerSearch } from "../../first-requests.ts";
import { formatCount, formatDate, formatRating } from "../../lib/format.ts";
import { useTitle } from "../../lib/use-title.ts";
import { sellerProductsQuery, sellerQuery } from "../../queries/market.ts";

const route = getRouteApi("/u/$handle");

const SORTS = [
  { value: "trending", label: "Trending" },
  { value: "publishedAt", label: "Newest" },
  { value: "rating", label: "Best rated" },
  { value: "price", label: "Price" },
] as const;

export default function Seller() {
  const { handle } = route.useParams();
  const search = route.useSearch();
  const { data: seller } = useSuspenseQuery(sellerQuery(handle));
  const { data: products } = useSuspenseQuery(sellerProductsQuery(handle, search));
  useTitle(seller.name);
  return (
    <main className="market seller-page" id="content">
      <Profile seller={seller} />
      <section className="beam">
        <div className="row between">
          <h2>Products</h2>
          <Sort search={search} />
        </div>
        {products.data.length === 0 ? (
          <EmptyState title="Nothing on sale">This seller has no products on sale at present.</EmptyState>
        ) : (
          <div className="grid">
            {products.data.map((product, at) => (
              <ProductCard key={product.id} product={product} isFirst={at < 8} />
            ))}
          </div>
        )}
        <Pager page={search.page} hasMore={products.hasMore} />
      </section>
    </main>
  );
}

function Profile({ seller }: { seller: SellerProfile }) {
  const { name, bio, avatar, links, verified, memberSince } = seller;
  return (
    <div className="profile">
      <Avatar name={name} image={avatar} />
      <div className="stack">
        <h1 className="title" dir="auto">
          {name} {verified && <span className="tag accent">Verified</span>}
        </h1>
        {bio && (
          <p className="reading preserve-lines" dir="auto">
            {bio}
          </p>
        )}
        <p className="row wrap soft">
          <Counts counts={seller.counts} />
          <span>Member since {formatDate(memberSince)}</span>
        </p>
        {links.length > 0 && (
          <ul className="row wrap">
            {links.map(({ label, url }) => (
              <li key={url}>
                <a className="link row" href={url} rel="nofollow noopener ugc" dir="auto">
                  <LinkIcon /> {label ?? new URL(url).host}
                </a>
              </li>
            ))}
          </ul>
        )}
      </div>
    </div>
  );
}

function Counts({ counts }: { counts: SellerProfile["counts"] }) {
  const { products, sales, reviews, rating } = counts;
  return (
    <>
      <span>
        {formatCount(products)} {products === 1 ? "product" : "products"}
      </span>
      <span>
        {formatCount(sales)} {sales === 1 ? "sale" : "sales"}
      </span>
      {rating !== null && (
        <span className="row stars">
          <StarIcon size={14} className="star" />
          <b className="num">{formatRating(rating)}</b>
          <span>
            from {formatCount(reviews)} {reviews === 1 ? "review" : "reviews"}
          </span>
        </span>
      )}
    </>
  );
}

function Sort({ search }: { search: SellerSearch }) {
  const navigate = route.useNavigate();
  return (
    <SortSelect
      sorts={SORTS}
      value={search.sort ?? "trending"}
      onChange={(sort) => navigate({ search: sort === "trending" ? {} : { sort } })}
    />
  );
}
