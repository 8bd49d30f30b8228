import { useEffect, useState, useSyncExternalStore } from "react";
import { closeToast, currentToasts, onToasts, type Toast } from "../../lib/toasts.ts";
import { AlertIcon, CloseIcon } from "../icons.tsx";

const SHOWN_MS = 5_000;
const UNDO_MS = 10_000;

export function Toasts() {
  const toasts = useSyncExternalStore(onToasts, currentToasts);
  return (
    <section className="toasts" aria-label="Messages" aria-live="polite">
      {toasts.map((toast) => (
        <ToastItem key={toast.id} toast={toast} />
      ))}
    </section>
  );
}

function ToastItem({ toast: { id, text, isError, requestId, undo } }: { toast: Toast }) {
  const [isHeld, hold] = useState(false);
  useEffect(() => {
    if (isHeld || isError) return;
    const timer = setTimeout(() => closeToast(id), undo ? UNDO_MS : SHOWN_MS);
    return () => clearTimeout(timer);
  }, [id, isHeld, isError, undo]);
  const holding = {
    onMouseEnter: () => hold(true),
    onMouseLeave: () => hold(false),
    onFocus: () => hold(true),
    onBlur: () => hold(false),
  };
  return (
    <div className={isError ? "toast bad" : "toast"} {...holding}>
      {isError && <AlertIcon size={20} />}
      <div className="grow">
        {text}
        {requestId !== null && <div className="mono soft">{requestId}</div>}
      </div>
      {undo && (
        <button
          type="button"
          className="btn s"
          onClick={() => {
            undo();
            closeToast(id);
          }}
        >
          Undo
        </button>
      )}
      <button type="button" className="iconb" aria-label="Close" onClick={() => closeToast(id)}>
        <CloseIcon />
      </button>
    </div>
  );
}
