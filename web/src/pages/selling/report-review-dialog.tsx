import type { ReceivedReview } from "@stoa/sdk";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { Dialog, DialogButtons } from "../../components/dialog.tsx";
import { Field, fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";

interface ReportReviewDialogProps {
  review: ReceivedReview;
  onClose: () => void;
}

export default function ReportReviewDialog({ review, onClose }: ReportReviewDialogProps) {
  const [reason, setReason] = useState("");
  const report = useAction({
    run: async (body: { reason: string }, idempotencyKey) =>
      await stoa.reviews.report(review.product.id, review.id, body, { idempotencyKey }),
    onSuccess: () => {
      showToast("Your report is with the moderators.");
      onClose();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!report.isSuccess) report.start({ reason: reason.trim() });
  };
  return (
    <Dialog title={`Report the review by ${review.author.name}`} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <p className="soft">
          Moderators hide what breaks the rules, such as insults, advertising or private data. A bad rating
          alone stays.
        </p>
        <FormError error={report.error} title="The report was not sent" />
        <Field label="What breaks the rules" error={fieldErrors(report.error)["reason"]}>
          {(control) => (
            <textarea
              {...control}
              className="input"
              rows={3}
              maxLength={500}
              required
              dir="auto"
              value={reason}
              onChange={({ target }) => setReason(target.value)}
            />
          )}
        </Field>
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Discard
          </button>
          <button type="submit" className="btn primary" disabled={report.isPending || report.isSuccess}>
            Send report
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}
