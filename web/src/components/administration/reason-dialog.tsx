import { type FormEvent, type ReactNode, useState } from "react";
import { Dialog, DialogButtons } from "../dialog.tsx";
import { Field, fieldErrors } from "../field.tsx";
import { FormError } from "../form-error.tsx";

interface ReasonDialogProps {
  title: string;
  /** What follows. */
  children: ReactNode;
  action: string;
  keep: string;
  reasonHint: string;
  maxLength?: number;
  isDestructive?: boolean;
  error: Error | null;
  errorTitle: string;
  isPending: boolean;
  onSubmit: (reason: string) => void;
  onClose: () => void;
}

/** Asks for the reason of what an administrator does. */
export function ReasonDialog(props: ReasonDialogProps) {
  const { title, children, action, keep, reasonHint, maxLength = 500, isDestructive = false } = props;
  const { error, errorTitle, isPending, onSubmit, onClose } = props;
  const [reason, setReason] = useState("");
  const [isMissing, setMissing] = useState(false);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setMissing(reason.trim() === "");
    if (reason.trim() !== "") onSubmit(reason.trim());
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form className="stack form" onSubmit={submit} noValidate>
        {children}
        <FormError error={error} title={errorTitle} />
        <Field
          label="Reason"
          hint={reasonHint}
          error={isMissing ? "Write a reason." : fieldErrors(error)["reason"]}
        >
          {(control) => (
            <textarea
              {...control}
              className="input area"
              rows={3}
              maxLength={maxLength}
              value={reason}
              onChange={(event) => setReason(event.target.value)}
            />
          )}
        </Field>
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            {keep}
          </button>
          <button
            type="submit"
            className={isDestructive ? "btn destroy" : "btn primary"}
            disabled={isPending}
          >
            {action}
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}
