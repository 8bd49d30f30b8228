import type { ReceivedReview } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, lazy, useState } from "react";
import { stoa } from "../../api.ts";
import { Field, fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { StarIcon } from "../../components/icons.tsx";
import { Part } from "../../components/part.tsx";
import { RowMenu } from "../../components/row-menu.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { takeDraft } from "../../lib/drafts.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";

const ReportReviewDialog = lazy(() => import("./report-review-dialog.tsx"));

const draftName = (reviewId: string) => `reply-${reviewId}`;

export function ReviewItem({ review }: { review: ReceivedReview }) {
  const { id, author, rating, comment, createdAt, updatedAt, refunded, reply, product } = review;
  // What was typed before a sign-in.
  const [draft] = useState(() => takeDraft<string>(draftName(id)));
  const [isWriting, setWriting] = useState(draft !== null);
  const [isReporting, setReporting] = useState(false);
  const removal = useReplyRemoval(review);
  return (
    <li>
      <div className="row between">
        <span className="row wrap">
          <span className="row nowrap m">
            <StarIcon /> {rating}
            <span className="hidden"> of 5 stars</span>
          </span>
          <b dir="auto">{product.title}</b>
          {refunded && <StatusTag tone="neutral">Refunded</StatusTag>}
        </span>
        <RowMenu
          label={`More for the review by ${author.name}`}
          actions={[
            ...(reply
              ? [{ label: "Delete your reply", isDestructive: true, onSelect: () => removal.start() }]
              : []),
            { label: "Report to the moderators", onSelect: () => setReporting(true) },
          ]}
        />
      </div>
      {comment === "" ? (
        <p className="soft">Stars without words.</p>
      ) : (
        <p className="preserve-lines" dir="auto">
          {comment}
        </p>
      )}
      <p className="sm soft">
        <span dir="auto">{author.name}</span>, <Time iso={createdAt} />
        {updatedAt && (
          <>
            , changed <Time iso={updatedAt} />
          </>
        )}
      </p>
      {reply && !isWriting && (
        <div className="reviews-answer">
          <p className="preserve-lines" dir="auto">
            {reply.comment}
          </p>
          <p className="sm soft">
            You, <Time iso={reply.updatedAt ?? reply.createdAt} />
          </p>
        </div>
      )}
      {isWriting ? (
        <ReplyForm review={review} typed={draft} onClose={() => setWriting(false)} />
      ) : (
        <span>
          <button
            type="button"
            className="btn s"
            aria-label={`${reply ? "Change the reply" : "Reply"} to ${author.name}`}
            onClick={() => setWriting(true)}
          >
            {reply ? "Change the reply" : "Reply"}
          </button>
        </span>
      )}
      {isReporting && (
        <Part>
          <ReportReviewDialog review={review} onClose={() => setReporting(false)} />
        </Part>
      )}
    </li>
  );
}

const useRefresh = () => {
  const client = useQueryClient();
  return () =>
    Promise.all([
      client.invalidateQueries({ queryKey: ["reviews"] }),
      client.invalidateQueries({ queryKey: ["studio", "tasks"] }),
    ]);
};

/** Deletes at once, and offers to post the same text again. */
function useReplyRemoval({ id, product, reply }: ReceivedReview) {
  const refresh = useRefresh();
  const restore = useAction({
    run: async (comment: string, idempotencyKey) =>
      await stoa.reviews.reply(product.id, id, { comment }, { idempotencyKey }),
    onError: (error) => showError("The reply was not posted again", error),
    onSettled: refresh,
  });
  return useAction({
    run: async () => await stoa.reviews.deleteReply(product.id, id),
    onSuccess: () => {
      const comment = reply?.comment;
      showToast("Your reply is deleted.", comment ? { undo: () => restore.start(comment) } : {});
    },
    onError: (error) => showError("Your reply stays", error),
    onSettled: refresh,
  });
}

interface ReplyFormProps {
  review: ReceivedReview;
  typed: string | null;
  onClose: () => void;
}

function ReplyForm({ review: { id, product, reply, author }, typed, onClose }: ReplyFormProps) {
  const [comment, setComment] = useState(typed ?? reply?.comment ?? "");
  const refresh = useRefresh();
  const post = useAction({
    run: async (body: { comment: string }, idempotencyKey) =>
      await stoa.reviews.reply(product.id, id, body, { idempotencyKey }),
    onSuccess: async () => {
      showToast("Your reply stands below the review.");
      await refresh();
      onClose();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!post.isSuccess) post.start({ comment: comment.trim() });
  };
  return (
    <form className="reviews-reply" onSubmit={submit}>
      <FormError
        error={post.error}
        title="The reply was not posted"
        draft={{ name: draftName(id), value: comment }}
      />
      <Field label={`Your reply to ${author.name}, for everybody`} error={fieldErrors(post.error)["comment"]}>
        {(control) => (
          <textarea
            {...control}
            className="input"
            rows={3}
            maxLength={5_000}
            required
            // biome-ignore lint/a11y/noAutofocus: it opens by a click on "Reply"
            autoFocus
            dir="auto"
            value={comment}
            onChange={({ target }) => setComment(target.value)}
          />
        )}
      </Field>
      <div className="row wrap">
        <button type="submit" className="btn s primary" disabled={post.isPending || post.isSuccess}>
          Post the reply
        </button>
        <button type="button" className="btn s" onClick={onClose}>
          Discard
        </button>
      </div>
    </form>
  );
}
