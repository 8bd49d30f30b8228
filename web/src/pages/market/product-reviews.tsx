import type { ProductDetail, Review } from "@stoa/sdk";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Avatar } from "../../components/avatar.tsx";
import { StarIcon } from "../../components/icons.tsx";
import { Time } from "../../components/time.tsx";
import { formatCount, formatRating } from "../../lib/format.ts";
import { reviewsQuery } from "../../queries/market.ts";

export function Reviews({ product }: { product: ProductDetail }) {
  const { data, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery(reviewsQuery(product.id));
  const reviews = data?.pages.flatMap((page) => page.data) ?? [];
  if (reviews.length === 0) return null;
  const { rating, reviews: count } = product.stats;
  return (
    <section className="beam" id="reviews">
      <div className="row between">
        <h2>Reviews</h2>
        <span className="row stars">
          <StarIcon size={14} className="star" />
          <b className="num">{formatRating(rating)}</b>
          <span className="soft">
            from {formatCount(count)} {count === 1 ? "buyer" : "buyers"}
          </span>
        </span>
      </div>
      {reviews.map((review) => (
        <ReviewItem key={review.id} review={review} seller={product.author.name} />
      ))}
      {hasNextPage && (
        <button
          type="button"
          className="btn more"
          disabled={isFetchingNextPage}
          onClick={() => fetchNextPage()}
        >
          Show more reviews
        </button>
      )}
    </section>
  );
}

function ReviewItem({ review, seller }: { review: Review; seller: string }) {
  return (
    <article className="review">
      <div className="row">
        <Avatar name={review.author.name} isSmall />
        <b dir="auto">{review.author.name}</b>
        <Time iso={review.createdAt} isDay className="soft sm" />
        <span className="row stars end">
          <StarIcon size={12} className="star" /> {review.rating}
          <span className="hidden">of 5 stars</span>
        </span>
      </div>
      <p dir="auto">{review.comment}</p>
      {review.reply && (
        <div className="reply" dir="auto">
          <b>{seller}</b> <span className="soft">replied</span>
          <p>{review.reply.comment}</p>
        </div>
      )}
    </article>
  );
}
