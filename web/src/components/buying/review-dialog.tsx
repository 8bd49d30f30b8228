import type { Review } from "@stoa/sdk";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { ownReviewQuery } from "../../queries/buying.ts";
import { useAccount } from "../../session.ts";
import { Dialog, DialogButtons } from "../dialog.tsx";
import { Field, fieldErrors } from "../field.tsx";
import { StarIcon } from "../icons.tsx";
import { ErrorStrip } from "../page-error.tsx";
import { SkeletonRows } from "../skeleton.tsx";

const MAX_COMMENT = 5_000;

interface ReviewDialogProps {
  product: { id: string; title: string };
  onClose: () => void;
}

/** Writes, changes or deletes the caller's review of a product that they bought. */
export function ReviewDialog({ product, onClose }: ReviewDialogProps) {
  const account = useAccount();
  const { data: own, error } = useQuery(ownReviewQuery(product.id, account?.id ?? ""));
  return (
    <Dialog title={own ? "Your review" : `Review “${product.title}”`} onClose={onClose}>
      {error && <ErrorStrip error={error} />}
      {own === undefined ? (
        <>
          {!error && <SkeletonRows count={2} />}
          <DialogButtons>
            <button type="button" className="btn" onClick={onClose}>
              Close
            </button>
          </DialogButtons>
        </>
      ) : (
        <ReviewForm productId={product.id} own={own} onClose={onClose} />
      )}
    </Dialog>
  );
}

interface ReviewFormProps {
  productId: string;
  own: Review | null;
  onClose: () => void;
}

function ReviewForm({ productId, own, onClose }: ReviewFormProps) {
  const client = useQueryClient();
  const [rating, setRating] = useState(own?.rating ?? 0);
  const [comment, setComment] = useState(own?.comment ?? "");
  const [isIncomplete, setIncomplete] = useState(false);
  const refresh = () =>
    client.invalidateQueries({ queryKey: ["product", productId, "reviews"], refetchType: "none" });
  const save = useAction({
    run: async () => {
      const body = { rating, comment: comment.trim() };
      return own === null
        ? await stoa.reviews.create(productId, body)
        : await stoa.reviews.update(productId, own.id, body);
    },
    onSuccess: async () => {
      await refresh();
      showToast(own === null ? "Review published." : "Review changed.");
      onClose();
    },
  });
  const remove = useAction({
    run: async (review: Review) => await stoa.reviews.delete(productId, review.id),
    onSuccess: async (_deleted, { rating, comment }) => {
      await refresh();
      const undo = async () => {
        try {
          await stoa.reviews.create(productId, { rating, comment });
          await refresh();
        } catch (error) {
          showError("The review did not come back", error);
        }
      };
      showToast("Review deleted.", { undo: () => void undo() });
      onClose();
    },
  });
  const isBusy = save.isPending || save.isSuccess || remove.isPending || remove.isSuccess;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setIncomplete(rating === 0);
    if (rating > 0 && !isBusy) save.start();
  };
  const error = save.error ?? remove.error;
  const errors = error ? fieldErrors(error) : {};
  return (
    <form className="stack review-form" onSubmit={submit}>
      {error && Object.keys(errors).length === 0 && <ErrorStrip error={error} />}
      {own?.hidden && (
        <p className="strip warning">A moderator hid this review: {own.hidden.reason}. It cannot change.</p>
      )}
      <Rating value={rating} onChange={setRating} />
      {isIncomplete && rating === 0 && (
        <p className="ferr" role="alert">
          Choose 1 to 5 stars.
        </p>
      )}
      <Field label="Comment, optional" hint="Shown with your name." error={errors["comment"]}>
        {(control) => (
          <textarea
            {...control}
            className="input"
            rows={5}
            dir="auto"
            maxLength={MAX_COMMENT}
            value={comment}
            onChange={({ target }) => setComment(target.value)}
          />
        )}
      </Field>
      <DialogButtons>
        {own && (
          <button type="button" className="btn danger" disabled={isBusy} onClick={() => remove.start(own)}>
            Delete the review
          </button>
        )}
        <button type="button" className="btn" onClick={onClose}>
          Close
        </button>
        <button type="submit" className="btn primary" disabled={isBusy || Boolean(own?.hidden)}>
          {own === null ? "Publish the review" : "Change the review"}
        </button>
      </DialogButtons>
    </form>
  );
}

const STARS = [1, 2, 3, 4, 5];

function Rating({ value, onChange }: { value: number; onChange: (stars: number) => void }) {
  return (
    <fieldset className="rating">
      <legend className="m">Stars</legend>
      <span className="row">
        {STARS.map((stars) => (
          <label key={stars} className={stars <= value ? "on" : ""} title={starsLabel(stars)}>
            <input
              type="radio"
              name="rating"
              className="hidden"
              checked={value === stars}
              onChange={() => onChange(stars)}
            />
            <span className="hidden">{starsLabel(stars)}</span>
            <StarIcon size={24} />
          </label>
        ))}
      </span>
    </fieldset>
  );
}

const starsLabel = (stars: number) => `${stars} ${stars === 1 ? "star" : "stars"}`;
