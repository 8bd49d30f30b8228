import "./selling.css";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { EmptyState } from "../../components/empty-state.tsx";
import { FilterSelect } from "../../components/filters.tsx";
import { Chips } from "../../components/studio/chips.tsx";
import { ProductSelect } from "../../components/studio/product-select.tsx";
import { SellerPage } from "../../components/studio/seller-page.tsx";
import { StudioList } from "../../components/studio/studio-list.tsx";
import { curlOf } from "../../lib/curl.ts";
import { useSearchChange } from "../../lib/use-search-change.ts";
import { parseReviewsSearch, receivedReviewsQuery } from "../../queries/selling-lists.ts";
import { ReviewItem } from "./review-item.tsx";

const route = getRouteApi("/studio-shell/studio/reviews");
const STARS = ["5", "4", "3", "2", "1"].map(
  (stars) => [stars, stars === "1" ? "1 star" : `${stars} stars`] as const,
);

export default function Reviews() {
  return (
    <SellerPage
      title="Reviews"
      intro="Of all your products, those without a reply first. A reply stands below the review for everybody."
    >
      <ReviewList />
    </SellerPage>
  );
}

function ReviewList() {
  const search = parseReviewsSearch({ ...route.useSearch() });
  const change = useSearchChange();
  const result = useQuery({ ...receivedReviewsQuery(search), placeholderData: keepPreviousData });
  const isFiltered = Object.keys(search).length > 0;
  const request: Record<string, string> = search.status ? { status: search.status } : {};
  return (
    <>
      <search className="row wrap studio-filters">
        <Chips
          label="Replies"
          name="status"
          value={search.status}
          options={[
            [undefined, "All"],
            ["unanswered", "Without a reply"],
            ["answered", "Replied"],
          ]}
        />
        <FilterSelect
          label="Stars"
          none="Any stars"
          value={search.rating === undefined ? undefined : String(search.rating)}
          options={STARS}
          onChange={(rating) => change({ rating })}
        />
        <ProductSelect value={search.product} onChange={(product) => change({ product })} />
      </search>
      <StudioList
        result={result}
        page={search.page}
        noun={["review", "reviews"]}
        code={{
          curl: curlOf("GET", `/reviews?${new URLSearchParams(request)}`),
          sdk: `for await (const review of stoa.reviews.listReceived(${JSON.stringify(request)})) console.log(review.product.title, review.rating);`,
        }}
        empty={
          <EmptyState
            title={isFiltered ? "No such reviews" : "No reviews yet"}
            action={
              isFiltered && (
                <Link to="/studio/reviews" className="btn">
                  Show all reviews
                </Link>
              )
            }
          >
            {search.status === "unanswered"
              ? "Each review has your reply."
              : "Only buyers can review a product. What they write shows here."}
          </EmptyState>
        }
      >
        {(reviews) => (
          <ul className="reviews-list">
            {reviews.map((review) => (
              <ReviewItem key={review.id} review={review} />
            ))}
          </ul>
        )}
      </StudioList>
    </>
  );
}
