import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import { createPortal } from "react-dom";
import { Field } from "./field.tsx";

interface DialogProps {
  title: string;
  /** Absent: the dialog cannot be closed but by what it contains. */
  onClose?: () => void;
  children: ReactNode;
}

/** A modal dialog while it is rendered. The browser holds the focus inside and returns it afterwards. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const element = dialog.current;
    const opener = document.activeElement;
    element?.showModal();
    return () => {
      element?.close();
      // React takes the element away at once, before the browser returns the focus.
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  // At the end of the page: a form inside the dialog must not be inside another form.
  return createPortal(
    <dialog
      ref={dialog}
      className="dialog"
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose?.();
      }}
    >
      <h2 id={titleId}>{title}</h2>
      {children}
    </dialog>,
    document.body,
  );
}

export const DialogButtons = ({ children }: { children: ReactNode }) => (
  <div className="row wrap end-row">{children}</div>
);

interface ConfirmDialogProps {
  title: string;
  /** What follows, with numbers: "42 buyers keep their copies." */
  children: ReactNode;
  /** The button that does it, such as "Delete 3 products". */
  action: string;
  /** The button that does not, such as "Keep them". */
  keep: string;
  /** What the person has to type first, for heavy consequences. */
  typedName?: string;
  isPending?: boolean;
  onConfirm: () => void;
  onClose: () => void;
}

/** Asks before something that cannot be undone. What can be undone needs no question: `showToast` with `undo`. */
export function ConfirmDialog(props: ConfirmDialogProps) {
  const { title, children, action, keep, typedName, isPending = false, onConfirm, onClose } = props;
  const [typed, setTyped] = useState("");
  const isReady = typedName === undefined || typed.trim() === typedName;
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="stack">{children}</div>
      {typedName !== undefined && (
        <Field
          label={
            <>
              Type <b>{typedName}</b> to confirm
            </>
          }
        >
          {(control) => (
            <input
              {...control}
              className="input"
              autoComplete="off"
              value={typed}
              onChange={(event) => setTyped(event.target.value)}
            />
          )}
        </Field>
      )}
      <DialogButtons>
        <button type="button" className="btn" onClick={onClose}>
          {keep}
        </button>
        <button type="button" className="btn destroy" disabled={!isReady || isPending} onClick={onConfirm}>
          {action}
        </button>
      </DialogButtons>
    </Dialog>
  );
}
