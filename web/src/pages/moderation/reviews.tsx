import "./reviews.css";
import type { ModeratedReview } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { AdminList } from "../../components/administration/admin-list.tsx";
import { PersonLink, ProductLink } from "../../components/administration/links.tsx";
import { ReasonDialog } from "../../components/administration/reason-dialog.tsx";
import { useFilters } from "../../components/administration/use-filters.ts";
import { FilterSelect } from "../../components/filters.tsx";
import { FlagIcon } from "../../components/icons.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { formatCount } from "../../lib/format.ts";
import { listCode } from "../../lib/list-code.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useListQuery } from "../../lib/use-list-query.ts";
import { parseReviewsSearch, REVIEW_STATUSES, reviewsQuery } from "../../queries/moderation.ts";

const route = getRouteApi("/admin-shell/admin/reviews");

const STATUS_NAMES = { reported: "Reported", hidden: "Hidden" };

export default function Reviews() {
  const search = parseReviewsSearch({ ...route.useSearch() });
  const change = useFilters();
  const { data, isFetching } = useListQuery(reviewsQuery(search));
  return (
    <AdminList
      title="Reviews"
      intro="Reviews that were reported or hidden. A hidden one does not count in the average, and its author sees the reason."
      code={listCode("/admin/reviews", "admin.reviews.list", { ...search })}
      filters={
        <FilterSelect
          label="Status"
          none="Reported and hidden"
          value={search.status}
          options={REVIEW_STATUSES.map((status) => [status, STATUS_NAMES[status]])}
          onChange={(status) => change({ status })}
        />
      }
      result={data}
      isFetching={isFetching}
      page={search.page}
      nouns={["review", "reviews"]}
      empty={{ title: "No such reviews", text: "A review shows here when somebody reports it." }}
    >
      <ul className="admin-reviews">
        {data.data.map((review) => (
          <ReviewItem key={review.id} review={review} />
        ))}
      </ul>
    </AdminList>
  );
}

function ReviewItem({ review }: { review: ModeratedReview }) {
  const client = useQueryClient();
  const [isHiding, setHiding] = useState(false);
  const isHidden = review.hidden !== null;
  const refresh = async (text: string) => {
    showToast(text);
    await client.invalidateQueries({ queryKey: ["admin", "reviews"] });
    await client.invalidateQueries({ queryKey: ["admin", "waiting"] });
  };
  const restore = useAction({
    run: async (_, idempotencyKey) => await stoa.admin.reviews.restore(review.id, { idempotencyKey }),
    onSuccess: () => refresh(isHidden ? "The review is shown again." : "The reports were dismissed."),
    onError: (error) => showError("Nothing changed", error),
  });
  const hide = useAction({
    run: async (reason: string, idempotencyKey) =>
      await stoa.admin.reviews.hide(review.id, { reason }, { idempotencyKey }),
    onSuccess: () => {
      setHiding(false);
      return refresh("The review is hidden.");
    },
  });
  return (
    <li>
      <div className="row wrap sm soft">
        <b className="num">{review.rating} of 5</b>
        <span>
          <PersonLink person={review.author} /> about <ProductLink product={review.product} />
        </span>
        {isHidden && <StatusTag tone="neutral">Hidden</StatusTag>}
        {review.openReports > 0 && (
          <span className="tag bad">
            <FlagIcon /> {formatCount(review.openReports)} {review.openReports === 1 ? "report" : "reports"}
          </span>
        )}
        <Time iso={review.createdAt} />
      </div>
      {review.comment && (
        <p className="preserve-lines" dir="auto">
          {review.comment}
        </p>
      )}
      {review.reports.map(({ reporter, reason, createdAt }) => (
        <p key={reporter.id + createdAt} className="sm soft">
          “{reason}” <PersonLink person={reporter} />, <Time iso={createdAt} />
        </p>
      ))}
      {review.hidden && <p className="sm soft">Hidden: {review.hidden.reason}</p>}
      <div className="row wrap">
        {!isHidden && (
          <button type="button" className="btn s danger" onClick={() => setHiding(true)}>
            Hide
          </button>
        )}
        <button type="button" className="btn s" disabled={restore.isPending} onClick={() => restore.start()}>
          {isHidden ? "Show again" : "Dismiss the reports"}
        </button>
      </div>
      {isHiding && (
        <ReasonDialog
          title="Hide this review?"
          action="Hide the review"
          keep="Keep it"
          isDestructive
          reasonHint="Its author sees it."
          error={hide.error}
          errorTitle="The review was not hidden"
          isPending={hide.isPending}
          onSubmit={hide.start}
          onClose={() => setHiding(false)}
        >
          <p>It no longer counts in the average of {review.product.title}. You can show it again.</p>
        </ReasonDialog>
      )}
    </li>
  );
}
