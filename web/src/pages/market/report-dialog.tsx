import type { ReportProduct } from "@stoa/sdk";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { Dialog, DialogButtons } from "../../components/dialog.tsx";
import { ErrorSummary, Field, fieldErrors } from "../../components/field.tsx";
import { showToast } from "../../lib/toasts.ts";

const REASONS: [ReportProduct["reasonCode"], string][] = [
  ["malicious", "It tries to harm or to deceive the model or its user"],
  ["illegal", "It is against the law"],
  ["infringing", "It copies the work of others"],
  ["misleading", "It does not do what it says"],
  ["spam", "It is spam"],
  ["other", "Something else"],
];

interface ReportDialogProps {
  product: { id: string; title: string };
  onClose: () => void;
}

/** Tells the moderators about a product. The seller does not see who did. */
export default function ReportDialog({ product, onClose }: ReportDialogProps) {
  const [reason, setReason] = useState<ReportProduct["reasonCode"]>();
  const { mutate, isPending, error } = useMutation({
    mutationFn: (body: ReportProduct) => stoa.products.report(product.id, body),
    onSuccess: () => {
      showToast("Your report is with the moderators.");
      onClose();
    },
  });
  const errors = fieldErrors(error);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (reason === undefined) return;
    const comment = String(new FormData(event.currentTarget).get("comment")).trim();
    mutate({ reasonCode: reason, ...(comment !== "" && { comment }) });
  };
  return (
    <Dialog title={`Report “${product.title}”`} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <p className="soft">Moderators read it. The seller does not see who reported.</p>
        <ErrorSummary error={error} title="The report was not sent" />
        <fieldset className="choices">
          <legend className="m">What is wrong</legend>
          {REASONS.map(([code, label]) => (
            <label className="row" key={code}>
              <input
                type="radio"
                className="radio"
                name="reason"
                required
                checked={reason === code}
                onChange={() => setReason(code)}
              />
              {label}
            </label>
          ))}
        </fieldset>
        <Field
          label={reason === "other" ? "What moderators should know" : "More about it, optional"}
          error={errors["comment"]}
        >
          {(control) => (
            <textarea
              {...control}
              name="comment"
              className="input"
              rows={4}
              maxLength={2000}
              required={reason === "other"}
            />
          )}
        </Field>
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Discard
          </button>
          <button type="submit" className="btn primary" disabled={isPending}>
            Send report
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}
