import { ApiError, type DiscountCode, type UpdateDiscountCode } from "@stoa/sdk";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { stoa } from "../../api.ts";
import { Dialog, DialogButtons } from "../../components/dialog.tsx";
import { fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { AlertIcon } from "../../components/icons.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import {
  changedRequest,
  type DiscountFields,
  discountAmount,
  NO_DISCOUNT,
  toFields,
  toRequest,
} from "../../lib/discounts.ts";
import { hasDraft, takeDraft } from "../../lib/drafts.ts";
import { statusOf } from "../../lib/errors.ts";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { discountCodeQuery } from "../../queries/selling.ts";
import { DiscountForm } from "./discount-form.tsx";

const NEW_DRAFT = "new-discount";

export function CreateDiscount({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [fields, setFields] = useState(() =>
    hasDraft(NEW_DRAFT) ? (takeDraft<DiscountFields>(NEW_DRAFT) ?? NO_DISCOUNT) : NO_DISCOUNT,
  );
  const create = useAction({
    run: async (typed: DiscountFields, idempotencyKey) =>
      await stoa.discountCodes.create(toRequest(typed), { idempotencyKey }),
    onSuccess: async (code) => {
      showToast(`${code.code} takes ${discountAmount(code)} off.`);
      await client.invalidateQueries({ queryKey: ["discount-codes"] });
      onClose();
    },
  });
  return (
    <DiscountDialog
      title="New discount code"
      action="Create code"
      fields={fields}
      onFields={setFields}
      error={create.error}
      errorTitle="The code was not created"
      draft={NEW_DRAFT}
      isBusy={create.isPending || create.isSuccess}
      onSubmit={() => create.start(fields)}
      onClose={onClose}
    />
  );
}

export function EditDiscount({ id, onClose }: { id: string; onClose: () => void }) {
  const { data, error, refetch } = useQuery({ ...discountCodeQuery(id), refetchOnWindowFocus: false });
  if (data) return <EditLoaded code={data.code} etag={data.etag} onClose={onClose} />;
  if (!error) return null;
  return (
    <Dialog title="Discount code" onClose={onClose}>
      <ErrorStrip error={error} onRetry={() => void refetch()} />
      <DialogButtons>
        <button type="button" className="btn" onClick={onClose}>
          Close
        </button>
      </DialogButtons>
    </Dialog>
  );
}

interface EditLoadedProps {
  code: DiscountCode;
  etag: string;
  onClose: () => void;
}

function EditLoaded({ code: first, etag, onClose }: EditLoadedProps) {
  const client = useQueryClient();
  const [base, setBase] = useState({ code: first, etag });
  const [theirs, setTheirs] = useState<typeof base | null>(null);
  const [fields, setFields] = useState(() => toFields(first));
  const save = useAction({
    run: async ({ changes, etag }: { changes: UpdateDiscountCode; etag: string }) =>
      await stoa.discountCodes.update(first.id, changes, { headers: { "if-match": etag } }),
    onSuccess: async (code) => {
      showToast(`${code.code} is changed for later purchases.`);
      await client.invalidateQueries({ queryKey: ["discount-codes"] });
      onClose();
    },
    onError: async (error) => {
      if (statusOf(error) !== 412) return;
      setTheirs(await client.fetchQuery(discountCodeQuery(first.id)));
    },
  });
  const changes = changedRequest(toFields(base.code), fields);
  const isConflict = save.error instanceof ApiError && statusOf(save.error) === 412;
  return (
    <DiscountDialog
      title={`Change ${first.code}`}
      action="Save"
      fields={fields}
      onFields={setFields}
      error={isConflict ? null : save.error}
      errorTitle="The code was not changed"
      isBusy={save.isPending || save.isSuccess || theirs !== null}
      onSubmit={() => save.start({ changes, etag: base.etag })}
      onClose={onClose}
    >
      {theirs && (
        <Conflict
          onKeepMine={() => {
            // What was not typed here stays as it is there.
            setTheirs(null);
            save.start({ changes, etag: theirs.etag });
          }}
          onTakeTheirs={() => {
            setBase(theirs);
            setFields(toFields(theirs.code));
            setTheirs(null);
            save.reset();
          }}
        />
      )}
    </DiscountDialog>
  );
}

const Conflict = ({ onKeepMine, onTakeTheirs }: { onKeepMine: () => void; onTakeTheirs: () => void }) => (
  <div className="strip warning" role="alert">
    <AlertIcon size={20} />
    <span className="grow">
      <b>Changed elsewhere since you opened it.</b> Nothing is lost.
    </span>
    <span className="row wrap">
      <button type="button" className="btn s" onClick={onKeepMine}>
        Keep mine
      </button>
      <button type="button" className="btn s" onClick={onTakeTheirs}>
        Take theirs
      </button>
    </span>
  </div>
);

interface DiscountDialogProps {
  title: string;
  action: string;
  fields: DiscountFields;
  onFields: (fields: DiscountFields) => void;
  error: unknown;
  errorTitle: string;
  draft?: string;
  isBusy: boolean;
  onSubmit: () => void;
  onClose: () => void;
  children?: ReactNode;
}

function DiscountDialog(props: DiscountDialogProps) {
  const { title, action, fields, onFields, error, errorTitle, draft, isBusy, onSubmit, onClose, children } =
    props;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onSubmit();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form className="stack" onSubmit={submit} noValidate>
        <FormError
          error={error}
          title={errorTitle}
          {...(draft !== undefined && { draft: { name: draft, value: fields } })}
        />
        {children}
        <DiscountForm fields={fields} errors={fieldErrors(error)} onFields={onFields} />
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Discard
          </button>
          <button type="submit" className="btn primary" disabled={isBusy}>
            {action}
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}
